"""The stages of a run: what they read and write, and what is there already."""

from pathlib import Path

import pytest

import hytas
from hytas.data import Scene
from hytas.run import SILENT, RunConfig, RunFolder, run_pipeline
from hytas.run.context import open_run
from hytas.run.stages import (
    CHARTS,
    CHOOSING,
    EXPORT,
    FINISHING,
    MAP,
    REFERENCES,
    REPORT,
    SEARCH,
    SEEDS,
    TRAIN,
)
from hytas.train import Recipe

STAGES = [stage for stage in (*CHOOSING, *FINISHING) if stage.of_map is not False]
CONFIG = RunConfig(
    budget="30K..60K-params",
    space="hytas",
    proxy="params",
    population=4,
    generations=1,
    finalists=2,
    race_steps=1,
    patch_size=3,
    split="random",
    train_per_class=10,
    recipe=Recipe(epochs=1, batch_size=16),
)


def path(folder: RunFolder, name: str) -> Path:
    found = getattr(folder, name)
    assert isinstance(found, Path)
    return found


@pytest.fixture(scope="module")
def finished(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, stage by stage, each of which keeps what it declares."""
    out = tmp_path_factory.mktemp("runs") / "run"
    with open_run(out, CONFIG, scene, "cpu", SILENT) as run:
        for stage in STAGES:
            assert not stage.is_done(run.folder), stage.name
            assert all(path(run.folder, name).exists() for name in stage.reads), stage.name
            before = set(out.iterdir())
            stage.work(run)
            written = {path(run.folder, name) for name in stage.writes}
            assert all(file.exists() for file in written), stage.name
            assert set(out.iterdir()) - before <= written, stage.name
    return out


def test_a_stage_reads_what_an_earlier_one_writes() -> None:
    there: set[str] = set()
    for stage in STAGES:
        assert set(stage.reads) <= there, stage.name
        there |= set(stage.writes)


def test_what_is_there_is_not_done_again(scene: Scene, finished: Path) -> None:
    def times() -> dict[str, int]:
        files = [file for file in finished.iterdir() if file.suffix not in (".sqlite", ".json")]
        return {file.name: file.stat().st_mtime_ns for file in files if file.name != ".lock"}

    before = times()
    run_pipeline(CONFIG, scene, finished, device="cpu")
    assert times() == before
    (finished / "confusion.svg").unlink()
    run_pipeline(CONFIG, scene, finished, device="cpu")
    after = times()
    assert after.keys() == before.keys()
    again = {name for name in before if after[name] != before[name]}
    assert again == {"confusion.svg", "learning-curve.svg", "report.html"}  # which tells times


@pytest.mark.parametrize(
    ("missing", "undone"),
    [
        ((), ()),
        (("architecture",), CHOOSING),
        (("weights",), (TRAIN,)),
        (("references",), (REFERENCES,)),
        (("onnx",), (EXPORT,)),
        (("torchscript",), (EXPORT,)),
        (("metrics",), (EXPORT,)),
        (("learning_curve",), (CHARTS,)),
        (("map",), (MAP,)),
        (("pixels",), (MAP,)),
        (("map", "confusion"), (CHARTS, MAP)),
        (("evaluations",), ()),  # the winner is chosen
    ],
)
def test_a_missing_file_asks_for_its_stage(
    missing: tuple[str, ...], undone: tuple[object, ...], tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path)
    for name in {name for stage in STAGES for name in stage.writes} - set(missing):
        path(folder, name).touch()
    assert [stage for stage in STAGES if not stage.is_done(folder)] == [*undone, SEEDS, REPORT]
    assert SEARCH.is_done(RunFolder(tmp_path / "none")) is False


def test_the_old_name_of_the_pipeline_is_read() -> None:
    assert hytas.run_mission is hytas.run_pipeline
    assert "run_mission" not in dir(hytas)
    assert "run_pipeline" in dir(hytas)
