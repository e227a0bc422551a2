"""The order of racers, by what they reached and how far they agree."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from hytas.race.consensus import agreements
from hytas.race.racers import Key, Racer
from hytas.race.rankings import Ranking
from hytas.race.results import RungResult
from hytas.search import Ballot


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
    agreed = agreements({key: results[key][-1] for key in trained}, trained, ballots)
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
