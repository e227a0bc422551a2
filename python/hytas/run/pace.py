"""The time of a run with `minutes`: when its parts end, and how long race and training may be.

The lengths of `effort` are the most that is done. Search, race and trainings each have a share of
the time; rates are measured in the run. A search or race that takes longer than expected ends with
the best that it has; a training keeps its length, which decides its result.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hytas.race import RaceTask, Rung, plan_rungs
from hytas.race.rungs import first_trainings

SEARCH_ENDS, RACE_ENDS = 0.2, 0.55
"""Shares of the time until the end of the trainings."""
ENDING_SHARE, LEAST_ENDING, MOST_ENDING = 0.25, 40.0, 90.0
"""Share of the whole time for reference methods, export, map and report; and seconds."""
SLACK = 1.2
"""Work takes so many times longer than measured: other work comes and goes on a machine."""
SHRINK = 0.9
LEAST_FINALISTS, LEAST_FIRST, LEAST_STEPS = 2, 10, 50


class Invocation(NamedTuple):
    """The command that does a run, for its record.

    Attributes:
        text: as a shell takes it; "" from Python.
        began: when its time began, by `time.time()`; None is now.
    """

    text: str = ""
    began: float | None = None


class Pace:
    """When the parts of a run end; without minutes, never.

    Args:
        minutes: of the whole run; None is no limit.
        before: seconds that earlier parts of the run took.
        began: when this part began, by `clock`; None is now.
    """

    def __init__(
        self,
        minutes: float | None = None,
        before: float = 0.0,
        began: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.minutes, self._clock, self._began = minutes, clock, began
        self._seconds = math.inf if minutes is None else 60.0 * minutes
        self._begin = (clock() if began is None else began) - before

    def take_began(self) -> float | None:
        """Return when this part of the run began, once: what came before its first stage counts."""
        began, self._began = self._began, None
        return began

    @property
    def ending(self) -> float:
        """Return the seconds that are kept for what follows the trainings."""
        whole = self._seconds
        return min(max(ENDING_SHARE * whole, LEAST_ENDING), MOST_ENDING, whole / 2)

    def left(self, share: float = 1.0) -> float:
        """Return the seconds, 0 or more, until a share of the time for search and training ends."""
        ends = self._begin + share * (self._seconds - self.ending)
        return max(0.0, ends - self._clock())

    def left_of_all(self) -> float:
        """Return the seconds until the end of the run; 0 or more."""
        return max(0.0, self._begin + self._seconds - self._clock())


class Lengths(NamedTuple):
    """Lengths of a race and of the final training that follows it.

    Attributes:
        finalists: of the first rung.
        race_steps: optimiser steps of the first rung.
        steps: of the final training.
    """

    finalists: int
    race_steps: int
    steps: int


class TrainingRate(NamedTuple):
    """What a training takes.

    Attributes:
        rest: seconds of what comes with each training: reading, evaluation.
    """

    step: float
    rest: float = 0.0


class Workload(NamedTuple):
    """What the lengths are multiplied by.

    Attributes:
        recipes: that each finalist is trained by.
        workers: that train at the same time.
        shares: of the final training's steps that are done one after another.
    """

    recipes: int
    workers: int
    shares: float


def race_seconds(task: RaceTask, lengths: Lengths, rate: TrainingRate, load: Workload) -> float:
    """Return the seconds that a race is expected to take."""
    share = len(task.folds) / len(task.all_folds)
    rungs = plan_rungs(
        lengths.finalists, lengths.race_steps, lengths.steps, share, task.last_finalists
    )
    total, before = 0.0, Rung(0, 0, 0)
    for rung in rungs:
        racers = rung.finalists
        if before.steps == 0:
            racers = first_trainings(racers, racers * load.recipes)
        folds = task.folds_of(rung)
        continued = 0 if before.steps == 0 else min(folds, task.folds_of(before))
        if rung.steps == before.steps:  # the folds of the rung before need no more steps
            folds, continued = folds - continued, 0
        steps = (folds * rung.steps - continued * before.steps) / folds
        calls = math.ceil(racers * folds / load.workers)
        total += calls * (steps * rate.step + rate.rest)
        before = rung
    return total


def fitting_lengths(
    task: RaceTask, most: Lengths, rate: TrainingRate, load: Workload, race: float, training: float
) -> Lengths:
    """Return the longest lengths whose race and final training take so many seconds.

    Both shrink together: finalists by a factor, steps by its root.

    Args:
        most: lengths that are not exceeded.
        race, training: seconds of both.
    """
    steps = fitting_steps(most.steps, rate, load, training)
    factor, lengths = 1.0, most._replace(steps=steps)
    while race_seconds(task, lengths, rate, load) * SLACK > race and factor > 1e-3:
        factor *= SHRINK
        lengths = Lengths(
            max(min(LEAST_FINALISTS, most.finalists), round(factor * most.finalists)),
            max(min(LEAST_FIRST, most.race_steps), round(factor**0.5 * most.race_steps)),
            min(steps, max(LEAST_STEPS, round(factor**0.5 * most.steps))),
        )
    return lengths


def fitting_steps(most: int, rate: TrainingRate, load: Workload, seconds: float) -> int:
    """Return the steps of a final training that takes so many seconds, at most `most`."""
    steps = int(seconds / (SLACK * max(rate.step, 1e-9) * load.shares))
    return min(most, max(LEAST_STEPS, steps))


def shortened(plan: Mapping[str, Any]) -> str:
    """Return what a run did less of for its minutes: "480 of 2,000 candidates, ..."

    Args:
        plan: content of `minutes.json`: name -> what is done, and what would be without minutes.
    """
    return ", ".join(
        f"{done:,} of {most:,} {name.replace('_', ' ')}"
        for name, (done, most) in plan.items()
        if done < most
    )
