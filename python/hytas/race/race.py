"""The end of a search: finalists are trained briefly and ranked on validation pixels."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hytas.errors import InputError, is_out_of_memory
from hytas.race.events import RaceProgress, RungEnd, RungRow
from hytas.race.finalists import describe_genes, diverse
from hytas.race.ladder import (
    SHARES,
    choose_winner,
    is_far_behind,
    size_classes,
    size_of,
    that_go_on,
)
from hytas.race.racers import Key, Racer, key_of, one_each
from hytas.race.rankings import Ranking, find_ranking
from hytas.race.results import RungResult, rung_results
from hytas.race.rungs import Rung, plan_rungs
from hytas.race.standings import Placing, best_first, placings
from hytas.race.task import RaceTask
from hytas.race.trials import RacePixels, Trial, run_trials, share_pixels
from hytas.search import Ballot, Evaluation, EvaluationStore, Training
from hytas.workers import Named, Shared, Workers, open_workers

Tell = Callable[[str], None]


def race(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    *,
    finalists: int,
    steps: int,
    workers: Named = None,
    tell: Tell = lambda _: None,
    on_training: Callable[[RaceProgress], None] = lambda _: None,
    on_rung: Callable[[RungEnd], None] = lambda _: None,
    until: Callable[[], bool] = lambda: False,
) -> Racer:
    """Return the winner of successive halving among diverse finalists, and its recipe.

    Finalists are of all sizes, and the best of each size goes on unless it is far behind
    (`hytas.race.ladder`). In the first rung each finalist is trained by each recipe that makes a
    difference to it (`RaceTask.recipes_for`), and keeps the one that does best. Each rung goes on
    where the one before ended (`hytas.race.plan_rungs`). A finalist is trained once a fold, so that
    other pixels validate in turn; early rungs, of many finalists, take only as many folds as they
    need (`RaceTask.folds_of`). The last rung takes all of them, and compares finalists pixel by
    pixel: one that is behind by more than chance does not win (`hytas.race.ladder.choose_winner`).

    The standing of a finalist is the mean over its rungs so far, each of which counts by its
    length: early rungs favour networks that learn fast, and on an easy scene the late ones no
    longer tell good networks apart (Ru et al., Speedy Performance Estimation for Neural
    Architecture Search, NeurIPS 2021). Where the task has pixels without a label, those of the best
    standing vote on them, with methods that do not race, whose ballots the store may hold.
    Agreement with the vote counts as much as the standing (`hytas.race.consensus`). No test label
    is read.

    If all finalists of a rung fail, the next best take their place. Every training is kept in the
    store, so a race that was stopped trains nothing twice.

    Source: Jamieson and Talwalkar, Non-stochastic best arm identification, AISTATS 2016.

    Args:
        task: how to train a finalist.
        ranked: evaluations of the search, the best first.
        store: keeps the trainings.
        finalists: of the first rung; all of `ranked` if there are fewer.
        steps: optimiser steps of the first rung.
        workers: where finalists train side by side (`hytas.workers.open_workers`); a number of
            processes, a text of `workers`, or an executor. None takes one process a core, or as
            many as there is room for on a GPU.
        tell: receives a line for each rung and each finalist.
        on_training: is called after each training.
        on_rung: is called after each rung.
        until: ends the race after its first rung: the best of the last rung that ended wins.

    Raises:
        InputError: the training of every finalist failed, or an unknown ranking.
        OSError: a worker that trained was lost.
    """
    merit = find_ranking(task.ranking)
    chosen = diverse(ranked, finalists)
    waiting = [Racer(one, name) for one in chosen for name in task.recipes_for(one.architecture)]
    found: dict[Key, list[RungResult]] = {}
    on_cpu, sent = task.device.type == "cpu", task.patch_bytes
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=sent, shared_gpu=task.device) as pool:
        share = len(task.folds) / len(task.all_folds)
        rungs = plan_rungs(len(chosen), steps, task.final_steps, share)
        events = _Events(task, rungs, len(waiting), on_training, on_rung)
        classes = size_classes([size_of(one) for one in ranked])
        by_id = {one.id: each for one, each in zip(ranked, classes, strict=True)}
        trainer = _Trainer(task, store, pool, merit, tell, events, by_id)
        count = len(waiting)  # each finalist with each recipe
        for rung, following in zip(rungs, [*rungs[1:], None], strict=True):
            try:
                waiting, count = trainer.survivors(waiting, count, rung, following, found)
            except _TimeOverError:
                tell("the time of the race is over: the best of the last rung that ended wins")
                break
            trainer.until = until
            task.keep_checkpoints(racer.key for racer in waiting)
    task.keep_checkpoints(())
    if not waiting:
        reason = next(last.reason for *_, last in found.values() if last.reason)
        raise InputError(
            "race", rule="the training of every finalist failed", hint=f"the first: {reason}"
        )
    return waiting[0]


class _TimeOverError(Exception):
    """The time of a race is over before its rung has ended."""


class _Events:
    """Sends the events of a race, and counts how far it is."""

    def __init__(
        self,
        task: RaceTask,
        rungs: Sequence[Rung],
        racers: int,
        on_training: Callable[[RaceProgress], None],
        on_rung: Callable[[RungEnd], None],
    ) -> None:
        """Plan the steps of each rung; `racers` train in the first one, each with one recipe."""
        self._on_training, self._on_rung = on_training, on_rung
        self._rungs, self._number = rungs, 0
        self._steps: list[int] = []
        self._best: tuple[Racer, float] | None = None
        self._trained = self._trainings = 0
        folds_before = steps_before = 0
        for number, rung in enumerate(rungs):
            folds = task.folds_of(rung)
            known = min(folds, folds_before)  # these go on from their checkpoints
            each = folds * rung.steps - known * steps_before
            self._steps.append((rung.finalists if number else racers) * each)
            folds_before, steps_before = folds, rung.steps

    def begin(self, rung: Rung, trainings: int, trained: int) -> None:
        """Begin a rung of which some trainings are known already."""
        self._number = self._rungs.index(rung)
        self._trainings, self._trained, self._best = trainings, trained, None
        self._send()

    def trained(self, ended: Training, result: tuple[Racer, RungResult] | None) -> None:
        """Count a training; `result` is there where it was the last one of its racer."""
        self._trained += 1
        self.result(result)
        self._send(ended)

    def result(self, result: tuple[Racer, RungResult] | None) -> None:
        """Keep the best accuracy of the rung."""
        accuracy = None if result is None else result[1].figures.get("accuracy")
        if accuracy is not None and (self._best is None or accuracy > self._best[1]):
            assert result is not None
            self._best = result[0], accuracy

    def end(
        self,
        ranked: Sequence[Racer],
        kept: int,
        found: Mapping[Key, Sequence[RungResult]],
        placed: Mapping[Key, Placing],
    ) -> None:
        """Tell how the finalists of a rung are ranked, and that the first `kept` go on or win.

        Those that failed are left out.
        """
        rows = (
            RungRow(
                racer,
                found[racer.key][-1].figures.get("accuracy"),
                placed[racer.key].value,
                place < kept,
            )
            for place, racer in enumerate(ranked)
        )
        rung = self._rungs[self._number]
        self._on_rung(RungEnd(self._number + 1, len(self._rungs), rung.steps, tuple(rows)))

    def _send(self, ended: Training | None = None) -> None:
        before, this = sum(self._steps[: self._number]), self._steps[self._number]
        steps = before + round(this * self._trained / max(1, self._trainings))
        self._on_training(
            RaceProgress(
                self._number + 1,
                len(self._rungs),
                self._trained,
                self._trainings,
                steps,
                sum(self._steps),
                self._best,
                ended,
            )
        )


@dataclass(eq=False)
class _Trainer:
    """Trains the racers of a rung, or takes from the store what was trained before."""

    task: RaceTask
    store: EvaluationStore
    workers: Workers
    ranking: Ranking
    tell: Tell
    events: _Events
    size_classes: Mapping[int, int]
    until: Callable[[], bool] = lambda: False

    @cached_property
    def ballots(self) -> list[Ballot]:
        """What methods that do not race say of the pixels that are voted on."""
        return self.store.ballots() if self.task.unlabelled is not None else []

    @cached_property
    def pixels(self) -> Shared[RacePixels]:
        """The pixels of the race, which travel to each worker once."""
        return share_pixels(self.task, self.workers)

    def survivors(
        self,
        waiting: list[Racer],
        count: int,
        rung: Rung,
        following: Rung | None,
        found: dict[Key, list[RungResult]],
    ) -> tuple[list[Racer], int]:
        """Train the first of those that wait, the next ones if all fail.

        Args:
            waiting: the best first.
            count: how many of them train.
            rung: of the race.
            following: the next rung; None if this is the last one.
            found: results of the rungs so far; those of this rung are added.

        Returns:
            Those that trained, with those that go on or win first; and the number of these.
        """
        left: list[Racer] = []
        while waiting and not left:
            running, waiting = waiting[:count], waiting[count:]
            for result in self.train(running, rung):
                found.setdefault(result.key, []).append(result)
            placed = placings(found, self.ranking, self.ballots)
            left = one_each(best_first(running, placed))
        if not left:
            return [], 0
        kept = self._kept([found[racer.key][-1].right for racer in left], left, rung, following)
        left = [left[at] for at in kept] + [one for at, one in enumerate(left) if at not in kept]
        self.events.end(left, len(kept), found, placed)
        if (agreement := placed[left[0].key].agreement) is not None:
            self.tell(
                f"  ahead: {self._name(left[0])}; at {agreement:.1%} of the pixels without a known "
                "label it gives the class with most votes"
            )
        return left, len(kept)

    def _kept(
        self,
        right: Sequence[NDArray[np.bool_]],
        racers: Sequence[Racer],
        rung: Rung,
        following: Rung | None,
    ) -> list[int]:
        """Return the places of the racers that go on; after the last rung that of the winner."""
        small = self.task.prefer == "small"
        if following is None:
            if not (rung.is_last or small):
                return [0]
            sizes = [size_of(racer.finalist) for racer in racers]
            return [choose_winner(right, sizes, self.task.prefer)]
        classes = [self.size_classes[racer.finalist.id] for racer in racers]
        behind = [is_far_behind(right[0], each) for each in right]
        more = (len(SHARES) if small else 1) if following.is_last else 0
        return that_go_on(classes, following.finalists, behind, more=more)

    def train(self, racers: Sequence[Racer], rung: Rung) -> list[RungResult]:
        """Return what each of `racers` reaches in a rung, in their order."""
        folds = self.task.folds_of(rung)
        self.tell(self._announce(racers, rung.steps, folds))
        done = self._known(racers, rung.steps, folds)
        by_key = {racer.key: racer for racer in racers}
        self.events.begin(rung, len(racers) * folds, len(done))
        for result in rung_results(done):
            if result.folds == folds:
                self.events.result((by_key[result.key], result))
                self.tell(self._describe(by_key[result.key], result))
        known = {(key_of(item), item.fold) for item in done}
        trials = [Trial(racer, fold) for racer in racers for fold in range(folds)]
        missing = [trial for trial in trials if (trial.racer.key, trial.fold) not in known]
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
                self.tell(self._describe(racer, result))
            if left and self.until():
                raise _TimeOverError
        results = {result.key: result for result in rung_results(done)}
        return [results[racer.key] for racer in racers]

    def _trainings(self, trials: Sequence[Trial], rung: Rung) -> Iterator[Training]:
        """Train what is missing; without a trial no pixel travels."""
        if trials and self.until():
            raise _TimeOverError
        if trials:
            yield from run_trials(self.task, trials, rung, self.workers, self.pixels)

    def _announce(self, racers: Sequence[Racer], steps: int, folds: int) -> str:
        recipes = list(dict.fromkeys(racer.recipe for racer in racers))
        finalists = len({racer.finalist.id for racer in racers})
        names = " and ".join([", ".join(recipes[:-1]), recipes[-1]])
        by = f", by the recipes {names}" if len(racers) > finalists else ""
        each = f", on {folds} folds" if folds > 1 else ""
        return f"race: {finalists} finalists, {steps} steps each{by}{each}"

    def _known(self, racers: Iterable[Racer], steps: int, folds: int) -> list[Training]:
        """The trainings of this rung that the store holds."""
        keys = {racer.key for racer in racers}
        return [
            item
            for item in self.store.trainings()
            if item.steps == steps
            and key_of(item) in keys
            and item.fold < folds
            and not is_out_of_memory(item.reason)  # where memory was short, there may be enough now
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
