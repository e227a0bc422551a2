"""What stands for no data means the same to every format: the centre of its band."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from small_model import SHALLOW, Exported, small_model, small_scene

from hytas.data import PatchReader
from hytas.deploy import DeployedModel, classify_scene
from hytas.export import FORMATS, Evidence, export_checked
from hytas.export.parity import open_exported

MARK = -9999.0
HOLES = [(4, 3), (4, 4), (5, 3), (12, 20)]


# Graphs of whole scenes and of tiles take no patches; test_export.py tests what they do.
PATCH_FORMATS = [name for name in FORMATS if "scene" not in name and name not in ("qgis", "stac")]


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Every patch format of a model that knows a mark, written on a scene that has it."""
    scene = dataclasses.replace(small_scene("float32", height=15), nodata=MARK)
    model, card = small_model(scene, SHALLOW)
    for row, column in HOLES:
        scene.cube[row, column] = MARK
    scene.cube[9, 9, 3:6] = MARK  # bands that failed, in a pixel that holds data
    pixels = np.flatnonzero(np.isin(np.arange(scene.labels.size), _flat(HOLES), invert=True))
    evidence = Evidence(model, PatchReader(scene.cube, card.patch_size), pixels, pixels)
    evidence = dataclasses.replace(evidence, targets=evidence.expected.argmax(1))
    folder = tmp_path_factory.mktemp("marked")
    # Of so few pixels, half a point of OA is one or two: forced if int8 changes as many.
    found = export_checked(folder, card, PATCH_FORMATS, evidence, force=True)
    files = {name: Path(figures["file"]) for name, figures in found.items()}
    return Exported(scene, model, card, folder, files)


def _flat(places: list[tuple[int, int]]) -> list[int]:
    return [row * 23 + column for row, column in places]


def beside_holes(scene: Exported) -> np.ndarray:
    """Patches of the pixels around the holes, (n, 5, 5, 24)."""
    offsets = (np.arange(-2, 3)[:, None] * 23 + np.arange(-2, 3)).ravel()
    pixels = np.unique([at + offsets for at in _flat([(4, 3), (12, 20), (9, 9)])])
    return PatchReader(scene.scene.cube, 5)(pixels)


@pytest.mark.parametrize("name", PATCH_FORMATS)
def test_no_data_is_the_centre_in_every_format(marked: Exported, name: str) -> None:
    run, patches = open_exported(marked.files[name]), beside_holes(marked)
    centres = np.zeros(24, np.float32)
    centres[marked.model.scaling.bands] = marked.model.scaling.offset
    found = run(patches)
    centred = run(np.where(patches == np.float32(MARK), centres, patches))
    assert np.isfinite(found).all()
    assert np.abs(found - centred).max() < 1e-6
    # And the centre is not what the mark's own value would be to the network.
    other = run(np.where(patches == np.float32(MARK), np.float32(MARK + 1), patches))
    assert np.abs(found - other).max() > 0.05


@pytest.mark.parametrize("name", ["onnx-fp16", "onnx-int8"])
def test_the_same_pixels_hold_no_data_in_every_map(marked: Exported, name: str) -> None:
    plain, other = (
        DeployedModel.load(marked.files[kind], "cpu", threads=1) for kind in ("onnx", name)
    )
    assert other.card.nodata == MARK
    expected = classify_scene(plain, marked.scene.cube)
    found = classify_scene(other, marked.scene.cube)
    assert np.argwhere(found.labels == 0).tolist() == sorted(map(list, HOLES))
    assert np.array_equal(found.confidence == 0, expected.labels == 0)
    assert (found.labels == expected.labels).mean() >= 0.98
    # A scene with a mark of its own, read by the same file.
    cube = np.where(marked.scene.cube == np.float32(MARK), np.float32(-1), marked.scene.cube)
    again = classify_scene(other, cube, nodata=-1.0)
    assert again.labels.tobytes() == found.labels.tobytes()
    assert again.confidence.tobytes() == found.confidence.tobytes()
