"""Successive halving of finalists, which are trained briefly and ranked on validation pixels."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.errors import InputError, is_out_of_memory
from hytas.race.consensus import by_method, is_ahead
from hytas.race.events import RaceEvents, RaceProgress, RungEnd
from hytas.race.finalists import describe_genes, diverse, late_finalist, sees_single_spectra
from hytas.race.front import front_order
from hytas.race.rankings import Ranking, find_ranking
from hytas.race.results import Key, Racer, RungResult, best_of_each, key_of, rung_results
from hytas.race.rungs import (
    Rung,
    choose_winner,
    compared_recipes,
    first_trainings,
    is_far_behind,
    plan_rungs,
    promoted,
)
from hytas.race.scores import RaceScore, best_first, race_scores
from hytas.race.size_classes import SHARES, WEIGHTS, size_classes, size_of
from hytas.race.task import RaceTask
from hytas.race.trials import RacePixels, Trial, run_trials, share_pixels
from hytas.search import Evaluation, EvaluationStore, MethodVote, Training
from hytas.workers import Shared, Workers, WorkersLike, open_workers

Notify = Callable[[str], None]


def race(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    *,
    finalists: int,
    steps: int,
    known: Collection[Mapping[str, Any]] = (),
    workers: WorkersLike = None,
    notify: Notify = lambda _: None,
    on_training: Callable[[RaceProgress], None] = lambda _: None,
    on_rung: Callable[[RungEnd], None] = lambda _: None,
    until: Callable[[], bool] | None = None,
) -> Racer:
    """Return the winner of successive halving among diverse finalists, and its recipe.

    Finalists are of all sizes (`hytas.race.diverse`), and the best of each size class is promoted
    unless it is far behind (`hytas.race.rungs.promoted`). In the first rung each finalist is
    trained by the first recipe, and the better half by each further recipe that makes a difference
    to it (`RaceTask.recipes_for`). A finalist keeps its best recipe. Each rung continues the
    trainings of the rung before (`hytas.race.plan_rungs`). A finalist is trained once for each
    fold. Early rungs, of many finalists, take only the folds that they need (`RaceTask.folds_of`).
    The last rung takes all folds and compares finalists pixel by pixel: a finalist that is behind
    by more than two standard deviations of chance does not win (`hytas.race.rungs.choose_winner`).

    The validation score of a finalist is the mean over its rungs so far, weighted with their
    lengths (`hytas.race.validation_score`): early rungs favour networks that learn fast, and on an
    easy scene late rungs no longer separate good networks (Ru et al., Speedy Performance
    Estimation for Neural Architecture Search, NeurIPS 2021). If the task has unlabelled pixels,
    the finalists of the best validation scores vote on them, with the reference methods whose
    votes are in the store. Agreement with the vote counts as much as the validation score
    (`hytas.race.consensus`). No test label is read.

    With `task.front` those are promoted that no other beats in costs and score
    (`hytas.race.front`), and more of them reach the last rung. The most accurate of these wins.

    If all finalists of a rung fail, the next best take their place. The store keeps every training,
    so a restarted race repeats none.

    Source: Jamieson and Talwalkar, Non-stochastic best arm identification, AISTATS 2016.

    Args:
        task: of the race.
        ranked: evaluations of the search, the best first.
        store: keeps the trainings.
        finalists: of the first rung; all of `ranked` if there are fewer.
        steps: optimiser steps of the first rung.
        known: architectures that are finalists before all others.
        workers: that train finalists in parallel (`hytas.workers.open_workers`): a number of
            processes, a text of `workers`, or an executor. None starts one process a core, or as
            many as the memory of a GPU allows.
        notify: receives a line for each rung and each finalist.
        on_training: is called after each training.
        on_rung: is called after each rung.
        until: ends the race: the best of the last rung that ended wins, or of those that were
            trained in the first rung; at least one is. Without it the trainings that take longest
            begin first, so that no worker waits long for the end of a rung.

    Raises:
        InputError: the training of every finalist failed, or an unknown ranking.
        OSError: a worker that trained was lost.
    """
    ranking = find_ranking(task.ranking)
    chosen = choose_finalists(task, ranked, finalists, known)
    racers = _by_each_recipe(task, chosen)
    share = len(task.folds) / len(task.all_folds)
    rungs = plan_rungs(len(chosen), steps, task.final_steps, share, task.last_finalists)
    trainings = first_trainings(len(chosen), len(racers))
    events = RaceEvents(task, rungs, trainings, on_training, on_rung)
    classes = size_classes([size_of(one) for one in ranked])
    by_id = {one.id: each for one, each in zip(ranked, classes, strict=True)}
    # In a race of one length, one that joins could not be told from those that vote.
    joins = rungs[-1].steps > steps and not task.front
    late = _by_each_recipe(task, late_finalist(ranked, chosen)) if joins else []
    on_cpu, sent = task.device.type == "cpu", task.patch_bytes
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=sent, shared_gpu=task.device) as pool:
        trainer = _Trainer(task, store, pool, ranking, notify, events, by_id, joins, late, until)
        trained = trainer.run(racers, rungs)
    task.keep_checkpoints(())
    if not trained:
        reason = next(last.reason for *_, last in trainer.results.values() if last.reason)
        raise InputError(
            "race", rule="the training of every finalist failed", hint=f"the first: {reason}"
        )
    return trained[0]


def choose_finalists(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    count: int,
    known: Collection[Mapping[str, Any]] = (),
) -> list[Evaluation]:
    """Return the finalists of a race: see `hytas.race.diverse`.

    Where no finalists vote, some are of kinds that won before; or, with few labels, there are as
    many of each size class.
    """
    if task.unlabelled is not None:
        # A vote prefers the middle: where two patches of each kind race, it took the smaller one.
        return diverse(ranked, count, False, known)
    if task.has_few_labels:
        # On noisy scenes with few labels, other kinds and smaller sizes won: notes/decisions.md.
        return diverse(ranked, count, False, known, (1,) * len(WEIGHTS))
    return diverse(ranked, count, True, known)


def _by_each_recipe(task: RaceTask, finalists: Iterable[Evaluation]) -> list[Racer]:
    return [Racer(one, name) for one in finalists for name in task.recipes_for(one.architecture)]


class _TimeOverError(Exception):
    """The time of a race is over before its rung has ended."""


@dataclass(frozen=True, eq=False)
class _Trainer:
    """Trains the racers of each rung, or reads their trainings from the store.

    Attributes:
        size_classes: evaluation -> size class, of all candidates.
        joins: whether racers may join the last rung.
        late: a network that may, by each recipe.
        results: of the rungs so far, of each racer.
    """

    task: RaceTask
    store: EvaluationStore
    workers: Workers
    ranking: Ranking
    notify: Notify
    events: RaceEvents
    size_classes: Mapping[int, int]
    joins: bool
    late: Sequence[Racer]
    until: Callable[[], bool] | None
    results: dict[Key, list[RungResult]] = field(default_factory=dict)

    def is_over(self) -> bool:
        """Return whether the time of the race is over."""
        return self.until is not None and self.until()

    @cached_property
    def polled(self) -> list[MethodVote]:
        """Predictions of reference methods, on validation pixels and where finalists vote."""
        return self.store.votes()

    @property
    def votes(self) -> list[MethodVote]:
        """Votes of reference methods on the unlabelled pixels."""
        return self.polled if self.task.unlabelled is not None else []

    @cached_property
    def pixels(self) -> Shared[RacePixels]:
        """The pixels of the race, which travel to each worker once."""
        return share_pixels(self.task, self.workers)

    def scores(self) -> dict[Key, RaceScore]:
        """Return the scores by the rungs so far."""
        return race_scores(self.results, self.ranking, self.votes)

    def run(self, waiting: list[Racer], rungs: Sequence[Rung]) -> list[Racer]:
        """Return the racers of the last rung that ended, the winner first.

        Args:
            waiting: each finalist with each recipe, the best finalist first.
            rungs: of the race.
        """
        count = len(waiting)
        for rung, following in zip(rungs, [*rungs[1:], None], strict=True):
            try:
                waiting, count = self.run_rung(waiting, count, rung, following)
            except _TimeOverError:
                self.notify(
                    "the time of the race is over: the best of the last rung that ended wins"
                )
                if self.task.prefer == "small":
                    waiting = [waiting[self.winner(waiting[:count])]]
                break
            self.task.keep_checkpoints(racer.key for racer in waiting)
        return waiting

    def run_rung(
        self, waiting: list[Racer], count: int, rung: Rung, following: Rung | None
    ) -> tuple[list[Racer], int]:
        """Train the first `count` racers; the next ones if all fail.

        Args:
            waiting: racers, the best first.
            count: number of them that train.
            rung: of the race.
            following: the next rung; None if this is the last one.

        Returns:
            The trained racers, those that are promoted or win first; and the number of these.
        """
        trained: list[Racer] = []
        while waiting and not trained:
            running, waiting = waiting[:count], waiting[count:]
            self._train_recipes(running, rung)
            scores = self.scores()
            trained = best_of_each(best_first(running, scores))
        if not trained:
            return [], 0
        if following is None:
            trained, scores = self._with_linear(trained, rung, scores)
            trained, scores = self._with_late(trained, rung, scores)
            kept = [self.winner(trained)]
        elif self.task.front:
            order = front_order(self._points(trained, scores))
            kept = sorted(order[: following.finalists])
        else:
            kept = self._kept(trained, following)
        others = [racer for rank, racer in enumerate(trained) if rank not in kept]
        ranked = [*(trained[rank] for rank in kept), *others]
        self.events.end(ranked, len(kept), self.results, scores)
        if (agreement := scores[ranked[0].key].agreement) is not None:
            self.notify(
                f"  ahead: {self._name(ranked[0])}; agrees with the vote at {agreement:.1%} of the "
                "unlabelled pixels"
            )
        return ranked, len(kept)

    def _with_linear(
        self, racers: list[Racer], rung: Rung, scores: dict[Key, RaceScore]
    ) -> tuple[list[Racer], dict[Key, RaceScore]]:
        """Add the linear networks to the last rung, whose folds they are fitted on.

        They come last: one wins if all others are far behind it. The final training averages the
        winner with them in any case, unless held-out pixels favour fewer networks.
        """
        recipe = next(iter(self.task.recipes))
        linear = [Racer(network, recipe) for network in self.task.linear]
        if not linear or self.is_over():
            return racers, scores
        self.events.extend(len(linear) * self.task.folds_of(rung))
        try:
            self.train(linear, rung)
        except _TimeOverError:
            return racers, scores
        fresh = self.scores()
        joined = best_first(linear, fresh)
        return [*racers, *joined], scores | {one.key: fresh[one.key] for one in joined}

    def _with_late(
        self, racers: list[Racer], rung: Rung, scores: dict[Key, RaceScore]
    ) -> tuple[list[Racer], dict[Key, RaceScore]]:
        """Add a network of single spectra to the last rung, where a reference method is ahead.

        An SVM and a random forest see single spectra, too. The network comes first if it has more
        validation pixels right than the winner so far and, where finalists vote, agrees with the
        vote at more pixels. Otherwise it comes last, and wins if all others are far behind it.
        """
        winner = racers[self.winner(racers)]
        best = self.results[winner.key][-1]
        joining = self._joining(racers)
        if not joining or self.is_over():
            return racers, scores
        if not any(is_ahead(votes, best) for votes in by_method(self.polled)):
            return racers, scores
        self.notify("race: a reference method is ahead, so a network of single spectra joins")
        self.events.extend(len(joining) * self.task.folds_of(rung) * rung.steps)
        try:
            self.train(joining, rung)
        except _TimeOverError:
            return racers, scores
        fresh = self.scores()

        def right(one: Racer) -> int:
            return int(self.results[one.key][-1].right.sum())

        ranked = best_first(joining, fresh)  # none, if the trainings failed
        if self.task.unlabelled is None:
            # Augmented accuracy favours recipes that take the brightness from spectra.
            ranked.sort(key=right, reverse=True)
        scores = {**scores, **{one.key: fresh[one.key] for one in ranked}}
        for one in ranked[:1]:
            others = [each for each in racers if each.finalist.id != one.finalist.id]
            own, agreed = (fresh[each.key].agreement for each in (one, winner))
            agrees_more = own is None or agreed is None or own > agreed
            if right(one) > right(winner) and agrees_more:
                return [one, *others], scores
            if len(others) == len(racers):
                return [*racers, one], scores
        return racers, scores

    def _joining(self, racers: Sequence[Racer]) -> Sequence[Racer]:
        """Return the late network by each recipe; or one of the last rung by its other recipes.

        Where finalists vote, one of the last rung is left as it is: its other recipes have voted.
        """
        there = [one for one in racers if sees_single_spectra(one.finalist.architecture)]
        if not there:
            return self.late
        if self.task.unlabelled is not None or not self.joins:
            return []
        return [
            Racer(one.finalist, name)
            for one in there
            for name in self.task.recipes_for(one.finalist.architecture)
            if name != one.recipe
        ]

    def _train_recipes(self, racers: list[Racer], rung: Rung) -> None:
        """Train each finalist by its first recipe, and the better of them by their others.

        The best of each size class is one of these, unless labels are few; in a race for a front,
        its first ones are.
        """
        first = best_of_each(racers)
        others = [racer for racer in racers if racer not in first]
        count = compared_recipes(len(first))
        following = first_trainings(len(first), len(racers)) - len(first)
        self.train(first, rung, following=following)
        if not others or self.is_over():
            return
        scores = self.scores()
        ranked = best_first(first, scores)
        if self.task.front:
            ranked = [ranked[at] for at in front_order(self._points(ranked, scores))]
        classes = [self.size_classes[racer.finalist.id] for racer in ranked]
        if self.task.has_few_labels:  # one of each class would take all places of a quick run
            classes = [0] * len(ranked)
        better = promoted(classes, count, [False] * len(ranked))
        worse = {racer.finalist.id for at, racer in enumerate(ranked) if at not in better}
        left = [racer for racer in others if racer.finalist.id not in worse]
        self.train(left, rung, before=len(first))

    def _points(
        self, racers: Sequence[Racer], scores: Mapping[Key, RaceScore]
    ) -> NDArray[np.float64]:
        """Return the objectives (n, k) of racers, less is better: costs, and the negative score."""
        rows = [
            [*(racer.finalist.costs[name] for name in self.task.front), -scores[racer.key].value]
            for racer in racers
        ]
        return np.array(rows, np.float64)

    def winner(self, racers: Sequence[Racer]) -> int:
        """Return the rank of the winner among racers whose last rung is the same."""
        right = [self.results[racer.key][-1].right for racer in racers]
        return choose_winner(right, [size_of(one.finalist) for one in racers], self.task.prefer)

    def _kept(self, racers: Sequence[Racer], following: Rung) -> list[int]:
        """Return the ranks of the racers that are promoted to the following rung."""
        classes = [self.size_classes[racer.finalist.id] for racer in racers]
        right = [self.results[racer.key][-1].right for racer in racers]
        behind = [is_far_behind(right[0], each) for each in right]
        if not (following.before or following.all_folds):
            # Measured in whole searches: with a vote, in place of others.
            more = len(SHARES) if self.task.unlabelled is None else None
        elif self.task.prefer == "small":
            more = len(SHARES)
        else:  # all folds take long: there, only a smaller one that is ahead of a larger one
            leads = max(classes[: following.finalists]) > classes[0]
            more = int(leads or not following.all_folds)
        return promoted(classes, following.finalists, behind, more=more)

    def train(
        self, racers: Sequence[Racer], rung: Rung, *, before: int = 0, following: int = 0
    ) -> None:
        """Train racers in a rung, and add their results.

        A result on more folds replaces that of as many steps.

        Args:
            racers: to train.
            rung: of the race.
            before, following: other racers of the rung that were trained, and that will be.
        """
        folds = self.task.folds_of(rung)
        self.notify(self._announce(racers, rung.steps, folds))
        done = self._stored(racers, rung.steps, folds)
        by_key = {racer.key: racer for racer in racers}
        racing = before + len(racers) + following
        self.events.begin(rung, racing * folds, before * folds + len(done))
        for result in rung_results(done):
            if result.folds == folds:
                self.events.result((by_key[result.key], result))
                self.notify(self._describe(by_key[result.key], result))
        stored = {(key_of(item), item.fold) for item in done}
        trials = [Trial(racer, fold) for racer in racers for fold in range(folds)]
        missing = [trial for trial in trials if (trial.racer.key, trial.fold) not in stored]
        if self.until is None:
            missing.sort(key=lambda one: (-one.racer.finalist.costs.get("macs", 0), -one.fold))

        def ends_here() -> bool:
            """Return whether the time is over, and a finalist of the first rung is trained."""
            if not self.is_over():
                return False
            if rung.all_folds or rung.steps > rung.first:
                raise _TimeOverError
            return bool(before) or any(one.folds == folds for one in rung_results(done))

        if missing and ends_here():
            missing = []
        for left, training in zip(
            range(len(missing))[::-1], self._trainings(missing, rung), strict=True
        ):
            self.store.add_training(training)
            done.append(training)
            own = [item for item in done if key_of(item) == key_of(training)]
            racer, finished = by_key[key_of(training)], len(own) == folds
            (result,) = rung_results(own)
            self.events.trained(training, (racer, result) if finished else None)
            if finished:
                self.notify(self._describe(racer, result))
            if left and ends_here():
                break
        whole = {one.key: one for one in rung_results(done) if one.folds == folds}
        for key in (racer.key for racer in racers if racer.key in whole):
            shorter = [one for one in self.results.get(key, []) if one.steps < rung.steps]
            self.results[key] = [*shorter, whole[key]]

    def _trainings(self, trials: Sequence[Trial], rung: Rung) -> Iterator[Training]:
        """Train `trials`; without any, no pixels are shared with workers."""
        if trials:
            yield from run_trials(self.task, trials, rung, self.workers, self.pixels)

    def _announce(self, racers: Sequence[Racer], steps: int, folds: int) -> str:
        if racers[0].finalist in self.task.linear:
            return f"race: {len(racers)} linear networks, fitted on {folds} folds"
        recipes = list(dict.fromkeys(racer.recipe for racer in racers))
        finalists = len({racer.finalist.id for racer in racers})
        names = " and ".join([", ".join(recipes[:-1]), recipes[-1]])
        by = f", by the recipes {names}" if len(racers) > finalists else ""
        each = f", on {folds} folds" if folds > 1 else ""
        return f"race: {finalists} finalists, {steps} steps each{by}{each}"

    def _stored(self, racers: Iterable[Racer], steps: int, folds: int) -> list[Training]:
        """Return the trainings of this rung that are in the store."""
        keys = {racer.key for racer in racers}
        return [
            item
            for item in self.store.trainings()
            if item.steps == steps
            and key_of(item) in keys
            and item.fold < folds
            and not is_out_of_memory(item.reason)  # memory may be sufficient now
        ]

    def _describe(self, racer: Racer, result: RungResult) -> str:
        name = self._name(racer)
        if result.reason:
            return f"  {result.steps} steps: failed: {result.reason} ({name})"
        figures = ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in result.figures.items()
        )
        return f"  {result.steps} steps: {figures} ({name})"

    def _name(self, racer: Racer) -> str:
        by = f"{racer.recipe} recipe, " if len(self.task.recipes) > 1 else ""
        return by + describe_genes(racer.finalist.architecture)
