"""Learning curves of a suite, and races that are replayed on them."""

from pathlib import Path

import pytest

from hytas.data import SplitSettings
from hytas.job import choose
from hytas.lab.benchmark.curve_table import TABLE, TEST, CurveTable, FinalFigures
from hytas.lab.benchmark.curves import make_curves
from hytas.lab.benchmark.replay import replay, usual_plan
from hytas.lab.benchmark.suite import SuiteTask
from hytas.run import RunConfig
from hytas.run.context import open_run
from hytas.run.folder import read_json
from hytas.run.progress import SILENT
from hytas.train import Recipe
from tiny import SPACE

SUITE = sorted((Path(__file__).parents[2] / "benchmarks" / "suite").glob("*.toml"))
SPLITS = {
    "fixed": SplitSettings("fixed"),
    "random": SplitSettings("random", train_per_class=8),
    "blocks": SplitSettings("blocks", train_per_class=12, block=8),
}


def small_task(name: str) -> SuiteTask:
    config = RunConfig(
        space=SPACE,
        budget="10K-params",
        patch_size=3,
        population=6,
        generations=2,
        finalists=3,
        race_steps=4,
        recipe=Recipe(steps=16),
        presets="full,plain",
        split=SPLITS[name],
    )
    scene = {"height": 40, "width": 40, "bands": 24, "train_per_class": 12}
    return SuiteTask(name, "A small scene", "synthetic", config, scene)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("curves")
    make_curves([small_task(name) for name in SPLITS], out, networks=3, workers=1, device="cpu")
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLITS)
def test_a_replay_has_the_winner_of_a_real_race(name: str, tables: Path, tmp_path: Path) -> None:
    task, table = small_task(name), CurveTable.load(tables / f"{name}{TABLE}")
    test = FinalFigures.load(tables / f"{name}{TEST}")
    with open_run(
        tmp_path / "run", task.config, task.load(tmp_path), "cpu", SILENT, workers=1
    ) as run:
        choose(run)
        architecture, recipe = read_json(run.folder.architecture), read_json(run.folder.recipe)
    replayed = replay(usual_plan, table, test, of_all=True)
    assert replayed.winner.finalist.architecture == architecture
    assert replayed.winner.recipe == recipe["preset"]
    assert replayed.regret >= 0


@pytest.mark.slow
def test_the_same_call_trains_nothing_again(tables: Path) -> None:
    before = {path.name: path.read_bytes() for path in tables.glob("fixed.*")}
    fits = {path: path.stat().st_mtime_ns for path in (tables / "runs/fixed/fits").glob("*.npz")}
    make_curves([small_task("fixed")], tables, networks=3, workers=1, device="cpu")
    assert {path.name: path.read_bytes() for path in tables.glob("fixed.*")} == before
    assert {path: path.stat().st_mtime_ns for path in fits} == fits


def test_the_tasks_of_the_suite_are_read() -> None:
    tasks = [SuiteTask.read(path) for path in SUITE]
    assert len(tasks) >= 16
    assert {one.config.split.kind for one in tasks} >= {"fixed", "random", "blocks", "groups"}
    assert {one.config.split.train_per_class for one in tasks} >= {8, 20, 50}
    generated = [one for one in tasks if one.generated is not None]
    assert generated
    assert not any(one.lacks for one in generated)
