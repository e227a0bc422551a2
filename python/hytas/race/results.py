"""What racers reached in the rungs of a race."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from hytas.race.racers import Key, key_of
from hytas.race.rankings import Ranking
from hytas.search import Training, unpack_flags


@dataclass(frozen=True)
class RungResult:
    """What one racer reached in a rung, over all its folds.

    Attributes:
        key: of the racer.
        steps: optimiser steps of the rung.
        folds: how many it was trained on.
        figures: name -> mean over the validation pixels of all folds; empty where a fold failed.
        seconds: spent on all folds.
        reason: why the first fold that failed did so; empty where none failed.
        answers: on pixels without a label, for each fold (`hytas.search.unpack_classes`); empty
            where some have none.
        right: (n,) which validation pixels of all folds it has right; empty where that is not
            known.
    """

    key: Key
    steps: int
    folds: int
    figures: Mapping[str, float]
    seconds: float
    reason: str
    answers: tuple[bytes, ...] = ()
    right: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_), compare=False)

    def merit(self, ranking: Ranking) -> float:
        """Return what `ranking` makes of the figures; -inf where a fold failed."""
        merit = math.nan if self.reason else ranking(self.figures)
        return -math.inf if math.isnan(merit) else merit


def rung_results(trainings: Iterable[Training]) -> list[RungResult]:
    """Gather the folds of each racer and length; the shortest rung comes first."""
    groups: dict[tuple[int, Key], list[Training]] = {}
    # By fold: sums are then taken in one order, whichever training ended first.
    for training in sorted(trainings, key=lambda item: item.fold):
        groups.setdefault((training.steps, key_of(training)), []).append(training)
    return [_over_folds(groups[key]) for key in sorted(groups)]


def results_by_racer(trainings: Iterable[Training]) -> dict[Key, list[RungResult]]:
    """Return the results of each racer, the shortest rung first."""
    racers: dict[Key, list[RungResult]] = {}
    for result in rung_results(trainings):
        racers.setdefault(result.key, []).append(result)
    return racers


def _over_folds(trainings: Sequence[Training]) -> RungResult:
    weights = [item.pixels for item in trainings]
    reason = next((item.reason for item in trainings if item.reason), "")
    names = () if reason else trainings[0].figures
    answers = tuple(item.answers for item in trainings)
    right = [unpack_flags(item.right, item.pixels) for item in trainings]
    return RungResult(
        key_of(trainings[0]),
        trainings[0].steps,
        len(trainings),
        {name: fmean([item.figures[name] for item in trainings], weights) for name in names},
        sum(item.seconds for item in trainings),
        reason,
        answers if all(answers) else (),
        np.concatenate(right) if all(map(len, right)) else right[0][:0],
    )
