"""A run that races for a Pareto front of trained networks."""

import json
from pathlib import Path

import numpy as np
from without_references import run_pipeline

from hytas.data import Scene
from hytas.race.front import non_dominated
from hytas.run import RunConfig
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
