"""Smoothed maps of a whole scene: against the filter at once, whatever the tiles and the graph."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from small_model import Exported

from hytas.data import Preprocessing
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.smoothing import LineState, guided_rows
from hytas.errors import InputError
from hytas.export import export_formats


@pytest.fixture(scope="module")
def deployed(exported: Exported) -> DeployedModel:
    return DeployedModel.load(exported.onnx, "cpu")


@pytest.fixture(scope="module")
def holed(exported: Exported) -> np.ndarray:
    cube = exported.scene.cube.copy()
    cube[2, 3] = cube[9, 5:] = cube[16, 22] = 65535
    return cube


def at_once(exported: Exported, cube: np.ndarray) -> np.ndarray:
    """Smoothed probabilities (H, W, C) of a cube whose pixels of 65535 hold no data."""
    valid = (cube != 65535).any(axis=2)
    smoothing = DeployedModel.load(exported.onnx, "cpu").smoothing
    assert smoothing is not None
    scaling = Preprocessing.from_dict(exported.card.preprocessing)
    terms = np.where(valid[..., None], cube, np.array(exported.card.empty_values, cube.dtype))
    scene = dataclasses.replace(exported.scene, cube=terms)
    chances = exported.probabilities(dataclasses.replace(exported, scene=scene).patches())
    chances = chances.reshape(*valid.shape, -1)
    guide = [smoothing.guide(scaling.apply(row)) for row in terms]
    rows = (LineState(*values) for values in zip(chances, guide, valid, strict=True))
    plain = np.stack(list(guided_rows(rows, smoothing.radius, smoothing.eps))).astype(np.float64)
    powers = plain ** (1 / smoothing.temperature)
    return powers / np.maximum(powers.sum(axis=2, keepdims=True), 1e-300)


def test_a_smoothed_map_is_that_of_the_filter_at_once(
    exported: Exported, deployed: DeployedModel, holed: np.ndarray
) -> None:
    expected = at_once(exported, holed)
    found = classify_scene(deployed, holed, nodata=65535, smooth="guided")
    valid = (holed != 65535).any(axis=2)
    assert np.abs(found.confidence - expected.max(axis=2)).max() < 1e-5
    ids = np.array(exported.card.class_ids)[expected.argmax(axis=2)]
    assert np.array_equal(found.labels, np.where(valid, ids, 0))
    raw = classify_scene(deployed, holed, nodata=65535)
    assert (raw.labels != found.labels).any()
    assert np.array_equal(raw.labels == 0, found.labels == 0)


@pytest.mark.parametrize("tile_rows", [1, 5, 16, 400])
def test_the_smoothed_map_is_the_same_to_the_bit_for_every_tile(
    deployed: DeployedModel, holed: np.ndarray, tile_rows: int
) -> None:
    whole = classify_scene(deployed, holed, nodata=65535, smooth="guided")
    tiled = classify_scene(deployed, holed, nodata=65535, smooth="guided", tile_rows=tile_rows)
    assert np.array_equal(whole.labels, tiled.labels)
    assert np.array_equal(whole.confidence, tiled.confidence)


@pytest.mark.slow
def test_scene_graphs_smooth_alike(models: dict[str, Exported], tmp_path: Path) -> None:
    """By the filter beside the graph, and by the one inside it, in strips."""
    exported = models["aware"]  # no data are -1 there
    cube = exported.scene.cube.copy()
    cube[2, 3] = cube[9, 5:] = -1
    files = export_formats(exported.model, tmp_path, exported.card, ["onnx", "onnx-scene-smooth"])
    files |= exported.files
    patch, beside = (DeployedModel.load(files[name], "cpu") for name in ("onnx", "onnx-scene"))
    expected = classify_scene(patch, cube, smooth="guided")
    found = [classify_scene(beside, cube, smooth="guided")]
    inside = DeployedModel.load(files["onnx-scene-smooth"], "cpu")
    found += [classify_scene(inside, cube, tile_rows=rows) for rows in (None, 4)]
    for one in found:
        assert np.abs(one.confidence - expected.confidence).max() < 1e-5
        assert np.array_equal(one.labels, expected.labels)
    with pytest.raises(InputError, match="smooths inside its graph") as error:
        classify_scene(inside, cube, smooth="none")
    assert (error.value.argument, error.value.value) == ("smooth", "none")
