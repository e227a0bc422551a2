"""The rungs of successive halving: how many finalists train, and for how long."""

import math
from typing import NamedTuple

REDUCTION_FACTOR = 2
"""Each rung keeps one finalist in so many of the rung before, and trains so many times longer."""
FEW_FINALISTS = 6
"""After a rung of at most so many finalists comes the last one."""
LEAST_FINALISTS = 2
"""At least this many finalists are in the last rung."""
LAST_SHARE = 0.75
"""Of the final training, in the last rung; less where other folds join."""
LEAST_LAST = 100
"""Optimiser steps of the last rung, at least, if the final training has so many."""


class Rung(NamedTuple):
    """One step of the race: so many finalists, each trained to so many optimiser steps.

    Attributes:
        finalists: that take part; in a last rung the best of smaller networks may be there beside
            them (`hytas.race.ladder`).
        steps: optimiser steps, those of the rungs before among them.
        first: steps of the first rung.
        before: steps of the rung before the last one; None unless this is a last rung in which the
            learning rate falls.
    """

    finalists: int
    steps: int
    first: int
    before: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether the learning rate falls in it, and all folds judge it."""
        return self.before is not None


def plan_rungs(finalists: int, steps: int, final_steps: int, share: float = 1.0) -> list[Rung]:
    """Plan the rungs of a race, the first one first.

    No rung trains longer than the final training. In the last one the learning rate falls, so that
    `LEAST_FINALISTS` finalists are compared as they would end. It is shorter where other folds
    join it: a whole training on each would take too long.

    Args:
        finalists: of the first rung.
        steps: optimiser steps of the first rung.
        final_steps: optimiser steps of the final training; 0 if none follows.
        share: of the last rung's folds, those that the rungs before have.
    """
    limit = final_steps or math.inf
    first = steps
    rungs = [Rung(finalists, steps, first)]
    while finalists > FEW_FINALISTS and steps < limit:
        finalists = math.ceil(finalists / REDUCTION_FACTOR)
        steps = int(min(steps * REDUCTION_FACTOR, limit))
        rungs.append(Rung(finalists, steps, first))
    if finalists > 1 and steps < limit:
        least = LEAST_LAST if final_steps else 0
        last = max(REDUCTION_FACTOR * steps, round(LAST_SHARE * share * final_steps), least)
        rungs.append(Rung(LEAST_FINALISTS, int(min(last, limit)), first, steps))
    return rungs
