"""Label rasters on another grid than the cube are brought onto it, or refused."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from products_made import emit
from rasterio import warp
from rasterio.transform import Affine

from hytas.data import Grid, labels_on_grid, load_scene
from hytas.data.labels.align import aligned
from hytas.errors import InputError

HEIGHT, WIDTH = 24, 30


def from_origin(west: float, north: float, width: float, height: float) -> Affine:
    return Affine(width, 0, west, 0, -height, north)


PLACE = from_origin(400000, 5800000, 30, 30)
UTM = "EPSG:32633"


def written(path: Path, values: np.ndarray, place: Affine | None, crs: str | None = UTM) -> Path:
    bands = values[None] if values.ndim == 2 else np.moveaxis(values, 2, 0)
    count, height, width = bands.shape
    size = {"count": count, "height": height, "width": width, "dtype": values.dtype.name}
    with rasterio.open(path, "w", driver="GTiff", transform=place, crs=crs, **size) as file:
        file.write(bands)
    return path


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    cube = np.random.default_rng(0).integers(10, 900, (HEIGHT, WIDTH, 5)).astype(np.int16)
    return written(tmp_path / "cube.tif", cube, PLACE)


@pytest.fixture
def truth() -> np.ndarray:
    """Labels that no turn, mirror or shift leaves alike."""
    return np.random.default_rng(1).integers(0, 4, (HEIGHT, WIDTH)).astype(np.uint8)


def grid(place: Affine | None = PLACE, crs: str | None = UTM) -> Grid:
    return Grid(None if place is None else tuple(place)[:6], crs, HEIGHT, WIDTH)


def nearest(values: np.ndarray, place: Affine, crs: str) -> np.ndarray:
    """The label at the centre of each pixel of the cube, one after the other."""
    result = np.zeros((HEIGHT, WIDTH), np.int64)
    for row in range(HEIGHT):
        for column in range(WIDTH):
            x, y = PLACE @ (column + 0.5, row + 0.5)
            if crs != UTM:
                (x,), (y,) = warp.transform(UTM, crs, [x], [y])
            at, line = (int(np.floor(part)) for part in ~place @ (x, y))
            if 0 <= line < values.shape[0] and 0 <= at < values.shape[1]:
                result[row, column] = values[line, at]
    return result


PIXELS = 30 / 1.11e5
OTHERS = [
    (PLACE @ Affine.translation(-5, -3), UTM),
    (PLACE @ Affine.translation(0.4, 0), UTM),
    (PLACE @ Affine.translation(0, HEIGHT) @ Affine.scale(1, -1), UTM),
    (PLACE @ Affine.translation(WIDTH, 0) @ Affine.scale(-1, 1), UTM),
    (from_origin(400000, 5800000, 60, 60), UTM),
    (PLACE @ Affine.translation(3, 2) @ Affine.rotation(20), UTM),
    (from_origin(13.53, 52.345, PIXELS, PIXELS), "EPSG:4326"),
]


@pytest.mark.parametrize(("place", "crs"), OTHERS)
def test_each_pixel_gets_the_label_at_its_centre(
    tmp_path: Path, scene: Path, truth: np.ndarray, place: Affine, crs: str
) -> None:
    labels = written(tmp_path / "gt.tif", truth, place, crs)
    expected = nearest(truth, place, crs)
    assert expected.any()
    loaded = load_scene(scene, labels)
    np.testing.assert_array_equal(loaded.labels, expected)
    (finding,) = loaded.findings
    assert (finding.code, finding.where) == ("labels-moved", "gt")
    assert crs in finding.facts["own"]
    assert finding.facts["count"] == (expected > 0).sum()
    result = labels_on_grid(labels, grid())
    np.testing.assert_array_equal(result.maps[0][1], expected)
    assert result.findings == (finding,)
    assert result.files == (labels,)
    truth[0, 0] = 99  # without a cube's pixel there
    cut = written(tmp_path / "cut.tif", truth, PLACE @ Affine.translation(-3, -2), UTM)
    for how, name in (
        ({}, "label 99"),
        ({"zero_is_a_class": True}, "label 99"),
        ({"class_names": {99: "corn"}}, "corn"),
    ):
        found = load_scene(scene, cut, **how).findings
        assert [one.facts for one in found if one.code == "classes-lost"] == [{"classes": [name]}]


def test_the_same_grid_stays_as_it_is(tmp_path: Path, scene: Path, truth: np.ndarray) -> None:
    for name, place in (("a", PLACE), ("b", PLACE @ Affine.translation(1e-4, 1e-4))):
        loaded = load_scene(scene, written(tmp_path / f"{name}.tif", truth, place))
        np.testing.assert_array_equal(loaded.labels, truth)
        assert loaded.notes == ()


def test_another_size_needs_a_place(tmp_path: Path, scene: Path, truth: np.ndarray) -> None:
    wide = np.tile(truth, (2, 2))
    loaded = load_scene(scene, written(tmp_path / "wide.tif", wide, PLACE))
    np.testing.assert_array_equal(loaded.labels, truth)
    np.save(tmp_path / "wide.npy", wide)
    with pytest.raises(InputError, match="no label map with the height and width of the cube"):
        load_scene(scene, tmp_path / "wide.npy")
    with pytest.raises(InputError, match="no label map with the height and width of the cube"):
        labels_on_grid(tmp_path / "wide.npy", grid())


def test_labels_of_another_place_are_refused(
    tmp_path: Path, scene: Path, truth: np.ndarray
) -> None:
    for place, crs in (
        (from_origin(700000, 5500000, 30, 30), UTM),
        (from_origin(-70, -52, 3e-4, 3e-4), "EPSG:4326"),
    ):
        labels = written(tmp_path / "gt.tif", truth, place, crs)
        with pytest.raises(InputError) as caught:
            load_scene(scene, labels)
        assert caught.value.rule.startswith("no label lies in the scene")
        assert "the scene x 400000 to 400900, y 5799280 to 5800000 of EPSG:32633" in str(
            caught.value
        )
        with pytest.raises(InputError, match="no label lies"):
            labels_on_grid(labels, grid())
    edge = np.zeros_like(truth)
    edge[0, :2] = 1, 2
    apart = written(tmp_path / "gt.tif", edge, PLACE @ Affine.translation(-20, -20))
    with pytest.raises(InputError, match="no label lies in the scene"):
        load_scene(scene, apart)


def test_without_a_place_pixels_are_taken_as_they_are(
    tmp_path: Path, scene: Path, truth: np.ndarray
) -> None:
    np.save(tmp_path / "gt.npy", truth)
    np.testing.assert_array_equal(load_scene(scene, tmp_path / "gt.npy").labels, truth)
    np.save(tmp_path / "cube.npy", np.ones((HEIGHT, WIDTH, 5), np.int16))
    far = written(tmp_path / "gt.tif", truth, from_origin(700000, 5500000, 30, 30))
    np.testing.assert_array_equal(load_scene(tmp_path / "cube.npy", far).labels, truth)


def test_a_grid_without_a_system(truth: np.ndarray) -> None:
    values = truth.astype(np.int64)
    shifted = grid(PLACE @ Affine.translation(-5, 0), None)
    (finding,) = aligned("gt", values, shifted, grid()).findings
    assert finding.code == "labels-moved"
    # Without a system, other numbers may mean the same place.
    far = grid(from_origin(0, 0, 1, 1), None)
    result = aligned("gt", values, far, grid())
    np.testing.assert_array_equal(result.values, values)
    assert [one.code for one in result.findings] == ["labels-pixel-by-pixel"]


def test_a_local_system_is_no_system(tmp_path: Path, scene: Path, truth: np.ndarray) -> None:
    path = written(tmp_path / "gt.tif", truth, PLACE)
    local = 'LOCAL_CS["Unknown",UNIT["metre",1]]'
    with rasterio.open(path, "r+") as file:
        file.crs = local
    np.testing.assert_array_equal(load_scene(scene, path).labels, truth)
    far = Grid((1, 0, 0, 0, -1, 0), local, HEIGHT, WIDTH)
    (finding,) = aligned("gt", truth.astype(np.int64), grid(), far).findings
    assert finding.code == "labels-pixel-by-pixel"


def test_a_training_and_a_test_map_on_other_grids(tmp_path: Path, truth: np.ndarray) -> None:
    half = np.arange(WIDTH) < WIDTH // 2
    maps = np.stack([truth * half, truth * ~half], axis=2)
    with rasterio.open(
        written(tmp_path / "both.tif", maps, PLACE @ Affine.translation(-2, -2))
    ) as file:
        train, test = (
            written(tmp_path / f"{name}.tif", file.read(band), file.transform)
            for band, name in ((1, "train"), (2, "test"))
        )
    result = [labels_on_grid(path, grid()).maps[0][1] for path in (train, test)]
    np.testing.assert_array_equal(result[0] + result[1], nearest(truth, file.transform, UTM))


def test_a_map_for_a_scene_in_sensor_geometry(tmp_path: Path) -> None:
    made = emit(tmp_path / "emit.nc", 30, 20)
    longitude, latitude = made["location/lon"], made["location/lat"]
    place = from_origin(longitude.min() - 3.7e-4, latitude.max() + 4.1e-4, 1e-3, 1e-3)
    values = np.random.default_rng(0).integers(1, 4, (40, 40)).astype(np.uint8)
    labels = written(tmp_path / "gt.tif", values, place, "EPSG:4326")
    loaded = load_scene(tmp_path / "emit.nc", labels)
    columns, rows = (np.floor(part).astype(int) for part in ~place @ (longitude, latitude))
    inside = (rows < 40) & (columns < 40) & (rows >= 0) & (columns >= 0)
    expected = np.where(inside, values[rows.clip(0, 39), columns.clip(0, 39)], 0)
    labelled = loaded.labels > 0
    np.testing.assert_array_equal(loaded.labels[labelled], expected[labelled])
    assert labelled.sum() > 300
    assert "labels-moved" in loaded.codes
