"""A model of images is trained further on other images, and teaches another training."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hytas.job import train_architecture
from hytas.run import RunConfig
from hytas.run.folder import RunFolder
from hytas.run.prepared import prepare_scene
from hytas.run.start import further_config
from hytas.run.teacher import open_teacher
from hytas.run.weights import load_weights
from hytas.train import Recipe

GENES = {
    "space": "autoformer-mini",
    "depth": 2,
    "embed_dim": 32,
    "num_heads": [2, 2],
    "mlp_ratio": [2, 2],
}
RECIPE = Recipe(whitened=False, epochs=2, batch_size=16)


def images(path: Path, side: int, channels: int, classes: int) -> Path:
    """Bright squares in a place for each class, and noise."""
    generator = np.random.default_rng(side)
    labels = np.arange(20 * classes) % classes
    values = generator.integers(0, 60, (len(labels), side, side, channels))
    half = side // 2
    for number, label in enumerate(labels):
        row, column = half * (label // 2 % 2), half * (label % 2)
        values[number, row : row + half, column : column + half] += 120 + 40 * (label // 4)
    np.savez(path, images=values.astype(np.uint8), labels=labels)
    return path


def config(path: Path, **changed: object) -> RunConfig:
    usual = {"data": str(path), "space": GENES["space"], "recipe": RECIPE, "presets": "plain"}
    return RunConfig(**{**usual, **changed})


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    settings = config(images(folder / "small.npz", 8, 1, 4))
    train_architecture(GENES, settings, settings.load_scene(), folder / "run", device="cpu")
    return folder / "run"


def test_other_size_channels_and_classes(small: Path, tmp_path: Path) -> None:
    usual, genes = further_config(small)
    assert genes == GENES
    settings = replace(
        usual, data=str(images(tmp_path / "large.npz", 16, 3, 5)), recipe=RECIPE, presets="plain"
    )
    out = tmp_path / "run"
    outcome = train_architecture(genes, settings, settings.load_scene(), out, device="cpu")
    assert outcome.files["model.onnx"] > 0  # it was compared with torch
    card = load_weights(RunFolder(out).weights).card
    assert (card.patch_size, len(card.class_names)) == (16, 5)
    assert [one["name"] for one in card.learnt_from] == ["small", "large"]
    again = replace(settings, recipe=replace(RECIPE, epochs=0))
    begun = run_context(again).source.begun(genes, RECIPE, 0).state_dict()
    old = load_weights(RunFolder(small).weights).network.state_dict()
    for name in ("stream.blocks.0.fc1.weight", "stream.blocks.1.attention.qkv.weight"):
        assert torch.equal(begun[name], old[name])


def run_context(settings: RunConfig):
    from hytas.run.context import prepare

    return prepare(settings, settings.load_scene(), torch.device("cpu"))


def test_a_teacher_reads_images_that_are_scaled_otherwise(small: Path, tmp_path: Path) -> None:
    settings = config(small.parent / "small.npz", scaling="minmax")
    data = prepare_scene(settings, settings.load_scene())
    teacher = open_teacher(str(small), data, "training")
    pixels = data.split.test
    said = teacher(data.labelled(pixels).batch(np.arange(len(pixels)), torch.device("cpu"))[0])
    own = config(small.parent / "small.npz")
    theirs = prepare_scene(own, own.load_scene()).labelled(pixels)
    network = load_weights(RunFolder(small).weights).network.eval()
    logits = network(theirs.batch(np.arange(len(pixels)), torch.device("cpu"))[0])
    assert torch.equal(said.argmax(1), logits.argmax(1))
    taught = replace(settings, teacher=str(small))
    train_architecture(GENES, taught, taught.load_scene(), tmp_path / "run", device="cpu")
    kept = json.loads((tmp_path / "run" / "config.json").read_text())
    assert kept["config"]["final"]["teacher"] == str(small)
