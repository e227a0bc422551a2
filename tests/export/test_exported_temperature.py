"""The temperature inside every file: the same labels, another confidence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_model import SHALLOW, small_model, small_scene

from hytas.data import PatchReader
from hytas.deploy import DeployedModel
from hytas.export import export_formats
from hytas.export.parity import open_exported

SCENE = small_scene()
PATCHES = PatchReader(SCENE.cube, 5)(np.arange(0, SCENE.labels.size, 5))


COOLED = 0.5


def plain_probabilities(patches: Any) -> Any:
    """What torch gives at temperature 1."""
    with torch.no_grad():
        return small_model(SCENE, SHALLOW)[0](torch.from_numpy(patches)).numpy()


def predictions(folder: Path, temperature: float, name: str) -> Any:
    """What a file of this format gives: probabilities, or labels and confidence of a tile."""
    model, card = small_model(SCENE, SHALLOW)
    model.temperature, card = temperature, replace(card, temperature=temperature)
    (path,) = export_formats(model, folder, card, [name]).values()
    if name != "onnx-scene":
        return open_exported(path)(PATCHES)
    deployed = DeployedModel.load(path, "cpu")
    assert deployed.card.temperature == temperature
    return deployed.run_tile(SCENE.cube[:12, :14])


@pytest.mark.parametrize(
    "name",
    [
        "onnx",
        "torchscript",
        # Traced from the same module as the others.
        pytest.param("onnx-int8", marks=pytest.mark.slow),
        pytest.param("pt2", marks=pytest.mark.slow),
        pytest.param("onnx-fp16", marks=pytest.mark.slow),
    ],
)
def test_every_patch_format_divides_its_logits(name: str, tmp_path: Path) -> None:
    exact = name in ("onnx", "torchscript", "pt2")
    plain = plain_probabilities(PATCHES) if exact else predictions(tmp_path, 1.0, name)
    plain, cooled = plain.astype(float), predictions(tmp_path, COOLED, name).astype(float)
    np.testing.assert_array_equal(plain.argmax(1), cooled.argmax(1))
    expected = plain ** (1 / COOLED)
    expected /= expected.sum(1, keepdims=True)
    assert np.abs(cooled - expected).max() < 1e-4
    assert np.abs(cooled - plain).max() > 0.05
