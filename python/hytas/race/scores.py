"""The scores that a race ranks its racers by."""

import math
from collections.abc import Iterable, Mapping, Sequence

from hytas.race.rankings import Ranking
from hytas.race.results import Racer, RungResult, TrialKey


def race_scores(
    results: Mapping[TrialKey, Sequence[RungResult]], ranking: Ranking
) -> dict[TrialKey, float]:
    """Return the score of each racer in its longest rung that did not fail; larger is better.

    Args:
        results: key -> results of the rungs so far, of all racers, the shortest first.
        ranking: of `hytas.race.RANKINGS`.
    """
    scores = {key: rungs[-1].score(ranking) for key, rungs in results.items()}
    return {key: score for key, score in scores.items() if score > -math.inf}


def joined_late(results: Mapping[TrialKey, Sequence[RungResult]]) -> set[TrialKey]:
    """Return the racers that did not run the first rung, where later ones are longer."""
    first = min((rungs[0].steps for rungs in results.values()), default=0)
    return {key for key, rungs in results.items() if rungs[0].steps > first}


def best_first(racers: Iterable[Racer], scores: Mapping[TrialKey, float]) -> list[Racer]:
    """Order racers by their score, without those that failed; equals keep their order."""
    trained = [racer for racer in racers if racer.key in scores]
    return sorted(trained, key=lambda racer: -scores[racer.key])
