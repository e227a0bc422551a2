"""Replay a race on a table of learning curves: nothing is trained."""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from hytas.lab.benchmark.curve_table import CurveTable, FinalFigures
from hytas.race import RacePlan, Racer, RaceTask
from hytas.race.plan import PlanStep, Reply, TrialBatch, Winner
from hytas.race.results import TrialKey
from hytas.search import Evaluation

Plan = Callable[[RaceTask, Sequence[Evaluation]], Generator[PlanStep, Reply, None]]
"""Starts a race of candidates, the best first: yields batches of trials and at last a `Winner`."""


class Replayed(NamedTuple):
    """The end of a replayed race.

    Attributes:
        steps: optimiser steps of all trainings; a longer one goes on from a shorter one.
        regret: by how much the winner's map, as it ships, is below the best map of the table.
    """

    winner: Racer
    steps: int
    regret: float


def usual_plan(task: RaceTask, ranked: Sequence[Evaluation]) -> Generator[PlanStep, Reply, None]:
    """Hold a race as `hytas search` does."""
    return RacePlan(task, ranked).walk()


def replay(plan: Plan, table: CurveTable, test: FinalFigures, *, of_all: bool = False) -> Replayed:
    """Replay a race; the figures of the test are read when it has a winner.

    Args:
        plan: its rules.
        table: has a training of each trial that the plan asks for, or of a near length.
        of_all: let all candidates of the search race, as in the run that made the table, and not
            only those that were trained. A plan that asks for others fails.

    Raises:
        KeyError: the table has no training of a network that the plan asks for.
        ValueError: the race ends without a winner.
    """
    candidates = table.candidates if of_all else table.trained_candidates
    walk = plan(table.task, candidates)
    longest: dict[tuple[TrialKey, int], int] = {}
    total, step = 0, next(walk)
    while not isinstance(step, Winner):
        trials = step.trials if isinstance(step, TrialBatch) else []
        for one in trials:
            before = longest.get((one.racer.key, one.fold), 0)
            if one.racer.finalist not in table.linear:
                total += max(0, one.rung.steps - before)
            longest[one.racer.key, one.fold] = max(before, one.rung.steps)
        step = walk.send(({one.key: table.training(one) for one in trials}, False))
    if step.racer is None:
        raise ValueError(step.reason)
    return Replayed(step.racer, total, test.regret(step.racer))
