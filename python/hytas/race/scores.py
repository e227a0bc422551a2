"""The scores that a race ranks its racers by."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from hytas.race.consensus import agreements
from hytas.race.rankings import Ranking
from hytas.race.results import BEFORE_CONVERSION, Racer, RungResult, TrialKey
from hytas.search import MethodVote


def validation_score(results: Sequence[RungResult], ranking: Ranking) -> float:
    """Return the mean score of a racer's rungs, weighted with their steps; -inf if one failed.

    Without a vote they weigh by their folds, too: five folds validate five times the pixels. With
    one, the vote covers other pixels, and the rungs weigh as where it was measured
    (notes/decisions.md).

    Of a converted finalist only the converted rungs count: the target ships, not the network.
    """
    results = [one for one in results if BEFORE_CONVERSION in one.figures] or results
    weights = [one.steps * (1 if one.predictions else one.folds) for one in results]
    return fmean([one.score(ranking) for one in results], weights)


class RaceScore(NamedTuple):
    """The score of a racer; the larger `value` is ahead.

    Attributes:
        value: the mean of validation score and agreement; without an agreement the first one.
        validation: score on validation pixels (`validation_score`).
        agreement: with the vote on unlabelled pixels, in 0..1, or None.
    """

    value: float
    validation: float
    agreement: float | None = None


def race_scores(
    results: Mapping[TrialKey, Sequence[RungResult]],
    ranking: Ranking,
    method_votes: Sequence[MethodVote] = (),
) -> dict[TrialKey, RaceScore]:
    """Return the score of each racer that did not fail.

    A racer that joined after the first rung has no vote: it would vote for itself, by each recipe.

    Args:
        results: key -> results of the rungs so far, of all racers.
        ranking: of `hytas.race.RANKINGS`.
        method_votes: of reference methods, on the same unlabelled pixels.
    """
    scores = {key: validation_score(rungs, ranking) for key, rungs in results.items()}
    trained = {key: score for key, score in scores.items() if score > -math.inf}
    voting = {key: score for key, score in trained.items() if key not in joined_late(results)}
    agreed = agreements({key: results[key][-1] for key in trained}, voting, method_votes)
    if not agreed:
        return {key: RaceScore(score, score) for key, score in trained.items()}
    return {
        key: RaceScore((score + agreed[key]) / 2, score, agreed[key])
        for key, score in trained.items()
    }


def joined_late(results: Mapping[TrialKey, Sequence[RungResult]]) -> set[TrialKey]:
    """Return the racers that did not run the first rung, where later ones are longer."""
    first = min((rungs[0].steps for rungs in results.values()), default=0)
    return {key for key, rungs in results.items() if rungs[0].steps > first}


def best_first(racers: Iterable[Racer], scores: Mapping[TrialKey, RaceScore]) -> list[Racer]:
    """Order racers by their score, without those that failed; equals keep their order."""
    trained = [racer for racer in racers if racer.key in scores]
    return sorted(trained, key=lambda racer: -scores[racer.key].value)
