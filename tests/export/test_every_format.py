"""The same questions to the files of every format, by the table of formats."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_model import SHALLOW, Exported, small_model, small_scene

from hytas.data import PatchReader
from hytas.deploy import DeployedModel, classify_scene
from hytas.export import FORMATS, Evidence, export_checked, export_formats
from hytas.export.parity import open_exported

MARK = -9999.0
HOLES = [(4, 3), (4, 4), (5, 3), (12, 20)]
COOLED = 0.5
EXACT = ("onnx", "torchscript", "pt2", "c", "onnx-scene")
# Smoothed maps and tiles of QGIS have tests of their own; a STAC item holds no model.
NAMES = [name for name in FORMATS if name not in ("onnx-scene-smooth", "qgis", "stac")]
OF_PATCHES = [name for name in NAMES if "scene" not in name]
OF_SCENES = [name for name in NAMES if "scene" in name]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A model with a no-data value, a dead band and a temperature, in every format."""
    scene = dataclasses.replace(small_scene("float32", height=15), nodata=MARK)
    model, card = small_model(scene, SHALLOW)
    model.temperature, card = COOLED, dataclasses.replace(card, temperature=COOLED)
    for row, column in HOLES:
        scene.cube[row, column] = MARK
    scene.cube[9, 9, 3:6] = MARK  # bands that failed, in a pixel that holds data
    held = np.flatnonzero((scene.cube != MARK).any(axis=2))
    evidence = Evidence(model, PatchReader(scene.cube, card.patch_size), held, held)
    evidence = dataclasses.replace(evidence, targets=evidence.expected.argmax(1))
    folder = tmp_path_factory.mktemp("every")
    # Of so few pixels, half a point of OA is one or two: forced if int8 changes as many.
    found = export_checked(folder, card, NAMES, evidence, force=True)
    files = {name: Path(figures["file"]) for name, figures in found.items()}
    return Exported(scene, model, card, folder, files)


@pytest.fixture(params=OF_PATCHES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(every: Exported, name: str) -> Callable[[Any], np.ndarray]:
    """A function of patches that runs the file of a format."""
    return open_exported(every.files[name])


def test_probabilities_are_those_of_torch_at_the_temperature(
    every: Exported, name: str, run: Callable[[Any], np.ndarray]
) -> None:
    patches = every.patches()
    every.model.temperature = 1.0
    plain = every.probabilities(patches).astype(np.float64)
    every.model.temperature = COOLED
    expected = plain ** (1 / COOLED)
    expected /= expected.sum(axis=1, keepdims=True)
    found = run(patches)
    assert len(np.unique(expected.argmax(1))) >= 3  # or equal labels would say little
    assert np.abs(found - expected).max() < (1e-4 if name in EXACT else 0.1)
    assert (found.argmax(1) == expected.argmax(1)).mean() >= (1.0 if name in EXACT else 0.98)
    assert np.abs(plain - expected).max() > 0.15


def test_any_number_of_patches(
    every: Exported, name: str, run: Callable[[Any], np.ndarray]
) -> None:
    most = 0.05 if name == "onnx-int8" else 1e-5  # int8 takes the range of its batch
    patches = every.patches(41)
    expected = run(patches)
    for count in (1, 2):
        assert np.abs(run(patches[:count]) - expected[:count]).max() < most


def test_no_data_is_the_centre(every: Exported, run: Callable[[Any], np.ndarray]) -> None:
    offsets = (np.arange(-2, 3)[:, None] * 23 + np.arange(-2, 3)).ravel()
    beside = np.unique([23 * row + column + offsets for row, column in [*HOLES[::3], (9, 9)]])
    patches = every.patches()[beside]
    centres = np.zeros(24, np.float32)
    centres[every.model.scaling.bands] = every.model.scaling.offset
    found = run(patches)
    centred = run(np.where(patches == np.float32(MARK), centres, patches))
    assert np.isfinite(found).all()
    assert np.abs(found - centred).max() < 1e-6
    # And the centre is not what the mark's own value would be to the network.
    other = run(np.where(patches == np.float32(MARK), np.float32(MARK + 1), patches))
    assert np.abs(found - other).max() > 0.05


def test_a_dead_band_changes_nothing(every: Exported, run: Callable[[Any], np.ndarray]) -> None:
    assert 5 not in every.model.scaling.bands
    patches = every.patches(60)
    expected = run(patches)
    patches[..., 5] = np.nan
    np.testing.assert_array_equal(run(patches), expected)


@pytest.mark.parametrize("name", OF_SCENES)
def test_the_map_of_a_scene_graph_is_that_of_the_patches(every: Exported, name: str) -> None:
    patch, scene = (
        DeployedModel.load(every.files[kind], "cpu", threads=1) for kind in ("onnx", name)
    )
    assert scene.card.nodata == MARK
    expected = classify_scene(patch, every.scene.cube)
    found = classify_scene(scene, every.scene.cube)
    assert np.argwhere(found.labels == 0).tolist() == sorted(map(list, HOLES))
    assert (found.labels == expected.labels).mean() >= (1.0 if name in EXACT else 0.98)
    assert np.abs(found.confidence - expected.confidence).max() < (1e-4 if name in EXACT else 0.1)
    # A scene with a no-data value of its own, read by the same file.
    cube = np.where(every.scene.cube == np.float32(MARK), np.float32(-1), every.scene.cube)
    again = classify_scene(scene, cube, nodata=-1.0)
    assert again.labels.tobytes() == found.labels.tobytes()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("pt2", "torchscript")])
def test_the_file_is_the_same_each_time_and_names_no_path(
    every: Exported, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    every.model.train()
    (again,) = export_formats(every.model, tmp_path, every.card, [name]).values()
    assert every.model.training  # left as it was found
    every.model.eval()
    content = again.read_bytes()
    assert b"site-packages" not in content
    assert b".py" not in content
    assert capfd.readouterr() == ("", "")
    (twice,) = export_formats(every.model, tmp_path, every.card, [name]).values()
    assert twice.read_bytes() == content
