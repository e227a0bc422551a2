"""What the racers reached, and their order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from hytas.race.consensus import agreements
from hytas.race.racers import Key, Racer, key_of
from hytas.race.rankings import Ranking
from hytas.search import Ballot, Training


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
    """

    key: Key
    steps: int
    folds: int
    figures: Mapping[str, float]
    seconds: float
    reason: str
    answers: tuple[bytes, ...] = ()

    def merit(self, ranking: Ranking) -> float:
        """Return what `ranking` makes of the figures.

        It is -inf where a fold failed, or where an older hytas did not measure one of them.
        """
        try:
            merit = math.nan if self.reason else ranking(self.figures)
        except KeyError:
            merit = math.nan
        return -math.inf if math.isnan(merit) else merit


def rung_results(trainings: Iterable[Training]) -> list[RungResult]:
    """Gather the folds of each racer and length; the shortest rung comes first."""
    groups: dict[tuple[int, Key], list[Training]] = {}
    # By fold: sums are then taken in one order, whichever training ended first.
    for training in sorted(trainings, key=lambda item: item.fold):
        groups.setdefault((training.steps, key_of(training)), []).append(training)
    return [_over_folds(groups[key]) for key in sorted(groups)]


def _over_folds(trainings: Sequence[Training]) -> RungResult:
    weights = [item.pixels for item in trainings]
    reason = next((item.reason for item in trainings if item.reason), "")
    names = () if reason else trainings[0].figures
    answers = tuple(item.answers for item in trainings)
    return RungResult(
        key_of(trainings[0]),
        trainings[0].steps,
        len(trainings),
        {name: fmean([item.figures[name] for item in trainings], weights) for name in names},
        sum(item.seconds for item in trainings),
        reason,
        answers if all(answers) else (),
    )


def standing(results: Sequence[RungResult], ranking: Ranking) -> float:
    """Average the merit of a racer over its rungs, weighted with their steps.

    The standing of a racer that failed in a rung is -inf.
    """
    return fmean([item.merit(ranking) for item in results], [item.steps for item in results])


class Placing(NamedTuple):
    """What a racer is ranked by: the larger `value` is ahead.

    Attributes:
        value: the mean of standing and agreement; the standing where no agreement is known.
        standing: of the racer, by validation pixels.
        agreement: with the vote of the best standings on pixels without a label, in 0..1, or None.
    """

    value: float
    standing: float
    agreement: float | None = None


def placings(
    results: Mapping[Key, Sequence[RungResult]],
    ranking: Ranking,
    ballots: Sequence[Ballot] = (),
) -> dict[Key, Placing]:
    """Return the placing of each racer that did not fail.

    Args:
        results: key -> results of the rungs so far, of all that raced.
        ranking: of `hytas.race.RANKINGS`.
        ballots: of methods that do not race, on the same pixels without a label.
    """
    standings = {key: standing(found, ranking) for key, found in results.items()}
    trained = {key: value for key, value in standings.items() if value > -math.inf}
    last = {key: results[key][-1] for key in trained}
    agreed = agreements(
        {key: result.answers for key, result in last.items()},
        trained,
        {key: result.figures["accuracy"] for key, result in last.items()} if ballots else {},
        ballots,
    )
    if not agreed:
        return {key: Placing(value, value) for key, value in trained.items()}
    return {
        key: Placing((value + agreed[key]) / 2, value, agreed[key])
        for key, value in trained.items()
    }


def best_first(racers: Iterable[Racer], placed: Mapping[Key, Placing]) -> list[Racer]:
    """Order racers by their placing, without those that failed; equals keep their order."""
    left = [racer for racer in racers if racer.key in placed]
    return sorted(left, key=lambda racer: -placed[racer.key].value)
