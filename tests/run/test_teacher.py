"""The model of a run teaches another training, and reads none of its held-out labels."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from hytas.data import Scene
from hytas.job import export_run, train_architecture
from hytas.run import SILENT, RunConfig
from hytas.run.context import RunContext, open_run, prepare
from hytas.run.final.task import final_task
from hytas.run.folder import RunFolder
from hytas.run.weights import load_weights
from hytas.train import Recipe
from refusals import refuses
from tiny import SPACE

GENES = {"space": "hytas", "depth": 1, "embed_dim": 8, "num_heads": [1], "mlp_ratio": [1]}
CPU = torch.device("cpu")


def config(**changed: object) -> RunConfig:
    usual = {
        "data": "stripes",
        "space": SPACE,
        "recipe": Recipe(epochs=1),
        "presets": "plain",
        "patch_size": 3,
        "split": "random",
        "train_per_class": 20,
    }
    return RunConfig(**{**usual, **changed})


@pytest.fixture(scope="module")
def large(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("teacher") / "run"
    train_architecture(GENES, config(), scene, out, device="cpu")
    return out


def taught(large: Path, scene: Scene, **changed: object) -> RunContext:
    return prepare(config(teacher=str(large), **changed), scene, CPU)


def test_a_teacher_of_the_same_split_saw_no_test_pixel(large: Path, scene: Scene) -> None:
    for path in (large, large / "model.onnx"):
        context = taught(path, scene)
        teacher = context.teacher
        assert teacher is not None
        assert np.array_equal(teacher.seen, context.data.split.train_and_validation)


def test_validation_pixels_that_decide_are_held_out(large: Path, scene: Scene) -> None:
    with refuses("teacher", rule="validation pixels.*leave `final_training_on`"):
        assert taught(large, scene, final_training_on="train").teacher


def test_a_fold_is_trained_without_a_teacher_that_saw_it(
    large: Path, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.run.context.ENOUGH_PIXELS", 30)
    settings = config(teacher=str(large), self_training="none")
    train_architecture(GENES, settings, scene, tmp_path / "run", device="cpu")
    with open_run(tmp_path / "run", settings, scene, "cpu", SILENT) as run:
        task = final_task(run)
        assert task.folds
        assert not any(fold.first.taught for fold in task.folds)
        winner = task.winner(False)
        assert winner.taught
        assert run.context.source.training(winner, None).teacher is run.context.teacher
    sources = load_weights(RunFolder(tmp_path / "run").weights).card.learnt_from
    assert [one["name"] for one in sources] == ["stripes", "stripes"]


def test_a_taught_run_is_exported_without_its_teacher(
    large: Path, scene: Scene, tmp_path: Path
) -> None:
    teacher, out = tmp_path / "teacher", tmp_path / "run"
    shutil.copytree(large, teacher)
    settings = config(teacher=str(teacher))
    train_architecture(GENES, settings, scene, out, device="cpu")
    before = (out / "config.json").read_bytes()
    shutil.rmtree(teacher)
    export_run(settings, scene, out)
    assert (out / "config.json").read_bytes() == before
