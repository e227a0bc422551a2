"""Objectives, losses, augmentations, reference methods and formats of a plug-in, in one run."""

import json
from pathlib import Path

import pytest

from hytas import plugins
from hytas.data import synthetic_scene
from hytas.job import export_run, run_pipeline
from hytas.references import METHODS, ReferenceResults, ReferenceSettings, run_references
from hytas.run import RunConfig, read_run
from hytas.train import Recipe
from refusals import refuses

TEXT = '''
import numpy as np
import torch

from hytas import plugins
from hytas.references import Predicted


@plugins.objective("small-first")
def small_first(columns):
    """Few parameters first, then a high score."""
    snip, params = map(np.asarray, columns)
    return -params + 1e-9 * snip


@plugins.loss("focal")
def focal(logits, targets):
    """Focal loss (Lin et al., ICCV 2017)."""
    logs = logits.log_softmax(1)
    return -((1 - logs.exp()) ** 2 * targets * logs).sum(1).mean()


@plugins.augmentation("dim")
def dim(patches, generator):
    """Darken each patch by a random factor."""
    factor = torch.rand(len(patches), 1, 1, 1, generator=generator, device=generator.device)
    return patches * (0.5 + 0.5 * factor.to(patches.device))


@plugins.reference("first-class", title="always the first class")
def first_class(task, progress):
    """Predict the first class everywhere."""
    return Predicted(np.zeros(len(task.test), np.int64))


def opened(path):
    from hytas.export.parity import open_torchscript

    return open_torchscript(path)


@plugins.target("own-script", "model.own.pt", opened)
def own_script(model, path, card):
    """Write TorchScript under another name."""
    from hytas.export.torch_files import export_torchscript

    export_torchscript(model, path, card)
'''


@pytest.fixture
def mine(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(TEXT, encoding="utf-8")
    plugins.load_plugins([str(path)])
    yield path
    plugins.unload(str(path))


def test_a_run_uses_them_all(mine: Path, tmp_path: Path) -> None:
    config = RunConfig(
        budget="20K-params",
        space="hytas-tiny",
        plugins=[str(mine)],
        proxy="small-first(snip,params)",
        recipe=Recipe(loss="focal", augmentation="dim", steps=4),
        effort="quick",
        population=4,
        generations=2,
        finalists=1,
        self_training="none",
    )
    assert config.plugins
    scene = synthetic_scene()
    run_pipeline(config, scene, tmp_path / "run", references=False, workers=1)
    run = read_run(tmp_path / "run")
    smallest = min(row["params"] for row in run.candidates())
    (winner,) = [row for row in run.candidates() if row["params"] == smallest][:1]
    chosen = json.loads((tmp_path / "run" / "architecture.json").read_text())
    assert chosen["embed_dim"] == winner["embed_dim"]
    _, files = export_run(config, scene, tmp_path / "run", formats=["own-script"])
    assert files["own-script"]["max_difference"] < 1e-4
    assert (tmp_path / "run" / "model.own.pt").exists()


def test_a_reference_method_is_compared(mine: Path) -> None:
    scene = synthetic_scene()
    settings = ReferenceSettings(split="random", train_per_class=10)
    results = ReferenceResults(None, settings.setting(scene))
    found = run_references(scene, settings, ["first-class"], [0], results)
    assert found["methods"]["first-class"]["title"] == "always the first class"


def test_a_loss_and_an_augmentation_change_the_training(mine: Path) -> None:
    with refuses("recipe", "loss=hinge", "of a plug-in"):
        Recipe(loss="hinge")
    with refuses("recipe", "augmentation=fog", "of a plug-in"):
        Recipe(augmentation="fog")
    assert METHODS["first-class"].load()


def test_every_method_of_the_table_is_there() -> None:
    assert all(callable(method.load()) for method in METHODS.values())
