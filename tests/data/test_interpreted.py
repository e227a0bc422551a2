"""What files that follow a convention half-way are read as: one row a situation."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import rasterio
import tifffile
import xarray as xr
import zarr
from rasterio import Affine
from rasterio.crs import CRS

from hytas.data import labels_on_grid, load_scene, open_cube
from hytas.data.data_array import cube_of

HEIGHT, WIDTH, BANDS = 12, 15, 10
WAVES = np.linspace(503, 953, BANDS)
CUBE = np.random.default_rng(0).integers(100, 3000, (HEIGHT, WIDTH, BANDS)).astype(np.int16)
LABELS = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % 3
NORTH, EAST = np.meshgrid(
    np.linspace(50, 49.9, HEIGHT), np.linspace(10, 10.2, WIDTH), indexing="ij"
)
X, Y = 4e5 + 15 + 30 * np.arange(WIDTH), 5.8e6 - 15 - 30 * np.arange(HEIGHT)


def tiff(
    path: Path, names: Iterable[str] = (), tags: Callable[[int], dict[str, str]] = lambda _: {}
):
    facts = {"count": BANDS, "dtype": CUBE.dtype, "crs": "EPSG:32633"}
    place = Affine(30, 0, 4e5, 0, -30, 5.8e6)
    with rasterio.open(
        path, "w", driver="GTiff", height=HEIGHT, width=WIDTH, transform=place, **facts
    ) as file:
        file.write(CUBE.transpose(2, 0, 1))
        file.descriptions = list(names) or [None] * BANDS
        for band in range(BANDS):
            file.update_tags(band + 1, ns="ENVI", **tags(band))


def envi(path: Path, cube: np.ndarray, header: str) -> None:
    code = {"i2": 2, "f4": 4}[cube.dtype.str[1:]]
    cube.tofile(path)
    lines, samples, bands = cube.shape
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {samples}\nlines = {lines}\nbands = {bands}\ndata type = {code}\n"
        f"interleave = bip\nbyte order = 0\n{header}\n"
    )


def dark_below(path: Path) -> None:
    dark = np.full((4, WIDTH, BANDS), 60, np.int16)
    envi(path, np.concatenate([CUBE, dark]), f"autodarkstartline = {HEIGHT}")


def without_data(path: Path) -> None:
    cube = CUBE.copy()
    cube[:2] = -50
    envi(path, cube, "data ignore value = -0.005\nreflectance scale factor = 10000")


def along(name: str) -> Callable[[Path], None]:
    """A cube whose wavelengths only a standard name along its dimension tells."""
    waves = ("k", WAVES / 1000, {"standard_name": name, "units": "um"})
    cube = (("k", "y", "x"), CUBE.transpose(2, 0, 1))
    return lambda path: xr.Dataset({"refl": cube}, {"cw": waves}).to_netcdf(path)


def pages(path: Path) -> None:
    with tifffile.TiffWriter(path) as file:
        for wave, page in zip(WAVES, CUBE.transpose(2, 0, 1), strict=True):
            file.write(page, contiguous=False, metadata=None, description=f"{wave:.0f} nm")


def plain_zarr(path: Path) -> None:
    group = zarr.open_group(path, mode="w")
    group.create_array("cube", data=CUBE)
    group.create_array("wavelengths", data=WAVES)


SCENES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "wavelengths of each band in the ENVI domain": (
        "a.tif",
        lambda path: tiff(
            path,
            tags=lambda band: {
                "wavelength": f"{WAVES[band]:.2f}",
                "wavelength units": "Nanometers",
                "bbl": "01"[band != 3],
            },
        ),
    ),
    "Band_503": ("a.tif", lambda path: tiff(path, [f"Band_{wave:.0f}" for wave in WAVES])),
    "Band_503_nm": ("a.tif", lambda path: tiff(path, [f"Band_{wave:.0f}_nm" for wave in WAVES])),
    "names along the bands": (
        "a.nc",
        lambda path: xr.DataArray(
            CUBE, {"band": [f"Band_{wave:.0f}" for wave in WAVES]}, ("y", "x", "band"), "refl"
        ).to_netcdf(path),
    ),
    "numbers along the bands": (
        "a.nc",
        lambda path: xr.DataArray(CUBE, {"band": WAVES}, ("y", "x", "band"), "refl").to_netcdf(
            path
        ),
    ),
    "a description for each page": ("a.tif", pages),
    "arrays without names of dimensions": ("a.zarr", plain_zarr),
    "radiation_wavelength": ("a.nc", along("radiation_wavelength")),
    "sensor band": ("a.nc", along("sensor_band_central_radiation_wavelength")),
}


@pytest.mark.parametrize("name", SCENES)
def test_wavelengths(name: str, tmp_path: Path) -> None:
    file, write = SCENES[name]
    write(tmp_path / file)
    scene = load_scene(tmp_path / file, LABELS)
    assert scene.wavelengths == pytest.approx(WAVES, abs=0.1)
    assert scene.bad_bands == ((3,) if "ENVI domain" in name else ())


def test_numbers_of_bands_are_no_wavelengths(tmp_path: Path) -> None:
    gaps = [band + (band > 2) + (band > 4) for band in range(201, 201 + BANDS)]
    for numbers in (range(1, BANDS + 1), range(201, 201 + BANDS), gaps):
        tiff(tmp_path / "a.tif", [f"Band_{number}" for number in numbers])
        assert load_scene(tmp_path / "a.tif", LABELS).wavelengths is None


def test_widths_that_gdal_keeps_have_their_own_unit(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tiff(path, [f"{wave:.0f} nm" for wave in WAVES])
    with rasterio.open(path, "r+") as file:
        for band in range(1, BANDS + 1):
            file.update_tags(band, ns="IMAGERY", FWHM_UM="0.006")
    fwhm = load_scene(path, LABELS).fwhm
    assert fwhm is not None
    assert fwhm == pytest.approx(6)


def test_lines_of_the_dark_and_of_no_data_are_left_out(tmp_path: Path) -> None:
    dark_below(tmp_path / "dark.img")
    labels = np.pad(LABELS, ((0, 4), (0, 0))).astype(np.int16)
    envi(tmp_path / "labels.img", labels[..., None], "")
    for given in (LABELS, labels, tmp_path / "labels.img"):
        scene = load_scene(tmp_path / "dark.img", given)
        assert scene.valid.shape == (HEIGHT, WIDTH)
    read = labels_on_grid(tmp_path / "labels.img", open_cube(tmp_path / "dark.img").grid)
    assert np.array_equal(read.maps[0][1], LABELS)
    without_data(tmp_path / "empty.img")
    scene = load_scene(tmp_path / "empty.img", LABELS)
    assert scene.valid.sum() == (HEIGHT - 2) * WIDTH
    assert "not-used" not in scene.codes


def test_places_of_two_dimensional_latitudes(tmp_path: Path) -> None:
    coordinates = {"lat": (("y", "x"), NORTH), "lon": (("y", "x"), EAST)}
    xr.Dataset({"refl": (("y", "x", "band"), CUBE)}, coordinates).to_netcdf(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.update({"cube": CUBE, "Latitude": NORTH, "Longitude": EAST})
    numbered = {**coordinates, "y": range(HEIGHT), "x": range(WIDTH)}
    array = xr.DataArray(CUBE, numbered, ("y", "x", "band"))
    turned = array.transpose("x", "y", "band", transpose_coords=True).drop_vars(["x", "y"])
    turned.to_dataset(name="refl").to_netcdf(tmp_path / "turned.nc")
    grids = [open_cube(tmp_path / name).grid for name in ("a.nc", "a.h5", "turned.nc")]
    for grid in (*grids, cube_of(array).grid):
        assert grid.location is not None
        assert np.array_equal(grid.location.read()[1], NORTH)
    labels = xr.DataArray(LABELS, {name: numbered[name] for name in "yx"}, ("y", "x"))
    near_0 = array.assign_coords(lat=array.lat - 45)
    assert np.array_equal(load_scene(near_0, labels).labels, LABELS)


PLACE = [30.0, 0, 4e5, 0, -30.0, 5.8e6]


@pytest.mark.parametrize(
    ("of_cube", "of_group", "has_axes"),
    [
        ({"proj:epsg": 32633}, {}, True),
        ({}, {"proj:epsg": 32633}, True),
        ({}, {"proj:projjson": CRS.from_epsg(32633).to_dict(projjson=True)}, True),
        ({}, {"proj:code": "EPSG:32633", "spatial:transform": PLACE}, False),
        ({}, {"stac_discovery": {"id": "S2B", "properties": {"proj:epsg": 32633}}}, True),
        ({}, {"stac_discovery": {"properties": {"proj:code": "EPSG:32633"}}}, True),
    ],
)
def test_places_of_zarr(
    of_cube: dict[str, Any], of_group: dict[str, Any], has_axes: bool, tmp_path: Path
) -> None:
    axes = {"x": ("x", X), "y": ("y", Y)} if has_axes else {}
    cube = {"refl": (("band", "y", "x"), CUBE.transpose(2, 0, 1), of_cube)}
    xr.Dataset(cube, axes, of_group).to_zarr(tmp_path / "a.zarr", consolidated=False)
    grid = open_cube(tmp_path / "a.zarr").grid
    assert grid is not None
    assert grid.epsg == 32633
    assert grid.transform is not None


_BY_NUMBER = ("wavelengths-read-as",)


def table(path: Path, columns: Iterable[str], **further: Any) -> Path:
    columns = list(columns)
    frame = pd.DataFrame(np.random.default_rng(0).normal(5, 1, (40, len(columns))), columns=columns)
    for name, values in further.items():
        frame.insert(0, name, values)
    frame.insert(0, "label", ["a", "b"] * 20)
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("columns", "ends", "codes"),
    [
        ([f"{shift:g}" for shift in range(-50, 200, 5)], None, _BY_NUMBER),
        ([f"shift_{shift:g}" for shift in range(-50, 200, 5)], None, _BY_NUMBER),
        ([f"wavenumber_{wave:.2f}" for wave in (899, 1400, 1802)], (11123.5, 5549.4), ()),
        *(
            ([f"{stem}{number}" for number in (210, 211, 213, 214, 216)], None, _BY_NUMBER)
            for stem in ("Band_", "b", "reflectance band ", "ch-")
        ),
        ([f"shift {shift}" for shift in range(300, 500, 20)], None, _BY_NUMBER),
        ([f"Band_{wave}_nm" for wave in range(450, 800, 50)], (450, 750), ()),
        ([f"scan.{wave}_ref" for wave in range(452, 852, 10)], (452, 842), ()),
        ([f"{wave:.2f} cm-1" for wave in np.linspace(899, 1802, 60)], (11123.5, 5549.4), ()),
        (
            [f"{wave:.2f}" for wave in np.linspace(899, 1802, 60)],
            (899, 1802),
            _BY_NUMBER,
        ),
    ],
)
def test_columns_of_tables(
    columns: list[str], ends: tuple[float, float] | None, codes: tuple[str, ...], tmp_path: Path
) -> None:
    scene = load_scene(table(tmp_path / "t.csv.gz", columns), label_column="label")
    assert scene.bands == len(columns)
    waves = scene.wavelengths
    if ends is None:
        assert waves is None
    else:
        assert waves is not None
        assert (waves[0], waves[-1]) == pytest.approx(ends, abs=0.1)
    assert set(codes) <= set(scene.codes)


def test_metadata_are_no_bands(tmp_path: Path) -> None:
    places = {"Time": range(40), "GPS_long": np.linspace(10, 11, 40), "Lat": np.linspace(5, 6, 40)}
    for bands in ([f"refl{band}" for band in range(1, 31)], ["blue", "green", "red", "nir"]):
        path = table(tmp_path / "t.csv.zip", bands, **places)
        assert load_scene(path, label_column="label").bands == len(bands)


@pytest.mark.parametrize("first", [1301010100, 3301010100])
def test_codes_of_ten_digits_are_names(first: int, tmp_path: Path) -> None:
    codes = [first, first + 100, 0] * 4
    points = pd.DataFrame({"row": range(12), "column": 3, "class": codes})
    points.to_csv(tmp_path / "points.csv", index=False)
    np.save(tmp_path / "cube.npy", CUBE)
    scene = load_scene(tmp_path / "cube.npy", tmp_path / "points.csv")
    assert scene.class_names == (str(first), str(first + 100))
    assert (scene.labels > 0).sum() == 8
    assert "classes-are-codes" in scene.codes
