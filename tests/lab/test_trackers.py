"""Events of a run in the files of TensorBoard and MLflow."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hytas.data import Scene
from hytas.job import run_pipeline
from hytas.run import RunConfig
from hytas.train import Recipe
from small import strips
from tiny import SPACE

CONFIG = RunConfig(
    budget="2K..8K-params",
    space=SPACE,
    proxy="params",
    population=4,
    generations=2,
    finalists=2,
    race_steps=2,
    patch_size=3,
    split="random",  # type: ignore[arg-type]
    train_per_class=10,  # type: ignore[call-arg]
    recipe=Recipe(epochs=2, batch_size=16),
)
WRITTEN = {"search/best", "race/accuracy", "rung/score", "train/loss", "test/OA"}


@pytest.fixture(scope="module")
def scene() -> Scene:
    return strips()


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_the_events(scene: Scene, tmp_path: Path) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="needs tensorboard: pip install 'hytas[track]'",
    )
    outcome = run_pipeline(replace(CONFIG, track="tensorboard"), scene, tmp_path, device="cpu")
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) >= WRITTEN
    assert [one.step for one in events.Scalars("search/generation")] == [4, 8]
    assert [one.value for one in events.Scalars("search/generation")] == [1, 2]
    assert outcome.metrics is not None
    (accuracy,) = events.Scalars("test/OA")
    assert accuracy.value == pytest.approx(outcome.metrics["test"]["OA"])
    losses = [one.value for one in events.Scalars("train/loss")]
    history = outcome.metrics["training"]["history"]
    assert losses[:2] == pytest.approx([one["loss"] for one in history])


@pytest.mark.filterwarnings("ignore")
def test_mlflow_reads_the_events_and_a_run_goes_on_in_its_run(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="needs mlflow-skinny: pip install 'hytas[track]'")
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    config = replace(CONFIG, track="mlflow")
    run_pipeline(replace(config, recipe=Recipe(epochs=0)), scene, tmp_path / "run", device="cpu")
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    client: Any = MlflowClient()
    experiment = client.get_experiment_by_name("hytas")
    (found,) = client.search_runs([experiment.experiment_id])
    assert set(found.data.metrics) >= WRITTEN
    assert found.data.params["budget"] == "2K..8K-params"
    assert found.info.status == "FINISHED"
    assert found.info.run_name == "run"
