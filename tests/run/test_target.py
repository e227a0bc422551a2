"""A run whose finalists are ranked in the format that ships."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from without_references import run_pipeline

from hytas import plugins
from hytas.data import Scene
from hytas.run import RunConfig
from hytas.train import Recipe
from refusals import refuses
from tiny import SPACE

CONFIG = RunConfig(
    budget="10K-params",
    space=SPACE,
    proxy="params",
    population=8,
    generations=2,
    finalists=4,
    race_steps=2,
    ranking="accuracy",
    patch_size=3,
    split="random",  # type: ignore[arg-type]
    train_per_class=10,  # type: ignore[call-arg]
    recipe=Recipe(epochs=2, batch_size=16),
)
RACE = replace(CONFIG, recipe=Recipe(epochs=0, batch_size=16))
PLUGIN = """
import pickle

import numpy as np
import torch

from hytas import plugins


def open_chip(path):
    width, model = pickle.loads(path.read_bytes())

    def run(patches):
        with torch.no_grad():
            chances = model(torch.from_numpy(np.asarray(patches, np.float32))).numpy()
        return chances[:, ::-1] if width in BROKEN else chances

    return run


@plugins.target("chip", "model.chip", open_chip)
def to_chip(model, path, card):
    '''A chip that computes networks of some widths wrong.'''
    path.write_bytes(pickle.dumps((card.architecture.get("embed_dim"), model)))
"""


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    yield
    for name in plugins.loaded_plugins():
        plugins.unload(name)


def finalists_of(folder: Path, target: str) -> list[dict[str, Any]]:
    facts = json.loads((folder / "target.json").read_text())
    assert facts["target"] == target
    return list(facts["finalists"])


def test_the_winner_is_the_best_in_the_format_of_a_plug_in(scene: Scene, tmp_path: Path) -> None:
    """Also on workers, which get the plug-in with their work."""
    run_pipeline(RACE, scene, tmp_path / "as_trained", device="cpu")
    first = json.loads((tmp_path / "as_trained" / "architecture.json").read_text())
    mine = tmp_path / "mine.py"
    mine.write_text(PLUGIN.replace("BROKEN", f"[{first['embed_dim']}]"))
    plugins.load_plugins([str(mine)])
    config = replace(RACE, plugins=[str(mine)], target="chip")
    races = []
    for workers in (1, 2):
        run_pipeline(config, scene, tmp_path / str(workers), device="cpu", workers=workers)
        races.append(finalists_of(tmp_path / str(workers), "chip"))
    assert races[0] == races[1]
    winner, *others = races[0]
    assert winner["won"]
    networks = [one for one in races[0] if one["architecture"]["space"] != "linear"]
    assert winner["architecture"].get("embed_dim") != first["embed_dim"]
    assert winner["accuracy"] >= max(one["accuracy"] for one in networks)
    (broken,) = (one for one in others if one["architecture"] == first)
    assert broken["accuracy"] < broken["accuracy_before"]


def test_a_run_writes_the_file_of_its_target(scene: Scene, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(PLUGIN.replace("BROKEN", "[]"))
    plugins.load_plugins([str(mine)])
    config = replace(CONFIG, plugins=[str(mine)], target="chip", finalists=2)
    run_pipeline(config, scene, out := tmp_path / "run", device="cpu")
    target = json.loads((out / "metrics.json").read_text())["target"]
    file = out / target["file"]
    assert (target["name"], file.name, target["OA"]) == ("chip", "model.chip", target["OA_torch"])
    assert target["finalists"] == finalists_of(out, "chip")
    assert "converted to chip before they were ranked" in (out / "report.html").read_text()
    assert file.stat().st_size == target["bytes"]


def test_a_target_must_be_known() -> None:
    with refuses("target", "fp4", "must be one of int8, fp16, w8"):
        replace(CONFIG, target="fp4")
