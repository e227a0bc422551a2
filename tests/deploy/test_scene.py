"""A whole scene, whatever the tiles, against one patch at a time."""

from typing import Any

import numpy as np
import pytest
import xarray
from small_model import Exported

from hytas.data import PatchReader, Scene
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.accuracy import check_truth, map_accuracy
from hytas.deploy.tiles import read_tile
from hytas.errors import InputError
from hytas.metrics import accuracy_report


@pytest.fixture(scope="module")
def deployed(exported: Exported) -> DeployedModel:
    return DeployedModel.load(exported.onnx, "cpu")


def test_the_map_is_that_of_one_patch_after_another(
    exported: Exported, deployed: DeployedModel
) -> None:
    rows: list[tuple[int, int]] = []
    found = classify_scene(
        deployed, exported.scene.cube, tile_rows=5, progress=lambda *at: rows.append(at)
    )
    expected = exported.probabilities(exported.patches())
    ids = np.array(exported.card.class_ids)[expected.argmax(1)]
    assert np.array_equal(found.labels, ids.reshape(17, 23))
    assert np.abs(found.confidence - expected.max(1).reshape(17, 23)).max() < 1e-5
    assert rows == [(5, 17), (10, 17), (15, 17), (17, 17)]


@pytest.mark.parametrize("tile_rows", [1, 2, 7, 16, 17, 400])
def test_the_map_is_the_same_to_the_bit_for_every_tile(
    exported: Exported, deployed: DeployedModel, tile_rows: int
) -> None:
    whole = classify_scene(deployed, exported.scene.cube)
    tiled = classify_scene(deployed, exported.scene.cube, tile_rows=tile_rows)
    assert np.array_equal(whole.labels, tiled.labels)
    assert np.array_equal(whole.confidence, tiled.confidence)


@pytest.mark.parametrize("margin", [0, 1, 3])
def test_tiles_mirror_as_patches_do(margin: int) -> None:
    cube = np.random.default_rng(0).integers(0, 99, (7, 9, 2))
    side = 2 * margin + 1
    for top, bottom in ((0, 7), (0, 1), (3, 5), (6, 7)):
        tile = read_tile(cube, top, bottom, margin)
        assert tile.shape == (bottom - top + 2 * margin, 9 + 2 * margin, 2)
        for row in range(top, bottom):
            patches = PatchReader(cube, side)(row * 9 + np.arange(9))
            for column in range(9):
                window = tile[row - top : row - top + side, column : column + side]
                assert np.array_equal(window, patches[column])


def test_pixels_without_data_are_zero(exported: Exported, deployed: DeployedModel) -> None:
    cube = exported.scene.cube.copy()
    cube[2, 3] = 65535
    cube[4, 5, 7] = 65535  # one band only: still a pixel with data
    cube[9] = 65535
    found = classify_scene(deployed, cube, nodata=65535.0)
    empty = np.zeros((17, 23), bool)
    empty[2, 3] = empty[9] = True
    assert np.array_equal(found.labels == 0, empty)
    assert np.array_equal(found.confidence == 0, empty)
    assert (classify_scene(deployed, cube).labels > 0).all()


def test_accuracy_counts_only_classes_that_the_model_knows(exported: Exported) -> None:
    card = exported.card
    truth = np.array([[3, 4, 9, 200], [3, 77, 0, 4]], np.int32)
    labels = np.array([[3, 9, 9, 200], [0, 3, 3, 4]], np.int32)
    found = map_accuracy(labels, truth, card)
    by_hand = accuracy_report([0, 1, 2, 3, 1], [0, 2, 2, 3, 1], card.class_names)
    assert found == {**by_hand, "unknown": 1}
    with pytest.raises(InputError, match="classes 1, 2 in the map; the model knows 3, 4, 9, 200"):
        map_accuracy(labels, np.array([[1, 2, 0, 0]] * 2, np.int32), card)
    with pytest.raises(
        InputError, match=r"classes 1 \(corn\), 2 in the map; the model knows 3 \(grass\), 4 \(gra"
    ):
        check_truth(np.array([[1, 2]], np.int32), card, {1: "corn"})
    assert map_accuracy(np.zeros_like(labels), truth, card) is None
    with pytest.raises(InputError, match="the map is 4 x 2 and the scene 2 x 4"):
        map_accuracy(labels, truth.T, card)


def as_data_array(scene: Scene) -> Any:
    """The scene on a grid of 10 m, with wavelengths in micrometres, bands first."""
    height, width, _ = scene.cube.shape
    coordinates = {
        "y": 600.0 - 10 * np.arange(height),
        "x": 100.0 + 10 * np.arange(width),
        "wavelength": ("band", scene.wavelengths / 1000, {"units": "um"}),
        "spatial_ref": ((), 0, {"crs_wkt": 'LOCAL_CS["plan",UNIT["metre",1]]'}),
    }
    array = xarray.DataArray(scene.cube, coordinates, ("y", "x", "band"))
    return array.transpose("band", "y", "x")


def test_a_data_array_gives_a_map_on_its_grid(exported: Exported, deployed: DeployedModel) -> None:
    array = as_data_array(exported.scene)
    found = classify_scene(deployed, array, strict=True)
    plain = classify_scene(deployed, exported.scene.cube)
    for values, expected in ((found.labels, plain.labels), (found.confidence, plain.confidence)):
        assert values.dims == ("y", "x")
        assert values.x.equals(array.x)
        assert values.y.equals(array.y)
        assert values.spatial_ref.attrs["crs_wkt"].startswith("LOCAL_CS")
        assert values.spatial_ref.attrs["GeoTransform"] == "95.0 10.0 0.0 605.0 0.0 -10.0"
        assert values.attrs["_FillValue"] == 0
        assert np.array_equal(values.values, expected)
    assert found.labels.attrs["flag_meanings"] == "grass gravel roof water"
