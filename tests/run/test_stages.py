"""The stages of a run: what they read and write, and what is there already."""

import shutil
from pathlib import Path

import pytest

from hytas.data import Scene
from hytas.job import run_pipeline
from hytas.run import RunConfig
from hytas.run.folder import ARTEFACTS
from hytas.train import Recipe
from tiny import SPACE
from told import Told

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


@pytest.fixture(scope="module")
def finished(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run."""
    out = tmp_path_factory.mktemp("runs") / "run"
    run_pipeline(CONFIG, scene, out, device="cpu")
    return out


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
    ("missing", "again"),
    [
        ("architecture", ["search", "race", "final training", "reference methods"]),
        ("weights", ["final training", "reference methods", "export", "map"]),
        ("references", ["reference methods"]),
        ("onnx", ["export", "map"]),
        ("torchscript", ["export", "map"]),
        ("tested", ["export", "map"]),
        ("map", ["map"]),
        ("pixels", ["map"]),
        ("evaluations", []),  # the winner is chosen
    ],
)
def test_a_missing_file_asks_for_its_stage_and_for_what_is_made_from_it(
    missing: str, again: list[str], scene: Scene, finished: Path, tmp_path: Path
) -> None:
    copy, told = Path(shutil.copytree(finished, tmp_path / "run")), Told()
    ARTEFACTS[missing].path(copy).unlink()
    run_pipeline(CONFIG, scene, copy, device="cpu", report=told)
    if missing == "architecture":
        again = [*again, "export", "map"]
    assert told.stages == [*again, "report"]
    for name in ("architecture.json", "weights.safetensors", "model.onnx", "references.json"):
        assert (copy / name).read_bytes() == (finished / name).read_bytes()
