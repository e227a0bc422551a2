"""What the finalists of a race reached, and their order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from hytas.race.rankings import Ranking
from hytas.search import Evaluation, Training


@dataclass(frozen=True)
class RungResult:
    """What one finalist reached in a rung, over all its folds.

    Attributes:
        id: of its evaluation.
        steps: optimiser steps of the rung.
        folds: how many it was trained on.
        figures: name -> mean over the validation pixels of all folds; empty where a fold failed.
        seconds: spent on all folds.
        reason: why the first fold that failed did so; empty where none failed.
    """

    id: int
    steps: int
    folds: int
    figures: Mapping[str, float]
    seconds: float
    reason: str

    def merit(self, ranking: Ranking) -> float:
        """Return what `ranking` makes of the figures; -inf where a fold failed."""
        merit = math.nan if self.reason else ranking(self.figures)
        return -math.inf if math.isnan(merit) else merit


def rung_results(trainings: Iterable[Training]) -> list[RungResult]:
    """Gather the folds of each architecture and length; the shortest rung comes first."""
    groups: dict[tuple[int, int], list[Training]] = {}
    # By fold: sums are then taken in one order, whichever training ended first.
    for training in sorted(trainings, key=lambda item: item.fold):
        groups.setdefault((training.steps, training.id), []).append(training)
    return [_over_folds(groups[key]) for key in sorted(groups)]


def _over_folds(trainings: Sequence[Training]) -> RungResult:
    weights = [item.pixels for item in trainings]
    reason = next((item.reason for item in trainings if item.reason), "")
    names = () if reason else trainings[0].figures
    return RungResult(
        trainings[0].id,
        trainings[0].steps,
        len(trainings),
        {name: fmean([item.figures[name] for item in trainings], weights) for name in names},
        sum(item.seconds for item in trainings),
        reason,
    )


def standing(results: Sequence[RungResult], ranking: Ranking) -> float:
    """Average the merit of a finalist over its rungs, weighted with their steps.

    The standing of a finalist that failed in a rung is -inf.
    """
    return fmean([item.merit(ranking) for item in results], [item.steps for item in results])


def best_first(
    finalists: Sequence[Evaluation],
    results: Mapping[int, Sequence[RungResult]],
    ranking: Ranking,
) -> list[Evaluation]:
    """Order finalists by their standing, without those that failed.

    Of equals, the one that comes first in `finalists` stays first.

    Args:
        finalists: to be ordered.
        results: id -> results of the rungs so far.
        ranking: of `hytas.race.RANKINGS`.
    """
    standings = {finalist.id: standing(results[finalist.id], ranking) for finalist in finalists}
    trained = [finalist for finalist in finalists if standings[finalist.id] > -math.inf]
    return sorted(trained, key=lambda finalist: -standings[finalist.id])
