"""Continuous targets of a scene: rasters on any grid, points, arrays; and numbers in doubt."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from numpy.testing import assert_allclose

from hytas.data import Scene, load_scene, load_scenes
from hytas.errors import InputError
from hytas.types import Array

RANDOM = np.random.default_rng(0)
HEIGHT, WIDTH = 12, 10
CUBE = RANDOM.normal(size=(HEIGHT, WIDTH, 4)).astype(np.float32)
CARBON = RANDOM.uniform(1, 5, (HEIGHT, WIDTH)).astype(np.float32)
CARBON[::3] = np.nan
POINTS = [(1, 2, 3.5, ""), (4, 4, 1.25, "7"), (7, 9, 2.5, "8")]


def raster(path: Path, planes: Array, size: float = 10, left: float = 0, **facts: Any) -> Path:
    profile = {"driver": "GTiff", "dtype": "float32", "crs": "EPSG:32633", **facts}
    profile |= {"count": len(planes), "height": planes.shape[1], "width": planes.shape[2]}
    place = Affine(size, 0, 300000 + left, 0, -size, 5000000 - left)
    with rasterio.open(path, "w", transform=place, **profile) as file:
        file.write(planes)
        file.descriptions = [f"t{number}" for number in range(len(planes))]
        file.units = ["%"] * len(planes)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("values")
    raster(folder / "cube.tif", CUBE.transpose(2, 0, 1))
    marked = np.nan_to_num(CARBON, nan=-9999)[None]
    raster(folder / "same.tif", marked, nodata=-9999)
    fine = np.pad(marked.repeat(2, 1).repeat(2, 2), ((0, 0), (4, 4), (4, 4)), constant_values=-9999)
    raster(folder / "fine.tif", fine, 5, left=-20, nodata=-9999)
    raster(folder / "two.tif", np.concatenate([marked, marked]), nodata=-9999)
    np.savez(folder / "both.npz", cube=CUBE, carbon=CARBON)
    rows = ["row,column,carbon,clay", *(",".join(map(str, point)) for point in POINTS)]
    (folder / "points.csv").write_text("\n".join(rows))
    shapes = [
        {
            "type": "Feature",
            "properties": {"carbon": value, "class": "field"},
            "geometry": {
                "type": "Point",
                "coordinates": [300005 + 10 * column, 4999995 - 10 * row],
            },
        }
        for row, column, value, _ in POINTS
    ]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32633"}}
    whole = {"type": "FeatureCollection", "crs": crs, "features": shapes}
    (folder / "points.geojson").write_text(json.dumps(whole))
    return folder


def map_of(scene: Scene) -> Array:
    assert scene.continuous is not None
    values = np.full((scene.labels.size, len(scene.continuous.names)), np.nan)
    pixels = np.flatnonzero(scene.labels)
    values[pixels] = scene.targets(pixels)
    return values.reshape(*scene.labels.shape, -1)


@pytest.mark.parametrize(
    ("data", "labels", "names"),
    [
        ("cube.tif", "same.tif", ("t0",)),
        ("cube.tif", "fine.tif", ("t0",)),
        ("cube.tif", "two.tif", ("t0", "t1")),
        ("both.npz", None, ("carbon",)),
        ("cube.tif", CARBON, ("value",)),
        ("cube.tif", np.stack([CARBON, CARBON], -1), ("value 1", "value 2")),
    ],
)
def test_values_of_rasters_and_arrays(
    folder: Path, data: str, labels: Any, names: tuple[str, ...]
) -> None:
    given = folder / labels if isinstance(labels, str) else labels
    scene = load_scene(folder / data, given, task="values")
    assert scene.continuous is not None
    assert scene.continuous.names == names
    assert scene.continuous.units == (("%" if isinstance(labels, str) else ""),) * len(names)
    for plane in map_of(scene).transpose(2, 0, 1):
        assert_allclose(plane, CARBON)


@pytest.mark.parametrize("file", ["points.csv", "points.geojson"])
def test_values_of_points(folder: Path, file: str) -> None:
    fields = ("carbon", "clay") if file.endswith(".csv") else ("carbon",)
    scene = load_scene(folder / "cube.tif", folder / file, value_field=fields)
    found = map_of(scene)
    for row, column, *values in POINTS:
        wanted = [float(value or "nan") for value in values][: len(fields)]
        assert_allclose(found[row, column], wanted)
    assert np.isfinite(found[..., 0]).sum() == len(POINTS)
    assert scene.polygons is not None


def test_scenes_are_joined_with_their_values(folder: Path) -> None:
    other = folder / "other.tif"
    raster(other, CUBE[:, :8].transpose(2, 0, 1) + 1)
    values = raster(folder / "others.tif", np.float32(np.arange(96).reshape(1, 12, 8)))
    files = [(str(folder / "cube.tif"), str(folder / "same.tif")), (str(other), str(values))]
    scene = load_scenes(files, task="values")
    parts = [map_of(scene)[part.window][..., 0] for part in scene.parts]
    assert_allclose(parts[0], CARBON)
    assert_allclose(parts[1].ravel(), np.arange(96))
    with pytest.raises(InputError, match="has targets t0, and another scene targets t0, t1"):
        load_scenes([files[0], (str(other), str(folder / "two.tif"))], task="values")


@pytest.mark.parametrize(
    ("labels", "how", "argument"),
    [
        ("points.csv", {"value_field": ("sand",)}, "value_field"),
        ("points.geojson", {"value_field": ("class",)}, "value_field"),
        ("same.tif", {}, "labels"),
        (np.zeros((3, 3)), {"task": "values"}, "labels"),
        (np.ones((HEIGHT, WIDTH)), {"task": "values"}, "labels"),
        ("two.tif", {"task": "values", "fractions": True}, "fractions"),
    ],
)
def test_refused(folder: Path, labels: Any, how: dict[str, Any], argument: str) -> None:
    given = folder / labels if isinstance(labels, str) else labels
    with pytest.raises(InputError) as refused:
        load_scene(folder / "cube.tif", given, **how)
    assert refused.value.argument == argument


def test_numbers_may_be_values_and_the_task_says_so(tmp_path: Path) -> None:
    rows = [f"{10 + at % 7},{at},{2 * at}.5,{at * at}" for at in range(40)]
    path = tmp_path / "grain.csv"
    path.write_text("\n".join(["protein,900,910,920", *rows]))
    found = {
        task: load_scene(path, label_column="protein", task=task)
        for task in ("auto", "classes", "values")
    }
    assert "classes-may-be-values" in found["auto"].codes
    assert "classes-may-be-values" not in found["classes"].codes
    assert found["classes"].classes == 7
    assert found["values"].continuous is not None
