"""A band without a value is left out of the exported file: NaN in it changes no output."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_model import SHALLOW

from hytas.data import PatchReader, Preprocessing, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.export import describe, export_formats
from hytas.models import InputShape, SensorModel, build_network

LABELS = np.tile(np.arange(12) % 4, (10, 1))


@pytest.mark.parametrize(
    ("bands", "formats"), [(None, ["onnx", "onnx-scene"]), ("1-10,12-20", ["onnx"])]
)
def test_a_dead_band_does_not_reach_the_exported_file(
    tmp_path: Path, bands: str | None, formats: list[str]
) -> None:
    cube = np.random.default_rng(0).uniform(20, 90, (10, 12, 24)).astype(np.float32)
    cube[..., [5, 10]] = np.nan
    scene = scene_from_arrays(cube, LABELS, bands=bands)
    preprocessing = Preprocessing.fit_scene(scene, np.flatnonzero(scene.labels), bands=bands)
    assert not set(preprocessing.bands) & {5, 10}
    shape = InputShape(len(preprocessing.bands), scene.classes, 5, 3)
    model = SensorModel(build_network(SHALLOW, shape, seed=5), preprocessing).eval()
    card = describe(scene, preprocessing, SHALLOW, shape)
    assert card.bands == 24
    files = export_formats(model, tmp_path, card, formats)
    deployed, *whole = (DeployedModel.load(file, "cpu", threads=1) for file in files.values())
    patches = PatchReader(cube, 5)(np.arange(LABELS.size))
    found = deployed.predict_patches(patches)
    assert np.isfinite(found).all()
    clean = np.where(np.isnan(patches), np.float32(3), patches)
    np.testing.assert_array_equal(found, deployed.predict_patches(clean))
    with torch.no_grad():
        expected = model(torch.from_numpy(patches)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    labels = classify_scene(deployed, cube).labels
    assert (labels == np.reshape(card.class_ids, -1)[found.argmax(1)].reshape(10, 12)).all()
    for other in whole:
        np.testing.assert_array_equal(classify_scene(other, cube).labels, labels)
