"""What the finalists of a race reached, and their order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from hytas.search import Evaluation, Training


@dataclass(frozen=True)
class RoundResult:
    """What an architecture reached in a round: means over the pixels of all folds.

    Attributes:
        folds: how many.
        id, steps, probability, oa, shifted_oa, seconds: as of a `Training`; the seconds summed.
        reason: why the first fold that failed did so; empty where all went well.
    """

    id: int
    steps: int
    folds: int
    probability: float
    oa: float
    shifted_oa: float
    seconds: float
    reason: str

    @property
    def merit(self) -> float:
        """What the race ranks by: the accuracy under other light, and a thousandth of the
        probability, which parts those of equal accuracy. What failed is last of all.
        """
        merit = self.shifted_oa + 1e-3 * self.probability
        return -math.inf if math.isnan(merit) else merit


def round_results(trainings: Iterable[Training]) -> list[RoundResult]:
    """One result for each architecture and length, the shortest first."""
    groups: dict[tuple[int, int], list[Training]] = {}
    # By fold: sums are then taken in one order, whichever training ended first.
    for training in sorted(trainings, key=lambda item: item.fold):
        groups.setdefault((training.steps, training.id), []).append(training)
    return [_over_folds(groups[key]) for key in sorted(groups)]


def _over_folds(trainings: Sequence[Training]) -> RoundResult:
    weights = [item.pixels for item in trainings]
    return RoundResult(
        trainings[0].id,
        trainings[0].steps,
        len(trainings),
        fmean([item.probability for item in trainings], weights),
        fmean([item.oa for item in trainings], weights),
        fmean([item.shifted_oa for item in trainings], weights),
        sum(item.seconds for item in trainings),
        next((item.reason for item in trainings if item.reason), ""),
    )


def best_first(
    finalists: Sequence[Evaluation], rounds: Mapping[int, Sequence[RoundResult]]
) -> list[Evaluation]:
    """The best first; of equals the one that comes first in `finalists`.

    Those with a training that failed are left out.

    Args:
        rounds: id -> results of the rounds so far.
    """
    standings = {finalist.id: standing(rounds[finalist.id]) for finalist in finalists}
    trained = [finalist for finalist in finalists if standings[finalist.id] > -math.inf]
    return sorted(trained, key=lambda finalist: -standings[finalist.id])


def standing(results: Sequence[RoundResult]) -> float:
    """Mean merit over the rounds, weighted with their steps; of one that failed, -inf."""
    return fmean([item.merit for item in results], [item.steps for item in results])
