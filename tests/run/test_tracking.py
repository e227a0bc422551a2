"""Events of a run in the files of TensorBoard and MLflow."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hytas.data import Scene
from hytas.run import RunConfig, run_pipeline
from hytas.run.tracking import MLFLOW_USUAL, TRACKERS, Tracker, tracked
from hytas.tensors import write_tensors
from hytas.train import Epoch, Recipe
from refusals import refuses
from tiny import SPACE
from told import Told

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
WRITTEN = {
    "search/best",
    "race/accuracy",
    "rung/score",
    "train/loss",
    "test/OA",
    "cost/cpu_seconds",
}


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


def test_a_tracker_that_is_not_there_is_refused(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.run.tracking.find_spec", lambda _: None)
    with refuses("track", "mlflow", r"hytas\[track\]"):
        run_pipeline(replace(CONFIG, track="mlflow"), scene, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with refuses("track", "wandb", "must be one of tensorboard, mlflow"):
        replace(CONFIG, track=["wandb"])


class Broken(Tracker):
    """Fails with each number, and as it ends."""

    note = "a new run at http://me:secret@host"
    wrote = 0

    def __init__(self, folder: Path, config: RunConfig) -> None:
        type(self).wrote = 0

    @staticmethod
    def place(folder: Path) -> str:
        return "http://me:secret@host"

    def write(self, step: int, numbers: Any) -> None:
        type(self).wrote += 1
        raise RuntimeError("http://me:secret@host is\ngone")

    def close(self, *, ended: bool) -> None:
        raise RuntimeError("gone, too")


def test_a_tracker_that_fails_is_switched_off_with_one_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TRACKERS, "mlflow", Broken)
    told, config = Told(), replace(CONFIG, track="mlflow")
    with tracked(told, config, tmp_path) as report:
        report.end({"test/OA": 1.0})
        report.end({"test/OA": 1.0})
    assert Broken.wrote == 1
    assert told.notices == [
        "a new run at http://host",
        "track mlflow: RuntimeError: http://host is gone; nothing more is written to it",
    ]
    with pytest.raises(KeyError, match="of the run"), tracked(told, config, tmp_path):
        raise KeyError("of the run")


def test_a_server_that_does_not_answer_is_one_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="needs mlflow-skinny: pip install 'hytas[track]'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:9")
    for name, value in {**MLFLOW_USUAL, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}.items():
        monkeypatch.setenv(name, value)
    config = replace(CONFIG, track="mlflow")
    with (
        refuses("track", "mlflow", r"cannot be reached at http://127.0.0.1:9 \(MlflowException"),
        tracked(Told(), config, tmp_path),
    ):
        pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("before", ["", "f" * 32, "../x"])
def test_a_run_that_the_server_does_not_know_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    pytest.importorskip("mlflow", reason="needs mlflow-skinny: pip install 'hytas[track]'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    (tmp_path / ".mlflow-run").write_text(before)
    told, config = Told(), replace(CONFIG, track="mlflow")
    with tracked(told, config, tmp_path) as report:
        report.end({"test/OA": 1.0})
    (notice,) = told.notices
    assert "a new MLflow run" in notice
    kept = (tmp_path / ".mlflow-run").read_text()
    assert len(kept) == 32
    assert kept != before
    with tracked(told, config, tmp_path):
        assert len(told.notices) == 1
    assert (tmp_path / ".mlflow-run").read_text() == kept


class Steps(Broken):
    """Keeps names and steps."""

    found: ClassVar[list[tuple[str, int]]] = []

    def write(self, step: int, numbers: Any) -> None:
        self.found.extend((name, step) for name in numbers)

    def close(self, *, ended: bool) -> None:
        pass


def test_steps_follow_those_of_the_process_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TRACKERS, "mlflow", Steps)
    config = replace(CONFIG, track="mlflow")

    def record(name: str, facts: dict[str, Any]) -> None:
        write_tensors(tmp_path / name, {}, facts)

    def steps(*epochs: int, stage: str = "final training") -> list[tuple[str, int]]:
        Steps.found.clear()
        with tracked(Told(), config, tmp_path) as report:
            report.stage(stage)
            for number in epochs:
                report.epoch(Epoch(number, 9, 0.5, None, None, None, 1.0))
        return list(Steps.found)

    def train(*numbers: int) -> list[tuple[str, int]]:
        return [("train/loss", number) for number in numbers]

    assert steps(1, 2, 1, 2) == train(1, 2, 3, 4)
    record("checkpoint.safetensors", {"history": [{}] * 5})
    assert steps(6, 7, 1) == train(6, 7, 8)  # the first training goes on
    assert steps(1, 2, 1) == train(6, 7, 8)  # self-training begins
    record("checkpoint-self-training-0.safetensors", {"history": [{}] * 3})
    assert steps(4, 1) == train(9, 10)
    record("weights.safetensors", {"hytas.training": {"history": [{}] * 5}})
    assert steps(1) == train(6)  # a further seed
    (tmp_path / "weights.safetensors").write_bytes(b"damaged")
    assert steps(1) == train(1)
    assert steps(1, 2, stage="race") == [("supernet/loss", 1), ("supernet/loss", 2)]
