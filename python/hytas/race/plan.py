"""The plan of a race: which trainings come next, or who wins, by the trainings so far.

A plan knows no store, no workers and no clock. The same trainings give the same plan, so a race is
resumed, and replayed on a table of trainings, by planning again.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hytas.race.finalists import diverse
from hytas.race.front import front_order
from hytas.race.rankings import Ranking, find_ranking
from hytas.race.results import Racer, RungResult, TrialKey, best_of_each, rung_results
from hytas.race.rungs import (
    Rung,
    choose_winner,
    compared_recipes,
    first_trainings,
    plan_rungs,
)
from hytas.race.scores import best_first, race_scores
from hytas.race.size_classes import size_classes, size_of
from hytas.race.task import RaceTask
from hytas.search import Evaluation, Training

Trainings = Mapping[tuple[TrialKey, int, int], Training]
"""Key of a racer, optimiser steps and fold -> training."""


class Trial(NamedTuple):
    """One training to do: a racer on a fold, to the length of a rung."""

    racer: Racer
    fold: int
    rung: Rung

    @property
    def key(self) -> tuple[TrialKey, int, int]:
        """What its training is told by."""
        return self.racer.key, self.rung.steps, self.fold


class TrialBatch(NamedTuple):
    """Trainings that a race needs next, and where it stands.

    Attributes:
        trials: those to do, in the order of the racers.
        racers: that are trained, some of them in an earlier batch of the rung.
        rung: number of the rung, from 0.
        folds: that each racer is trained on.
        before, following: other racers of the rung, with trainings before and after these.
        joins: whether these racers join the last rung.
        may_end: whether the race may end while these are under way, with the best of those done.
    """

    trials: list[Trial]
    racers: list[Racer]
    rung: int
    folds: int
    before: int = 0
    following: int = 0
    joins: bool = False
    may_end: bool = False


class RungRanks(NamedTuple):
    """The ranks of a rung that has ended.

    Attributes:
        rung: its number, from 0.
        racers: the best first.
        kept: how many of them are promoted, or win.
        results, scores: of the racers so far.
    """

    rung: int
    racers: list[Racer]
    kept: int
    results: Mapping[TrialKey, Sequence[RungResult]]
    scores: Mapping[TrialKey, float]


class Winner(NamedTuple):
    """The end of a race; `racer` is None where every training failed, for a reason."""

    racer: Racer | None
    reason: str = ""
    cut_short: bool = False


PlanStep = TrialBatch | RungRanks | Winner


class _TimeOverError(Exception):
    """The time of a race is over before its rung has ended."""


def plan(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    results: Trainings,
) -> TrialBatch | Winner:
    """Return the trainings that a race needs next, or its winner.

    Args:
        task, ranked: see `hytas.race.race`.
        results: the trainings so far.
    """
    walk = RacePlan(task, ranked).walk()
    step = next(walk)
    while not isinstance(step, Winner):
        if isinstance(step, TrialBatch) and not all(one.key in results for one in step.trials):
            return step
        step = walk.send((results, False))
    return step


Reply = tuple[Trainings, bool]
"""The trainings so far, and whether the time of the race is over."""


@dataclass(eq=False)
class RacePlan:
    """The rules of one race; `walk` applies them step by step.

    Attributes:
        results: of the rungs so far, of each racer.
    """

    task: RaceTask
    ranked: Sequence[Evaluation]
    results: dict[TrialKey, list[RungResult]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        task = self.task
        self.ranking: Ranking = find_ranking(task.ranking)
        chosen = choose_finalists(task, self.ranked)
        self.racers = _by_each_recipe(task, chosen)
        share = len(task.folds) / len(task.all_folds)
        self.rungs = plan_rungs(
            len(chosen), task.steps, task.final_steps, share, task.last_finalists
        )
        self.trainings = first_trainings(len(chosen), len(self.racers))
        classes = size_classes([size_of(one) for one in self.ranked])
        self.classes = {one.id: each for one, each in zip(self.ranked, classes, strict=True)}
        self._over = False

    def scores(self) -> dict[TrialKey, float]:
        """Return the scores by the rungs so far."""
        return race_scores(self.results, self.ranking)

    def walk(self) -> Generator[PlanStep, Reply, None]:
        """Yield batches, the ranks of each rung, and at last the winner; receive the trainings."""
        waiting, count, cut_short = list(self.racers), len(self.racers), False
        for number in range(len(self.rungs)):
            try:
                waiting, count = yield from self._rung(waiting, count, number)
            except _TimeOverError:
                cut_short = True
                if self.task.prefer == "small":
                    waiting = [waiting[self._winner(waiting[:count])]]
                break
        if waiting:
            yield Winner(waiting[0], cut_short=cut_short)
            return
        failed = (rungs[-1].reason for rungs in self.results.values())
        yield Winner(None, next(reason for reason in failed if reason), cut_short)

    def _rung(
        self, waiting: list[Racer], count: int, number: int
    ) -> Generator[PlanStep, Reply, tuple[list[Racer], int]]:
        """Train the first `count` racers; the next ones if all fail.

        Returns:
            The trained racers, those that are promoted or win first; and the number of these.
        """
        following = next(iter(self.rungs[number + 1 :]), None)
        trained: list[Racer] = []
        while waiting and not trained:
            running, waiting = waiting[:count], waiting[count:]
            yield from self._by_recipes(running, number)
            scores = self.scores()
            trained = best_of_each(best_first(running, scores))
        if not trained:
            return [], 0
        if following is None:
            trained, scores = yield from self._with_linear(trained, number, scores)
            kept = [self._winner(trained)]
        elif self.task.front:
            order = front_order(self._points(trained, scores))
            kept = sorted(order[: following.finalists])
        else:
            kept = self._kept(trained, following)
        others = [racer for rank, racer in enumerate(trained) if rank not in kept]
        ranks = [*(trained[rank] for rank in kept), *others]
        yield RungRanks(number, ranks, len(kept), self.results, scores)
        return ranks, len(kept)

    def _by_recipes(self, racers: list[Racer], number: int) -> Generator[PlanStep, Reply, None]:
        """Train each finalist by its first recipe, and the better of them by their others."""
        first = best_of_each(racers)
        others = [racer for racer in racers if racer not in first]
        count = compared_recipes(len(first))
        following = first_trainings(len(first), len(racers)) - len(first)
        yield from self._train(first, number, following=following)
        if not others or self._over:
            return
        scores = self.scores()
        ranked = best_first(first, scores)
        if self.task.front:
            ranked = [ranked[at] for at in front_order(self._points(ranked, scores))]
        worse = {racer.finalist.id for racer in ranked[count:]}
        left = [racer for racer in others if racer.finalist.id not in worse]
        yield from self._train(left, number, before=len(first))

    def _train(
        self,
        racers: list[Racer],
        number: int,
        *,
        before: int = 0,
        following: int = 0,
    ) -> Generator[PlanStep, Reply, None]:
        """Train racers in a rung, and add their results.

        A result on more folds replaces that of as many steps.

        Args:
            racers: to train; none trains nothing.
            before, following: other racers of the rung that were trained, and that will be.
        """
        rung = self.rungs[number]
        folds = self.task.folds_of(rung)
        trials = [Trial(racer, fold, rung) for racer in racers for fold in range(folds)]
        first = not rung.all_folds and rung.steps == rung.first
        joins = racers[0].finalist in self.task.linear
        found, over = yield TrialBatch(
            trials, racers, number, folds, before, following, joins, may_end=first
        )
        done = [found[one.key] for one in trials if one.key in found]
        whole = {one.key: one for one in rung_results(done) if one.folds == folds}
        for key in (racer.key for racer in racers if racer.key in whole):
            shorter = [one for one in self.results.get(key, []) if one.steps < rung.steps]
            self.results[key] = [*shorter, whole[key]]
        self._over = over
        if len(done) < len(trials) and not (first and (before or whole)):
            raise _TimeOverError

    def _with_linear(
        self, racers: list[Racer], number: int, scores: dict[TrialKey, float]
    ) -> Generator[PlanStep, Reply, tuple[list[Racer], dict[TrialKey, float]]]:
        """Add the networks in closed form to the last rung, whose folds they are fitted on.

        They come last: one wins if all others are far behind it. The final training averages the
        winner with them in any case, unless held-out pixels favour fewer networks.
        """
        recipe = next(iter(self.task.recipes))
        linear = [Racer(network, recipe) for network in self.task.linear]
        if not linear or self._over:
            return racers, scores
        try:
            yield from self._train(linear, number)
        except _TimeOverError:
            return racers, scores
        fresh = self.scores()
        joined = best_first(linear, fresh)
        return [*racers, *joined], scores | {one.key: fresh[one.key] for one in joined}

    def _points(
        self, racers: Sequence[Racer], scores: Mapping[TrialKey, float]
    ) -> NDArray[np.float64]:
        """Return the objectives (n, k) of racers, less is better: costs, and the negative score."""
        rows = [
            [*(racer.finalist.costs[name] for name in self.task.front), -scores[racer.key]]
            for racer in racers
        ]
        return np.array(rows, np.float64)

    def _winner(self, racers: Sequence[Racer]) -> int:
        """Return the rank of the winner among racers whose last rung is the same."""
        right = [self.results[racer.key][-1].right for racer in racers]
        return choose_winner(right, [size_of(one.finalist) for one in racers], self.task.prefer)

    def _kept(self, racers: Sequence[Racer], following: Rung) -> list[int]:
        """Return the ranks of the racers that are promoted to the following rung.

        Where a small network is preferred, the best of each size class is one of them.
        """
        kept = set(range(min(following.finalists, len(racers))))
        if self.task.prefer == "small":
            classes = [self.classes[racer.finalist.id] for racer in racers]
            kept |= {classes.index(size_class) for size_class in set(classes)}
        return sorted(kept)


def choose_finalists(task: RaceTask, ranked: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the finalists of a race, some of kinds that won before: see `hytas.race.diverse`."""
    return diverse(ranked, task.finalists, True, task.known)


def _by_each_recipe(task: RaceTask, finalists: Iterable[Evaluation]) -> list[Racer]:
    return [Racer(one, name) for one in finalists for name in task.recipes_for(one.architecture)]
