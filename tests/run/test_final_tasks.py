"""The winner's trainings in parallel: the final one, and those of the folds."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
from one_candidate import CONFIG

from hytas.data import Scene
from hytas.errors import InputError
from hytas.job import run_pipeline
from hytas.run.progress import Report
from hytas.tensors import read_facts, write_tensors
from hytas.workers import ExecutorWorkers, WorkersLike
from told import Told

KEPT = ("weights.safetensors", "model.onnx")
SAID = "trainings of the winner in parallel: processes of this machine"


class Progress(Told):
    """A report that also keeps how far the trainings were."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []

    def pixels(self, work: str, done: int, total: int) -> None:
        if work == "train":
            self.shares.append(done / total)


def files(
    scene: Scene, out: Path, workers: WorkersLike, report: Report | None = None
) -> list[bytes]:
    """The files that the trainings of a run decide."""
    run_pipeline(
        CONFIG,
        scene,
        out,
        device="cpu",
        references=False,
        workers=workers,
        report=report or Report(),
    )
    return [(out / name).read_bytes() for name in KEPT]


@pytest.fixture(scope="module")
def alone(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Those of a run in this process."""
    return files(scene, tmp_path_factory.mktemp("runs") / "alone", 1)


def test_they_are_the_same_in_parallel_and_report_their_progress(
    scene: Scene, alone: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.store.CHECKPOINT_SECONDS", 0.01)
    told = Progress()
    assert files(scene, tmp_path / "run", 2, told) == alone
    assert SAID in told.lines
    assert told.shares == sorted(told.shares)
    assert told.shares[-1] > 0
    assert not list((tmp_path / "run" / "fits").glob("*.safetensors"))


def test_workers_that_see_no_files_send_their_checkpoints(
    scene: Scene, alone: list[bytes], tmp_path: Path
) -> None:
    with ProcessPoolExecutor(1, get_context("forkserver")) as executor:
        workers = ExecutorWorkers(executor, 1, "far away", sees_files=False)
        assert files(scene, tmp_path / "run", workers) == alone


def test_a_training_that_diverges_is_told_and_leaves_no_checkpoint(
    scene: Scene, tmp_path: Path
) -> None:
    wild = replace(CONFIG, recipe=replace(CONFIG.recipe, learning_rate=1e6, epochs=6))
    with pytest.raises(InputError, match="the training diverged in epoch"):
        run_pipeline(wild, scene, tmp_path / "run", device="cpu", references=False, workers=2)
    assert not list((tmp_path / "run").rglob("*.part"))


def test_facts_are_read_without_the_tensors(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    write_tensors(path, {}, {"history": [1, 2]})
    assert read_facts(path)["history"] == [1, 2]
    whole = path.read_bytes()
    for broken in (whole[:20], b"", b"\xff" * 8 + b"{"):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="not a complete safetensors file"):
            read_facts(path)
