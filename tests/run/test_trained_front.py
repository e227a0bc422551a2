"""A run that races for a Pareto front of trained networks."""

import json
from pathlib import Path

import numpy as np
import pytest
from without_references import run_pipeline

from hytas.data import Scene
from hytas.race import Racer, RungEnd, RungRow
from hytas.race.front import non_dominated
from hytas.run import RunConfig
from hytas.run.choosing.front import write_trained_front
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.train import Recipe
from tiny import SPACE

CONFIG = RunConfig(
    budget="10K-params",
    space=SPACE,
    proxy="params",
    pareto="params,accuracy",
    population=8,
    generations=2,
    finalists=4,
    race_steps=2,
    patch_size=3,
    split="random",  # type: ignore[arg-type]
    train_per_class=10,  # type: ignore[call-arg]
    recipe=Recipe(epochs=1, batch_size=16),
)


def test_front_metrics_and_report_show_the_trained_front(scene: Scene, tmp_path: Path) -> None:
    outcome = run_pipeline(CONFIG, scene, tmp_path, device="cpu")
    front = json.loads((tmp_path / "front.json").read_text())
    assert outcome.metrics is not None
    assert outcome.metrics["front"] == front
    points = np.array([[one["params"], -one["accuracy"]] for one in front["networks"]])
    assert non_dominated(points).all()
    assert (np.diff(points[:, 0]) >= 0).all()
    assert 0 < front["hypervolume"] < 1
    assert all(0 < one["params"] <= front["reference"]["params"] for one in front["networks"])
    page = (tmp_path / "report.html").read_text()
    assert f"Hypervolume {front['hypervolume']:.3f}" in page
    # A damaged front is made again from the trainings.
    whole = (tmp_path / "front.json").read_bytes()
    (tmp_path / "front.json").write_bytes(whole[:50])
    run_pipeline(CONFIG, scene, tmp_path, device="cpu")
    assert (tmp_path / "front.json").read_bytes() == whole


def test_the_front_is_of_the_last_rung_that_ended(tmp_path: Path) -> None:
    """Where the time of a race was over, trainings of a longer rung do not count."""
    rows = [(1000, 0.9, "full"), (500, 0.95, "plain"), (200, 0.8, "full"), (100, None, "full")]
    candidates = [
        Evaluation(number, 0, {"space": "s", "n": number}, {"params": params}, {}, {}, 0.0)
        for number, (params, *_) in enumerate(rows)
    ]
    ended = tuple(
        RungRow(Racer(one, recipe), accuracy, 0.0, False)
        for one, (_, accuracy, recipe) in zip(candidates, rows, strict=True)
    )
    with EvaluationStore(tmp_path / "evaluations.sqlite") as store:
        store.add(candidates)
        store.add_training(Training(0, "full", 80, 0, 50, {"accuracy": 1.0}, 0.0))
        facts = write_trained_front(
            tmp_path / "front.json", ["params"], store, RungEnd(2, 3, 40, 1, ended), 50
        )
    assert facts == json.loads((tmp_path / "front.json").read_text())
    assert (facts["steps"], facts["pixels"]) == (40, 50)
    found = [(one["params"], one["accuracy"], one["recipe"]) for one in facts["networks"]]
    assert found == [(200, 0.8, "full"), (500, 0.95, "plain")]
    assert facts["hypervolume"] == pytest.approx(0.3 * 0.8 + 0.5 * 0.95)
