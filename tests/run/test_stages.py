"""The stages of a run: what they read and write, and what is there already."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from hytas.data import Scene
from hytas.run import SILENT, RunConfig, RunFolder, run_pipeline
from hytas.run.context import open_run, prepare
from hytas.run.folder import ARTEFACTS
from hytas.run.stages import (
    EXPORT,
    FOLDS,
    MAP,
    PREDICTIONS,
    RACE,
    REFERENCES,
    SEARCH,
    TRAIN,
    Stage,
    plan_of,
)
from hytas.train import Recipe
from tiny import SPACE

CONFIG = RunConfig(
    budget="2K..8K-params",
    space=SPACE,
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


def paths(folder: RunFolder, names: Iterable[str]) -> set[Path]:
    return {path for name in names for path in ARTEFACTS[name].paths(folder.path)}


@pytest.fixture(scope="module")
def finished(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, stage by stage, each of which writes what the table says."""
    out = tmp_path_factory.mktemp("runs") / "run"
    with open_run(out, CONFIG, scene, "cpu", SILENT) as run:
        plan = plan_of(run.context)
        for stage in (*plan.choosing, *plan.finishing):
            assert not stage.is_done(run), stage.name
            before = set(out.iterdir())
            stage.work(run)
            written = paths(run.folder, [*stage.writes(), *stage.changes])
            needed = [n for n in stage.writes() if not ARTEFACTS[n].optional]
            assert all(file.exists() for file in paths(run.folder, needed)), stage.name
            assert set(out.iterdir()) - before <= {*written, run.folder.fits}, stage.name
    return out


def test_the_plan_is_chosen_once_by_configuration_and_data(scene: Scene) -> None:
    device = torch.device("cpu")
    ordinary = prepare(CONFIG, scene, device)
    assert plan_of(ordinary).training == (FOLDS, TRAIN)
    assert plan_of(ordinary).choosing == (SEARCH, RACE)
    assert plan_of(ordinary).delivering[-1] is MAP
    assert REFERENCES not in plan_of(ordinary, references=False).finishing
    images = RunConfig(budget="300K-params", data="digits", space="autoformer-mini")
    assert plan_of(prepare(images, images.load_scene(), device)).delivering[-1] is PREDICTIONS


def test_what_is_there_is_not_done_again(scene: Scene, finished: Path) -> None:
    def times() -> dict[str, int]:
        files = [
            file for file in finished.iterdir() if file.suffix in (".html", ".npz", ".onnx", ".png")
        ]
        return {file.name: file.stat().st_mtime_ns for file in files if file.name != ".lock"}

    before = times()
    run_pipeline(CONFIG, scene, finished, device="cpu")
    assert times() == before
    (finished / "map.png").unlink()
    run_pipeline(CONFIG, scene, finished, device="cpu")
    after = times()
    assert after.keys() == before.keys()
    again = {name for name in before if after[name] != before[name]}
    assert again == {"map.png", "pixels.npz", "report.html"}  # which tells times


@pytest.mark.parametrize(
    ("missing", "undone"),
    [
        ((), ()),
        (("architecture",), (SEARCH, RACE)),
        (("weights",), (TRAIN,)),
        (("references",), (REFERENCES,)),
        (("onnx",), (EXPORT,)),
        (("torchscript",), (EXPORT,)),
        (("metrics",), (EXPORT,)),
        (("map",), (MAP,)),
        (("pixels",), (MAP,)),
        (("map", "metrics"), (EXPORT, MAP)),
        (("evaluations",), ()),  # the winner is chosen
    ],
)
def test_a_missing_file_asks_for_its_stage(
    missing: tuple[str, ...],
    undone: tuple[Stage, ...],
    scene: Scene,
    finished: Path,
    tmp_path: Path,
) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "run"))
    with open_run(copy, CONFIG, scene, "cpu", SILENT) as run:
        for file in paths(run.folder, missing):
            file.unlink()
        plan = plan_of(run.context)
        stages = [stage for stage in (*plan.choosing, *plan.finishing) if not stage.always]
        assert [stage for stage in stages if not stage.is_done(run)] == list(undone)
