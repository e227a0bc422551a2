"""Published plans of a race, to replay next to ours."""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial

import numpy as np

from hytas.lab.benchmark.replay import Plan
from hytas.race import Racer, RaceTask, Rung, rung_results, size_of
from hytas.race.finalists import PORTFOLIO
from hytas.race.plan import PlanStep, Reply, Trial, TrialBatch, Winner
from hytas.race.rankings import accuracy
from hytas.race.results import TrialKey
from hytas.search import Evaluation

Walk = Generator[PlanStep, Reply, None]
HeldOutScores = Generator[PlanStep, Reply, dict[TrialKey, float]]
ETA = 3
"""Reduction factor of Hyperband and ASHA, as published."""
LONGEST = 375
"""Steps of their longest rung."""
SHORTEST = 30


def _arms(task: RaceTask, ranked: Sequence[Evaluation], seed: int) -> list[Racer]:
    """Return all networks by all recipes, in a random order."""
    arms = [Racer(one, name) for one in ranked for name in task.recipes_for(one.architecture)]
    return [arms[at] for at in np.random.default_rng(seed).permutation(len(arms))]


def _scores(task: RaceTask, racers: Sequence[Racer], steps: int, first: int) -> HeldOutScores:
    """Train racers on all folds; return the held-out accuracy of each."""
    folds = len(task.all_folds)
    rung = Rung(len(racers), steps, first)
    trials = [Trial(racer, fold, rung) for racer in racers for fold in range(folds)]
    trainings, _ = yield TrialBatch(trials, list(racers), 0, folds)
    results = rung_results([trainings[one.key] for one in trials])
    return {one.key: one.score(accuracy) for one in results}


def _best(racers: Sequence[Racer], scores: Mapping[TrialKey, float], count: int) -> list[Racer]:
    return sorted(racers, key=lambda one: -scores[one.key])[:count]


def _halved(task: RaceTask, racers: list[Racer], steps: int, eta: int) -> Walk:
    """Train racers, keep one in `eta`, and train these `eta` times longer, until one is left."""
    first = steps
    while len(racers) > 1:
        scores = yield from _scores(task, racers, steps, first)
        racers = _best(racers, scores, max(1, len(racers) // eta))
        steps = min(steps * eta, LONGEST)
    yield Winner(racers[0])


def successive_halving(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    *,
    count: int = 24,
    seed: int = 0,
) -> Walk:
    """Halve random arms: networks by recipes (Jamieson and Talwalkar, AISTATS 2016)."""
    yield from _halved(task, _arms(task, ranked, seed)[:count], SHORTEST, 2)


def hyperband(task: RaceTask, ranked: Sequence[Evaluation], *, seed: int = 0) -> Walk:
    """Halve brackets of many short and of few long trainings (Li et al., JMLR 2018)."""
    arms = _arms(task, ranked, seed)
    most = int(math.log(LONGEST / SHORTEST, ETA))
    winners: dict[TrialKey, tuple[float, Racer]] = {}
    for bracket in range(most, -1, -1):
        count = math.ceil((most + 1) / (bracket + 1) * ETA**bracket)
        racers, arms = arms[:count], [*arms[count:], *arms[:count]]
        for rung in range(bracket + 1):
            steps = round(LONGEST / ETA ** (bracket - rung))
            scores = yield from _scores(task, racers, steps, round(LONGEST / ETA**bracket))
            racers = _best(racers, scores, max(1, len(racers) // ETA))
        winners[racers[0].key] = scores[racers[0].key], racers[0]
    yield Winner(max(winners.values(), key=lambda one: one[0])[1])


def asha(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    *,
    count: int = 24,
    seed: int = 0,
) -> Walk:
    """Promote an arm as soon as it is in the best third of its rung (Li et al., MLSys 2020)."""
    waiting = _arms(task, ranked, seed)[:count]
    most = int(math.log(LONGEST / SHORTEST, ETA))
    rungs: list[dict[TrialKey, float]] = [{} for _ in range(most + 1)]
    promoted: list[set[TrialKey]] = [set() for _ in rungs]
    racers = {one.key: one for one in waiting}
    while True:
        for number in range(most - 1, -1, -1):
            best = sorted(rungs[number], key=lambda key: -rungs[number][key])
            ready = [key for key in best[: len(best) // ETA] if key not in promoted[number]]
            if ready:
                promoted[number].add(ready[0])
                chosen, level = racers[ready[0]], number + 1
                break
        else:
            if not waiting:
                break
            chosen, level = waiting.pop(0), 0
        scores = yield from _scores(task, [chosen], SHORTEST * ETA**level, SHORTEST)
        rungs[level] |= scores
    last = next(rung for rung in reversed(rungs) if rung)
    yield Winner(racers[max(last, key=lambda key: last[key])])


def one_network(task: RaceTask, ranked: Sequence[Evaluation]) -> Walk:
    """Take the network of the first kind that won races before, the largest one."""
    kinds = [
        [one for one in ranked if kind.items() <= one.architecture.items()] for kind in PORTFOLIO
    ]
    fitting = next((each for each in kinds if each), ranked)
    chosen = max(fitting, key=lambda one: (one.architecture.get("patch", 0), size_of(one)))
    yield Winner(Racer(chosen, task.recipes_for(chosen.architecture)[0]))


def best_by_proxy(task: RaceTask, ranked: Sequence[Evaluation]) -> Walk:
    """Take the network of the largest score."""
    proxy = next(iter(ranked[0].scores))
    chosen = max(ranked, key=lambda one: np.nan_to_num(one.scores[proxy], nan=-np.inf))
    yield Winner(Racer(chosen, task.recipes_for(chosen.architecture)[0]))


def random_network(task: RaceTask, ranked: Sequence[Evaluation], *, seed: int = 0) -> Walk:
    """Take any network by any recipe."""
    yield Winner(_arms(task, ranked, seed)[0])


SEEDS = 10
"""Of plans with random numbers: their regret is the mean."""
SEEDED: Mapping[str, Callable[..., Walk]] = {
    "successive halving": successive_halving,
    "Hyperband": hyperband,
    "ASHA": asha,
    "random": random_network,
}
PLANS: Mapping[str, Sequence[Plan]] = {
    **{name: [partial(plan, seed=seed) for seed in range(SEEDS)] for name, plan in SEEDED.items()},
    "one network": [one_network],
    "best by proxy": [best_by_proxy],
}
"""Name -> plan, once for each seed."""
