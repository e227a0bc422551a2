"""Events that report the progress of a race."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hytas.race.results import Racer, RungResult, TrialKey
from hytas.race.rungs import Rung
from hytas.race.task import RaceTask
from hytas.search import Training


class RaceProgress(NamedTuple):
    """A training of the race has ended.

    Attributes:
        rung: number of the rung, from 1.
        rungs: of the race.
        trained: trainings of this rung that have ended.
        trainings: of this rung.
        steps: optimiser steps of all trainings of the race so far.
        all_steps: optimiser steps of the whole race.
        best: racer with the highest accuracy in this rung, and its accuracy on validation pixels;
            None where no racer has been trained on all folds.
        ended: the training that ended; None as a rung begins.
    """

    rung: int
    rungs: int
    trained: int
    trainings: int
    steps: int
    all_steps: int
    best: tuple[Racer, float] | None
    ended: Training | None = None


class RungRow(NamedTuple):
    """A finalist at the end of a rung.

    Attributes:
        racer: the finalist, with the recipe that suits it best.
        accuracy: on validation pixels, or another figure of the task; None if its training failed.
        score: that it is ranked by, larger is better (`hytas.race.race_scores`).
        kept: whether it is promoted to the next rung; in the last rung, whether it wins.
    """

    racer: Racer
    accuracy: float | None
    score: float
    kept: bool


class RungEnd(NamedTuple):
    """A rung has ended.

    Attributes:
        rung: number of the rung, from 1.
        rungs: of the race.
        steps: optimiser steps of a training up to here.
        folds: that each finalist is trained on.
        rows: finalists of the rung, the best first.
        figure: name of what `RungRow.accuracy` is.
    """

    rung: int
    rungs: int
    steps: int
    folds: int
    rows: tuple[RungRow, ...]
    figure: str = "accuracy"


class RaceListener:
    """Is told of a race; a subclass overrides what it shows."""

    def line(self, text: str) -> None:
        """Show a line of a rung or a finalist."""

    def training(self, progress: RaceProgress) -> None:
        """Show that a training ended."""

    def rung(self, rung: RungEnd) -> None:
        """Show the finalists of a rung that ended."""


class RaceEvents:
    """Sends the events of a race, and counts how far it is."""

    def __init__(
        self,
        task: RaceTask,
        rungs: Sequence[Rung],
        racers: int,
        listener: RaceListener,
    ) -> None:
        """Plan the steps of each rung; `racers` train in the first one, each with one recipe."""
        self.line, self._listener = listener.line, listener
        self.rungs, self._number = rungs, 0
        self._steps: list[int] = []
        self._folds: list[int] = []
        self._best: tuple[Racer, float] | None = None
        self._trained = self._trainings = self._late = 0
        folds_before = steps_before = 0
        for number, rung in enumerate(rungs):
            folds = task.folds_of(rung)
            resumed = min(folds, folds_before)  # trainings that continue from a checkpoint
            each = folds * rung.steps - resumed * steps_before
            self._steps.append((rung.finalists if number else racers) * each)
            self._folds.append(folds)
            folds_before, steps_before = folds, rung.steps

    def begin(self, rung: Rung, trainings: int, trained: int) -> None:
        """Begin or continue a rung of `trainings`, of which `trained` have ended."""
        number = self.rungs.index(rung)
        if number != self._number:
            self._best = None
        if not self._late and number and self.rungs[number - 1].steps == rung.steps:
            # Its first folds are those of the rung before, which trained as long.
            again = trainings * self._folds[number - 1] // self._folds[number]
            trainings, trained = trainings - again, max(0, trained - again)
        self._number, self._trainings, self._trained = number, trainings, trained
        self._send()

    def trained(self, ended: Training, result: tuple[Racer, RungResult] | None) -> None:
        """Count a training; `result` is that of its racer, after the last fold."""
        self._trained += 1
        self.result(result)
        self._send(ended)

    def result(self, result: tuple[Racer, RungResult] | None) -> None:
        """Keep the best accuracy of the rung."""
        accuracy = None if result is None else result[1].shown
        if accuracy is not None and (self._best is None or accuracy > self._best[1]):
            assert result is not None
            self._best = result[0], accuracy

    def end(
        self,
        ranked: Sequence[Racer],
        kept: int,
        results: Mapping[TrialKey, Sequence[RungResult]],
        scores: Mapping[TrialKey, float],
    ) -> None:
        """Send the ranks of a rung; the first `kept` racers are promoted or win."""
        rows = (
            RungRow(
                racer,
                results[racer.key][-1].shown,
                scores[racer.key],
                rank < kept,
            )
            for rank, racer in enumerate(ranked)
        )
        rung = self.rungs[self._number]
        self._listener.rung(
            RungEnd(
                self._number + 1,
                len(self.rungs),
                rung.steps,
                self._folds[self._number],
                tuple(rows),
                next((name for one in results.values() for name in one[-1].figures), "accuracy"),
            )
        )

    def extend(self, steps: int) -> None:
        """Plan more steps for the last rung; the trainings that begin then are these alone."""
        self._late = steps

    def _send(self, ended: Training | None = None) -> None:
        before, this = sum(self._steps[: self._number]), self._steps[self._number]
        if self._late:
            before, this = sum(self._steps), self._late
        steps = before + round(this * self._trained / max(1, self._trainings))
        self._listener.training(
            RaceProgress(
                self._number + 1,
                len(self.rungs),
                self._trained,
                self._trainings,
                steps,
                sum(self._steps) + self._late,
                self._best,
                ended,
            )
        )
