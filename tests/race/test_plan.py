"""The plan of a race: trainings in, the next trainings or the winner out."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_race import race, race_task, ranked

from hytas.race import plan
from hytas.race.plan import TrialBatch, Winner
from hytas.search import EvaluationStore

FIVE: dict[str, Any] = {"finalists": 5, "steps": 3}


@pytest.mark.parametrize(("folds", "recipes"), [(1, ("plain",)), (2, ("plain", "full"))])
def test_a_race_is_replayed_from_its_trainings(
    folds: int, recipes: tuple[str, ...], store: EvaluationStore
) -> None:
    task = race_task(folds, recipes=recipes, epochs=2)
    winner = race(task, ranked(7), store, workers=1, **FIVE)
    task = replace(task, **FIVE)
    trained = {((one.id, one.recipe), one.steps, one.fold): one for one in store.trainings()}
    results: dict[Any, Any] = {}
    batches = 0
    while isinstance(step := plan(task, ranked(7), results), TrialBatch):
        results |= {one.key: trained[one.key] for one in step.trials}
        batches += 1
    assert isinstance(step, Winner)
    assert step.racer == winner
    assert results == trained  # it asks for no training that the race did without
    assert batches > 1


def test_where_all_fail_the_winner_is_none(store: EvaluationStore) -> None:
    task = race_task(epochs=2)
    race(task, ranked(2), store, finalists=2, steps=3, workers=1)
    failed = {
        ((one.id, one.recipe), one.steps, one.fold): type(one)(
            one.id, one.recipe, one.steps, one.fold, one.pixels, {}, 0.0, "diverged"
        )
        for one in store.trainings()
    }
    step = plan(replace(task, finalists=2, steps=3), ranked(2), failed)
    assert step == Winner(None, "diverged")


def test_a_plan_reads_no_store_no_worker_and_no_clock() -> None:
    text = Path(inspect.getfile(plan)).read_text()
    for name in ("hytas.store", "hytas.workers", "hytas.race.events", "import time"):
        assert name not in text
