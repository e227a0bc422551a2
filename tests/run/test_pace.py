"""Runs with `minutes`: lengths by measured rates, ends in time with its best, remaining time."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hytas.data import Scene
from hytas.job import run_pipeline
from hytas.race import plan_rungs
from hytas.run import RunConfig
from hytas.run.pace import (
    LEAST_STEPS,
    Invocation,
    Lengths,
    Pace,
    TrainingRate,
    Workload,
    fitting_lengths,
    fitting_steps,
    race_seconds,
)
from hytas.train import Recipe

MOST = Lengths(48, 60, 3000)
CONFIG = RunConfig(
    budget="30K..60K-params",
    space="hytas",
    proxy="params",
    population=8,
    generations=5,
    finalists=4,
    race_steps=4,
    patch_size=3,
    split="random",
    train_per_class=10,
    recipe=Recipe(steps=40, batch_size=16),
    minutes=1,
)


def task(folds: int = 1) -> Any:
    return SimpleNamespace(
        folds=[None] * folds,
        all_folds=[None] * folds,
        folds_of=lambda rung: folds,
        last_finalists=2,
    )


def test_parts_end_after_their_share_and_earlier_parts_count() -> None:
    now = [1000.0]
    pace = Pace(10, before=60.0, began=1000.0, clock=lambda: now[0])
    assert pace.left() == 600 - 60 - 90
    assert pace.left(0.2) == pytest.approx(0.2 * 510 - 60)
    now[0] += 450
    assert pace.left() == 0
    assert pace.left_of_all() == 90
    assert Pace().left() > 1e9


@pytest.mark.parametrize("speed", [1.0, 0.1, 0.01])
def test_lengths_fit_their_time_at_any_rate(speed: float) -> None:
    rate, load = TrainingRate(0.01 / speed, 0.1 / speed), Workload(2, 2, 3.0)
    lengths = fitting_lengths(task(2), MOST, rate, load, 300, 200)
    assert all(own <= most for own, most in zip(lengths, MOST, strict=True))
    assert race_seconds(task(2), lengths, rate, load) <= 300 or lengths[:2] == (2, 10)
    assert lengths.steps * rate.step * load.shares <= 200 or lengths.steps == 50


def test_the_last_rung_takes_the_time_of_its_further_folds() -> None:
    """Four finalists of 100 steps; two of these to 200 steps, also on four further folds."""
    further = task()
    further.all_folds, further.folds_of = [None] * 5, lambda rung: 5 if rung.all_folds else 1
    seconds = race_seconds(further, Lengths(4, 100, 1000), TrainingRate(1.0), Workload(1, 16, 1.0))
    last = plan_rungs(4, 100, 1000, 0.2)[1].steps
    assert seconds == 100 + (5 * last - 100) / 5


def test_with_much_time_nothing_is_shorter() -> None:
    assert fitting_lengths(task(), MOST, TrainingRate(0.001), Workload(2, 2, 2.0), 1e6, 1e6) == MOST
    assert fitting_steps(30, TrainingRate(0.001), Workload(2, 2, 2.0), 1e6) == 30


def test_a_slower_machine_does_less() -> None:
    found = [
        fitting_lengths(task(), MOST, TrainingRate(step), Workload(2, 2, 2.0), 100, 100)
        for step in (0.005, 0.02, 0.08)
    ]
    assert found[0] > found[1] > found[2]
    assert found[0].steps > found[1].steps > found[2].steps


def test_a_run_whose_time_is_over_ends_with_its_best(scene: Scene, tmp_path: Path) -> None:
    late = Invocation(began=time.time() - 59)
    outcome = run_pipeline(CONFIG, scene, tmp_path, device="cpu", command=late)
    assert outcome.metrics is not None
    assert outcome.metrics["references"]["reason"] == "the minutes of the run are over"
    assert json.loads((tmp_path / "minutes.json").read_text())["steps"][0] <= LEAST_STEPS
    plan = json.loads((tmp_path / "minutes.json").read_text())
    assert plan["candidates"] == [8, 40]
    assert plan["finalists"][0] == 2
    assert "For 1 minutes the run did 8 of 40 candidates" in (tmp_path / "report.html").read_text()
    # A finished run is shown again, as without minutes.
    assert run_pipeline(CONFIG, scene, tmp_path, device="cpu").metrics == outcome.metrics
