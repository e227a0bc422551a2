"""Finished runs whose files were damaged: made again and said, or named and refused."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import torch

from hytas.data import Scene
from hytas.job import run_pipeline
from hytas.manifest import Manifest
from hytas.run import Outcome, RunConfig
from hytas.run.folder import ARTEFACTS
from hytas.train import Recipe
from small import strips
from tiny import SPACE
from told import Told

CONFIG = RunConfig(
    budget="2K..8K-params",
    space=SPACE,
    proxy="params",
    population=4,
    generations=2,
    finalists=1,
    pareto="params,score",
    recipe=Recipe(epochs=1),
    validation_fraction=0.3,
)
Damage = Callable[[bytes], bytes]


def emptied(content: bytes) -> bytes:
    return b""


def truncated(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def flipped(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.fixture(scope="module")
def scene() -> Scene:
    return strips()


@pytest.fixture(scope="module")
def whole(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run_pipeline(CONFIG, scene, folder, device="cpu")
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def again(scene: Scene, folder: Path, **changed: Any) -> tuple[Outcome, list[str]]:
    """The same command once more: its outcome, and what it said of damage."""
    told = Told()
    config = replace(CONFIG, **changed)
    outcome = run_pipeline(config, scene, folder, device="cpu", report=told)
    lines = [line for line in told.lines if not line.startswith("goes on in ")]
    return outcome, [line for line in lines if "damaged" in line or "missing" in line]


def change(path: Path, damage: Damage) -> None:
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert path.read_bytes() != content


def test_a_manifest_names_every_file(whole: Path) -> None:
    names = {path.name for path in whole.iterdir() if path.is_file()}
    names -= {".lock", "manifest.json", "run.log", "times.json"}
    manifest = Manifest(whole)
    assert set(manifest.names()) == names
    assert manifest.faults() == {}
    entry = json.loads((whole / "manifest.json").read_text())["files"]["model.onnx"]
    assert entry["bytes"] == (whole / "model.onnx").stat().st_size


def test_a_whole_run_is_left_as_it_is(scene: Scene, run: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    _, said = again(scene, run)
    assert said == []
    after = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    moved = {name for name, time in after.items() if before.get(name) != time}
    copied = {"report.html"}  # it names the folder
    assert moved <= copied | {
        *(".lock", "manifest.json", "evaluations.sqlite", "metrics.json", "run.log")
    }


@pytest.mark.parametrize(
    "damaged", [{"model.onnx": emptied}, {"model.pt": flipped, "metrics.json": truncated}]
)
def test_exported_files_are_made_again(
    scene: Scene, run: Path, whole: Path, damaged: dict[str, Damage]
) -> None:
    for name, damage in damaged.items():
        change(run / name, damage)
    outcome, said = again(scene, run)
    assert sorted(line.split(":")[0] for line in said) == sorted(damaged)
    assert all(line.endswith("made again") for line in said)
    for file in ("model.onnx", "weights.safetensors"):
        assert (run / file).read_bytes() == (whole / file).read_bytes()
    torch.jit.load(str(run / "model.pt"))  # whose bytes are others in each process
    assert outcome.metrics == json.loads((whole / "metrics.json").read_text())
    assert Manifest(run).faults() == {}


def test_every_file_of_a_run_is_in_the_table(whole: Path) -> None:
    declared = [artefact.file for artefact in ARTEFACTS.values()]
    names = {path.name for path in whole.iterdir()} - {".lock", "manifest.json", "fits"}
    assert all(any(fnmatchcase(name, file) for file in declared) for name in names)
    for artefact in ARTEFACTS.values():
        assert set(artefact.made_from) <= set(ARTEFACTS)
        assert artefact.holds
