"""Racers, and the results of their trainings in each rung."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hytas.race.rankings import Ranking
from hytas.search import Evaluation, Training, unpack_merits

BEFORE_CONVERSION = "accuracy_before_conversion"
"""Figure of a converted finalist: the accuracy of its network as trained."""
TrialKey = tuple[int, str]
"""Number of a finalist's evaluation, and the name of a recipe."""


class Racer(NamedTuple):
    """A finalist of the search, with one of the recipes.

    Attributes:
        finalist: its evaluation.
        recipe: name of the recipe.
    """

    finalist: Evaluation
    recipe: str

    @property
    def key(self) -> TrialKey:
        """Key of the racer's trainings."""
        return self.finalist.id, self.recipe


def best_of_each(racers: Iterable[Racer]) -> list[Racer]:
    """Return the first racer of each finalist."""
    firsts: dict[int, Racer] = {}
    for racer in racers:
        firsts.setdefault(racer.finalist.id, racer)
    return list(firsts.values())


def key_of(training: Training) -> TrialKey:
    """Return the key of a training's racer."""
    return training.id, training.recipe


@dataclass(frozen=True)
class RungResult:
    """The result of a racer in a rung, over all its folds.

    Attributes:
        key: of the racer.
        steps: optimiser steps of the rung.
        folds: number of folds.
        figures: name -> mean over the validation pixels of all folds; empty if a fold failed.
        seconds: sum over the folds.
        reason: failure of the first fold that failed; empty if none did.
        right: (n,) merits of the validation pixels of all folds, such as which are right; may be
            empty.
    """

    key: TrialKey
    steps: int
    folds: int
    figures: Mapping[str, float]
    seconds: float
    reason: str
    right: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.bool_), compare=False)

    @property
    def shown(self) -> float | None:
        """The figure that people look at, the first one; None if a fold failed."""
        return next(iter(self.figures.values()), None)

    def score(self, ranking: Ranking) -> float:
        """Return the score of the figures by `ranking`; -inf if a fold failed."""
        score = math.nan if self.reason else ranking(self.figures)
        return -math.inf if math.isnan(score) else score


def rung_results(trainings: Iterable[Training]) -> list[RungResult]:
    """Gather the folds of each racer and length; the shortest rung comes first."""
    groups: dict[tuple[int, TrialKey], list[Training]] = {}
    # Sorted by fold, so that sums do not depend on the order in which trainings ended.
    for training in sorted(trainings, key=lambda item: item.fold):
        groups.setdefault((training.steps, key_of(training)), []).append(training)
    return [_over_folds(groups[key]) for key in sorted(groups)]


def results_by_racer(trainings: Iterable[Training]) -> dict[TrialKey, list[RungResult]]:
    """Return the results of each racer, the shortest rung first."""
    racers: dict[TrialKey, list[RungResult]] = {}
    for result in rung_results(trainings):
        racers.setdefault(result.key, []).append(result)
    return racers


def _over_folds(trainings: Sequence[Training]) -> RungResult:
    weights = [item.pixels for item in trainings]
    reason = next((item.reason for item in trainings if item.reason), "")
    names = () if reason else trainings[0].figures
    right = [unpack_merits(item.right, item.pixels) for item in trainings]
    return RungResult(
        key_of(trainings[0]),
        trainings[0].steps,
        len(trainings),
        {name: fmean([item.figures[name] for item in trainings], weights) for name in names},
        sum(item.seconds for item in trainings),
        reason,
        np.concatenate(right) if all(map(len, right)) else right[0][:0],
    )
