"""The rungs of successive halving: how many finalists train, and for how long."""

import math
from typing import NamedTuple

REDUCTION_FACTOR = 2
"""Each rung keeps one finalist in so many of the rung before, and trains so many times longer."""
LEAST_FINALISTS = 2
"""At least this many finalists are trained to the end."""


class Rung(NamedTuple):
    """One step of the race: so many finalists, each trained to so many optimiser steps.

    Attributes:
        finalists: that take part.
        steps: optimiser steps, those of the rungs before among them.
        first: steps of the first rung.
        before: steps of the rung before the last one; None unless this is a last rung in which the
            learning rate falls.
    """

    finalists: int
    steps: int
    first: int
    before: int | None = None


def plan_rungs(finalists: int, steps: int, final_steps: int) -> list[Rung]:
    """Plan the rungs of a race, the first one first.

    No rung trains longer than the final training. The last one is as long, for
    `LEAST_FINALISTS` finalists, or for more where the rungs before grew to that length.

    Args:
        finalists: of the first rung.
        steps: optimiser steps of the first rung.
        final_steps: optimiser steps of the final training; 0 if none follows.
    """
    limit = final_steps or math.inf
    first = steps
    rungs = [Rung(finalists, steps, first)]
    while math.ceil(finalists / REDUCTION_FACTOR) > LEAST_FINALISTS and steps < limit:
        finalists = math.ceil(finalists / REDUCTION_FACTOR)
        steps = int(min(steps * REDUCTION_FACTOR, limit))
        rungs.append(Rung(finalists, steps, first))
    if finalists > 1 and final_steps > steps:
        rungs.append(Rung(LEAST_FINALISTS, final_steps, first, steps))
    return rungs
