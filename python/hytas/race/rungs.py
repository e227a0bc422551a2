"""The rungs of successive halving: their lengths, and who wins."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hytas.metrics import compare_predictions
from hytas.types import Array

REDUCTION_FACTOR = 2
"""The reduction factor of successive halving."""
FEW_FINALISTS = 6
"""A rung of at most this many finalists is followed by the last one."""
LEAST_FINALISTS = 2
"""Least number of finalists in the last rung."""
CONVERTED_FINALISTS = 4
"""The same where a conversion may order them anew."""
LEAST_COMPARED = 4
"""Least number of finalists that a first rung trains by each recipe."""
LAST_SHARE = 0.75
"""Length of the last rung, of the final training; less where further folds join."""
LEAST_LAST = 100
"""Least number of optimiser steps in the last rung, if the final training is as long."""
PREFERENCES = ("accurate", "small")


class Rung(NamedTuple):
    """A rung of the race.

    Attributes:
        finalists: number of finalists; more where a small network is preferred.
        steps: optimiser steps of a training, including the rungs before.
        first: steps of the first rung.
        before: steps from which on the learning rate falls; None if it stays at its peak.
        all_folds: whether all folds validate, as in the last rung.
    """

    finalists: int
    steps: int
    first: int
    before: int | None = None
    all_folds: bool = False


def plan_rungs(
    finalists: int, steps: int, final_steps: int, share: float = 1.0, last: int = LEAST_FINALISTS
) -> list[Rung]:
    """Plan the rungs of a race, the first one first.

    No rung trains longer than the final training. In the last rung the learning rate falls, so its
    finalists are compared as they would end. It is shorter where further folds join it: a whole
    training on each fold would take too long.

    Args:
        finalists: of the first rung.
        steps: optimiser steps of the first rung.
        final_steps: optimiser steps of the final training; 0 if none follows.
        share: folds of the early rungs, as a share of those of the last rung.
        last: finalists of the last rung.
    """
    limit = final_steps or math.inf
    first = steps
    rungs = [Rung(finalists, steps, first)]
    while finalists > FEW_FINALISTS and steps < limit:
        if (fewer := math.ceil(finalists / REDUCTION_FACTOR)) < last:
            break
        finalists = fewer
        steps = int(min(steps * REDUCTION_FACTOR, limit))
        rungs.append(Rung(finalists, steps, first))
    if finalists > 1 and steps < limit:
        least = LEAST_LAST if final_steps else 0
        longest = max(REDUCTION_FACTOR * steps, round(LAST_SHARE * share * final_steps), least)
        longest = int(min(longest, limit))
        rungs.append(Rung(min(finalists, last), longest, first, steps, all_folds=True))
    elif finalists > 1 and share < 1:
        rungs.append(Rung(min(finalists, last), steps, first, all_folds=True))
    return rungs


def compared_recipes(finalists: int) -> int:
    """Return how many finalists of a first rung are trained by each recipe, the best by the first.

    No finalist in the worse half by the first recipe was in a last rung: notes/decisions.md.
    """
    return min(finalists, max(LEAST_COMPARED, math.ceil(finalists / 2)))


def first_trainings(finalists: int, racers: int) -> int:
    """Return how many racers a first rung trains on a fold, about.

    Args:
        finalists: of the first rung.
        racers: each finalist with each recipe that makes a difference to it.
    """
    others = (racers - finalists) * compared_recipes(finalists) / finalists
    return finalists + round(others)


def is_far_behind(best: Array, other: Array) -> bool:
    """Return whether `other` is behind `best` by more than twice the chance deviation (McNemar).

    Args:
        best, other: (n,) merits of pixels; without them the result is False.
    """
    if len(best) != len(other):
        return False
    lead = np.subtract(best, other, dtype=np.float64)
    return bool(lead.sum() > 2 * (lead**2).sum() ** 0.5)


def choose_winner(
    right: Sequence[Array], sizes: Sequence[float], prefer: str = PREFERENCES[0]
) -> int:
    """Return the rank of the winner among the racers of the last rung.

    Racers that are far behind the one with most correct pixels cannot win: it is the best of
    several, so its lead by chance is larger than that of a pair. The first of the others wins; with
    `prefer="small"` the smallest racer that is within chance of it (McNemar).

    Args:
        right: (n,) merits of held-out pixels of each racer, such as which are right, the best score
            first. An empty array is within chance of all.
        sizes: of each racer.
        prefer: one of `PREFERENCES`.
    """
    most = max(right, key=lambda flags: float(flags.sum()))
    first = next(rank for rank, flags in enumerate(right) if not is_far_behind(most, flags))
    if prefer == "accurate":
        return first
    within = [
        rank
        for rank, flags in enumerate(right)
        if len(flags) != len(right[first]) or not compare_predictions(flags, right[first])[2]
    ]
    return min(within, key=lambda rank: (sizes[rank], rank))
