"""Cubes and maps of xarray: dimensions by name, places, and facts of bands."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hytas.data import load_scene
from hytas.data.data_array import cube_of, is_data_array, map_record
from hytas.data.labels.find import labels_in
from hytas.data.read.netcdf import array_grid
from hytas.errors import InputError
from refusals import refuses

xarray = pytest.importorskip("xarray")

WKT = 'LOCAL_CS["plan",UNIT["metre",1]]'


def made(height: int = 4, width: int = 5, bands: int = 3) -> Any:
    values = np.arange(height * width * bands, dtype=np.int16).reshape(height, width, bands)
    coordinates = {
        "x": 500.0 + 30 * np.arange(width),
        "y": 900.0 - 30 * np.arange(height),
        "wavelength": ("band", [0.4, 0.5, 0.6], {"units": "um"}),
        "fwhm": ("band", [0.01, 0.01, 0.02], {"units": "um"}),
        "good_wavelengths": ("band", [1, 0, 1]),
        "spatial_ref": ((), 0, {"crs_wkt": WKT, "GeoTransform": "1.0 30.0 0.0 2.0 0.0 -30.0"}),
    }
    return xarray.DataArray(values, coordinates, ("y", "x", "band"), attrs={"_FillValue": -1})


@pytest.mark.parametrize("order", [("y", "x", "band"), ("band", "y", "x"), ("x", "band", "y")])
def test_dimensions_are_found_by_name_in_any_order(order: tuple[str, ...]) -> None:
    cube = cube_of(made().transpose(*order))
    assert cube.shape == (4, 5, 3)
    assert np.array_equal(cube.whole(), made().values)
    assert np.array_equal(cube[1:3], made().values[1:3])
    assert np.allclose(cube.wavelengths, [400, 500, 600])
    assert np.allclose(cube.facts.fwhm, [10, 10, 20])
    assert cube.facts.bad_bands == (1,)
    assert cube.nodata == -1


def test_a_third_dimension_is_known_by_the_other_two_and_one_of_length_1_is_dropped() -> None:
    odd = made().rename(band="feature").expand_dims("time")
    assert cube_of(odd).shape == (4, 5, 3)


@pytest.mark.parametrize("names", [("dim_0", "dim_1", "dim_2"), ("y", "u", "v")])
def test_other_names_are_refused(names: tuple[str, ...]) -> None:
    array = xarray.DataArray(np.zeros((4, 4, 4)), dims=names)
    with pytest.raises(InputError) as error:
        cube_of(array)
    assert error.value.argument == "cube"
    assert "must be y, x and band" in error.value.rule


def test_the_place_is_that_of_the_coordinates_also_after_a_cut() -> None:
    assert cube_of(made()).grid.transform == (30, 0, 485, 0, -30, 915)
    part = cube_of(made().isel(y=slice(2, 4), x=slice(1, 4)))
    assert part.grid.transform == (30, 0, 515, 0, -30, 855)
    assert part.grid.crs == WKT
    result = part.of_pixels(np.ones((2, 3), np.uint8), "classes", {"_FillValue": 0})
    assert result.dims == ("y", "x")
    assert result.x.values.tolist() == [530, 560, 590]
    assert array_grid(result, "y", "x") == part.grid
    assert result.spatial_ref.attrs["GeoTransform"] == "515.0 30.0 0.0 855.0 0.0 -30.0"
    assert "wavelength" not in result.coords


def test_a_rotated_array_keeps_its_transform() -> None:
    array = made().drop_vars(["x", "y"])
    array.spatial_ref.attrs["GeoTransform"] = "10 3 1 20 1 -3"
    cube = cube_of(array)
    assert cube.grid.transform == (3, 1, 10, 1, -3, 20)
    result = cube.of_pixels(np.ones((4, 5)), "classes", {})
    assert array_grid(result, "y", "x").transform == (3, 1, 10, 1, -3, 20)


def test_uneven_coordinates_are_no_place() -> None:
    array = made().drop_vars("spatial_ref").assign_coords(x=[0.0, 1, 2, 4, 5])
    assert cube_of(array).grid.transform is None


def test_a_label_map_has_rows_and_columns() -> None:
    labels = made().isel(band=0).transpose("x", "y")
    values, grid = labels_in(map_record(labels))
    assert np.array_equal(values, made().values[..., 0])
    assert grid.transform == (30, 0, 485, 0, -30, 915)
    with refuses("labels"):
        labels_in(map_record(made()))


def test_labels_of_an_array_have_names_and_a_mark(tmp_path: Path) -> None:
    np.save(tmp_path / "cube.npy", made().values)
    values = np.arange(20).reshape(4, 5) % 4
    facts = {"flag_values": [0, 1, 2, 3], "flag_meanings": "none soil crop clouds"}
    labels = xarray.DataArray(values, dims=("y", "x"), attrs=facts)
    for data in (tmp_path / "cube.npy", made()):
        scene = load_scene(data, labels, unlabelled=3)
        assert scene.class_names == ("soil", "crop")
        np.testing.assert_array_equal(scene.labels, values * (values < 3))


def test_units_that_are_no_length_give_no_wavelengths() -> None:
    array = made()
    array.wavelength.attrs["units"] = "furlong"
    assert cube_of(array).wavelengths is None
    assert cube_of(array).codes == ("wavelengths-read-as",)


def test_wavelengths_may_be_attributes_of_the_array() -> None:
    array = made().drop_vars(["wavelength", "fwhm"])
    array.attrs |= {"wavelength": ["410.0", "420.5", "431.0"], "wavelength_units": "Nanometers"}
    assert cube_of(array).wavelengths.tolist() == [410, 420.5, 431]


def test_wavelengths_may_be_descriptions_of_the_bands() -> None:
    array = made().drop_vars(["wavelength", "fwhm"])
    array.attrs["long_name"] = ("410.0 nm", "420.5 nm", "431.0 nm")  # as rioxarray has them
    assert cube_of(array).wavelengths.tolist() == [410, 420.5, 431]
    array.attrs["long_name"] = ("B1", "B2", "B3")
    assert cube_of(array).wavelengths is None


def test_an_array_of_numpy_needs_no_xarray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "xarray")
    assert not is_data_array(np.zeros((2, 2, 2)))


def test_labels_may_be_an_array(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((4, 5, 3))
    labels = np.arange(20).reshape(4, 5) % 3
    np.save(tmp_path / "cube.npy", values)
    turned = xarray.DataArray(values.transpose(2, 0, 1), dims=("band", "y", "x"))
    for data in (tmp_path / "cube.npy", turned, made()):
        scene = load_scene(data, labels)
        np.testing.assert_array_equal(scene.labels, labels)
        for wrong in (labels.ravel(), labels[:3], labels.astype(str), labels - 1, labels + 0.5):
            with refuses("labels"):
                load_scene(data, wrong)
