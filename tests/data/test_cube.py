"""Windows equal slices of the whole, in every format; places on the earth survive."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_files import KINDS, TRANSFORM, Facts, write_envi
from scipy.io import netcdf_file, savemat
from whole_cube import load_cube

from hytas.data import Preprocessing, load_scene, open_cube
from hytas.data.interpret.nodata import valid_pixels
from hytas.errors import InputError

WINDOWS = ((0, 9, 0, 11), (2, 5, 3, 9), (8, 9, 10, 11), (0, 1, 0, 11))


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_windows_of_a_matlab_v5_cube_among_other_variables(tmp_path, cube, dtype, compressed):
    cube = np.abs(cube).astype(dtype)
    other = {"a": "text", "before": cube + 1, "longer_name_than_eight": cube, "z": {"s": 1}}
    savemat(tmp_path / "c.mat", other, do_compression=compressed)
    reader = open_cube(tmp_path / "c.mat", "longer_name_than_eight")
    for row0, row1, col0, col1 in WINDOWS:
        window = reader.read(row0, row1, col0, col1)
        np.testing.assert_array_equal(window, cube[row0:row1, col0:col1])
        assert window.dtype == load_cube(tmp_path / "c.mat", "longer_name_than_eight").cube.dtype


@settings(max_examples=20, deadline=None)
@given(
    size=st.tuples(st.integers(3, 70), st.integers(3, 70), st.integers(2, 5)),
    kind=st.sampled_from(["tiff-zip", "tiff-planes-zip", "tiff-tiles", "envi-bil>", "h5"]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_any_window(tmp_path_factory, size, kind, seed, data):
    cube = np.random.default_rng(seed).integers(0, 9999, size).astype(np.uint16)
    row0 = data.draw(st.integers(0, size[0] - 1))
    row1 = data.draw(st.integers(row0 + 1, size[0]))
    col0 = data.draw(st.integers(0, size[1] - 1))
    col1 = data.draw(st.integers(col0 + 1, size[1]))
    path = KINDS[kind].write(tmp_path_factory.mktemp("any"), cube, Facts())
    reader = open_cube(path)
    np.testing.assert_array_equal(reader.read(row0, row1, col0, col1), cube[row0:row1, col0:col1])


def test_the_number_of_bands_expected_tells_their_axis(tmp_path, cube):
    savemat(tmp_path / "c.mat", {"c": np.moveaxis(cube, 2, 0)})
    reader = open_cube(tmp_path / "c.mat", bands=6)
    assert reader.shape == cube.shape
    np.testing.assert_array_equal(reader.read(1, 4, 2, 7), cube[1:4, 2:7])
    np.testing.assert_array_equal(load_cube(tmp_path / "c.mat", bands=6).cube, cube)
    assert open_cube(tmp_path / "c.mat", bands=200).shape == (6, 9, 11)


def test_valid_pixels():
    pixels = np.ones((3, 4, 2), np.float32)
    pixels[0, 1, 1], pixels[2, 2, 0], pixels[1, 3] = np.nan, np.inf, -9999
    pixels[1, 1, 0] = -9999
    expected = np.ones((3, 4), bool)
    expected[0, 1] = expected[2, 2] = expected[1, 3] = False
    np.testing.assert_array_equal(valid_pixels(pixels, -9999), expected)
    assert not valid_pixels(np.full((2, 2, 3), 7, np.int16), 7).any()
    assert valid_pixels(np.zeros((2, 2, 3), np.uint8)).all()


def test_a_turned_envi_scene_lies_where_gdal_puts_it(tmp_path, cube):
    info = "UTM, 3, 2, 500025, 4100005, 30, 20, 16, South, WGS-84, units=Meters, rotation=25"
    write_envi(tmp_path / "c.img", cube, "bsq", "<", f"map info = {{{info}}}\n")
    grid = open_cube(tmp_path / "c.img").grid
    assert grid.epsg == 32716
    expected = (27.18923361, 12.67854785, 499965.0, 8.45236523, -18.12615574, 4100025.0)
    assert grid.transform == pytest.approx(expected)


@pytest.mark.parametrize("driver", ["GTiff", "ENVI", "HFA", "EHdr", "PCIDSK"])
@pytest.mark.parametrize(
    ("transform", "epsg"),
    [
        (TRANSFORM, 32616),
        ((1e-4, 0.0, 11.5, 0.0, -1e-4, 48.25), 4326),
        ((20.0, 5.0, 600000.0, 5.0, -20.0, 4000000.0), 25832),
        ((30.0, 0.0, 500010.0, 0.0, 30.0, 4100020.0), 3035),
    ],
)
def test_a_raster_is_what_rasterio_reads(tmp_path, cube, driver, transform, epsg):
    if driver == "EHdr" and transform[1]:
        pytest.skip("the format has no rotation")
    path = tmp_path / f"c.{'bil' if driver == 'EHdr' else 'img'}"
    facts = {"height": 9, "width": 11, "count": 6, "dtype": "int16", "nodata": -300}
    facts |= {"transform": rasterio.Affine(*transform), "crs": f"EPSG:{epsg}"}
    with rasterio.open(path, "w", driver=driver, **facts) as file:
        file.write(cube.transpose(2, 0, 1))
    reader = open_cube(path)
    np.testing.assert_array_equal(reader[0:9], cube)
    with rasterio.open(path) as file:
        assert reader.nodata == file.nodata
        assert reader.grid.transform == tuple(file.transform)[:6]
        assert reader.grid.system == file.crs


def write_tif(path: Path, cube: np.ndarray, **facts: object) -> rasterio.DatasetBase:
    height, width, count = cube.shape
    place = rasterio.Affine(2, 0, 0, 0, -2, 0)  # rasterio warns without one
    own = {"height": height, "width": width, "count": count, "dtype": cube.dtype}
    facts = {**own, "transform": place, **facts}
    file = rasterio.open(path, "w", driver="GTiff", **facts)
    file.write(cube.transpose(2, 0, 1))
    return file


@pytest.mark.parametrize(
    ("tag", "values"),
    [
        ({"wavelength": "{:.1f}"}, [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        ({"wavelength": "{:.1f} ", "wavelength_units": "Micrometers"}, np.linspace(0.4, 0.9, 6)),
        ({"WAVELENGTH_NM": "{:.0f}"}, [400, 500, 600, 700, 800, 900]),
        ({"center_wavelength": "{:.0f}"}, [400, 500, 600, 700, 800, 900]),
    ],
)
def test_wavelengths_of_the_bands_of_a_geotiff(tmp_path, cube, tag, values):
    with write_tif(tmp_path / "c.tif", cube) as file:
        for band, value in enumerate(values, start=1):
            file.update_tags(band, **{name: text.format(value) for name, text in tag.items()})
    reader = open_cube(tmp_path / "c.tif")
    np.testing.assert_allclose(reader.wavelengths, [400, 500, 600, 700, 800, 900])


def test_further_places_for_facts_of_bands_in_a_geotiff(tmp_path, cube):
    with write_tif(tmp_path / "imagery.tif", cube) as file:
        for band in range(1, 7):
            imagery = {"CENTRAL_WAVELENGTH_UM": f"{0.3 + band / 10:.3f}", "FWHM_UM": "0.010"}
            file.update_tags(band, ns="IMAGERY", **imagery)
            file.update_tags(band, bbl="0" if band == 2 else "1.0")
    reader = open_cube(tmp_path / "imagery.tif")
    np.testing.assert_allclose(reader.wavelengths, [400, 500, 600, 700, 800, 900])
    np.testing.assert_allclose(reader.fwhm, 10)
    assert reader.bad_bands == (1,)
    with write_tif(tmp_path / "named.tif", cube) as file:
        file.descriptions = [
            f"Band {band} ({300 + 100 * band}.0 Nanometers)" for band in range(1, 7)
        ]
    np.testing.assert_allclose(open_cube(tmp_path / "named.tif").wavelengths[[0, 5]], [400, 900])
    with write_tif(tmp_path / "bare.tif", cube) as file:
        file.descriptions = [f"wl_{300 + 100 * band}" for band in range(1, 7)]
    np.testing.assert_allclose(open_cube(tmp_path / "bare.tif").wavelengths[[0, 5]], [400, 900])
    write_tif(tmp_path / "header.tif", cube).close()
    (tmp_path / "header.hdr").write_text(
        "ENVI\nwavelength = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9}\nbbl = {1, true, 0.0e+00, 1., 1, no}\n"
    )
    reader = open_cube(tmp_path / "header.tif")
    np.testing.assert_allclose(reader.wavelengths, [400, 500, 600, 700, 800, 900])
    assert reader.bad_bands == (2, 5)
    assert reader.contents.files == (tmp_path / "header.tif", tmp_path / "header.hdr")


def test_bands_with_no_data_values_of_their_own(tmp_path, cube):
    values = np.abs(cube)
    values[0, 0, :3], values[0, 0, 3:], values[1, 1] = 0, -9, 0
    bands = [tmp_path / f"b{band}.tif" for band in range(6)]
    for band, path in enumerate(bands):
        write_tif(path, values[:, :, band : band + 1], nodata=0 if band < 3 else -9).close()
    loaded = load_cube(bands)
    assert loaded.cube.dtype == np.float32
    assert np.isnan(loaded.cube[0, 0]).all()
    assert not loaded.valid[0, 0]
    assert (loaded.cube[1, 1, 3:] == 0).all()
    assert np.isnan(loaded.cube[1, 1, :3]).all()
    np.testing.assert_array_equal(loaded.cube[2:], values[2:])


def test_files_of_bands_are_one_cube(tmp_path, cube, labels):
    folder = tmp_path / "EO1H"
    folder.mkdir()
    for band in range(6):
        write_tif(folder / f"EO1H_B{band + 8}.TIF", cube[:, :, band : band + 1]).close()
    (folder / "EO1H_MTL.txt").write_text("metadata")
    write_tif(folder / "quicklook.tif", cube[:4]).close()
    np.save(tmp_path / "gt.npy", labels)
    scene = load_scene(folder, tmp_path / "gt.npy")
    np.testing.assert_array_equal(scene.cube, cube)
    assert scene.name == "EO1H"
    joined, others = scene.findings
    ends = {"first": "EO1H_B8.TIF", "last": "EO1H_B13.TIF"}
    assert (joined.code, joined.facts) == ("bands-of-files", {"count": 6, "by": "names", **ends})
    assert (others.code, others.facts) == ("not-used", {"names": ["quicklook.tif"]})
    for band, wave in enumerate((700, 400, 500, 600, 800, 900)):
        with rasterio.open(folder / f"EO1H_B{band + 8}.TIF", "r+") as file:
            file.update_tags(1, wavelength=str(wave), wavelength_units="nm")
    again = load_cube(folder)
    np.testing.assert_array_equal(again.cube[:, :, 0], cube[:, :, 1])
    np.testing.assert_array_equal(again.wavelengths, [400, 500, 600, 700, 800, 900])
    assert again.codes[0] == "bands-of-files"
    listed = load_cube([folder / "EO1H_B8.TIF", folder / "EO1H_B9.TIF"])
    np.testing.assert_array_equal(listed.cube, cube[:, :, [1, 0]])
    write_tif(folder / "EO1H_B99.TIF", cube[:5, :, :1]).close()
    with pytest.raises(InputError, match=r"EO1H_B99\.TIF \(5 x 11 pixels\) lies on another grid"):
        load_cube(folder)
    of_sentinel = tmp_path / "S2"
    of_sentinel.mkdir()
    for band, name in enumerate(("B08", "B8A", "B11")):
        write_tif(of_sentinel / f"T32U_{name}_20m.tif", cube[:, :, band : band + 1]).close()
    np.testing.assert_array_equal(load_cube(of_sentinel).cube, cube[:, :, :3])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
def test_pages_of_a_tiff_are_rows_or_bands(tmp_path, cube, labels, order):
    """Programs write the first axis of an array as pages, whatever it means."""
    tifffile = pytest.importorskip("tifffile")
    stored = np.ascontiguousarray(cube.transpose(order))
    np.save(tmp_path / "gt.npy", labels)
    tifffile.imwrite(tmp_path / "c.tif", stored)
    np.testing.assert_array_equal(load_scene(tmp_path / "c.tif", tmp_path / "gt.npy").cube, cube)
    names = "".join("YXC"[axis] for axis in order)
    tifffile.imwrite(tmp_path / "d.tif", stored, metadata={"axes": names})
    reader = open_cube(tmp_path / "d.tif")
    assert reader.findings == ()
    np.testing.assert_array_equal(reader.read(1, 8, 2, 9), cube[1:8, 2:9])


def test_a_geotiff_without_some_of_its_tiles(tmp_path, cube):
    values = np.tile(cube, (6, 6, 1))
    values[:32, 32:] = -9999
    facts = {"tiled": True, "blockxsize": 16, "blockysize": 16, "nodata": -9999}
    write_tif(tmp_path / "c.tif", values, SPARSE_OK="TRUE", compress="zstd", **facts).close()
    loaded = load_cube(tmp_path / "c.tif")
    np.testing.assert_array_equal(loaded.cube, values)
    assert not loaded.valid[:32, 32:].any()


@pytest.mark.parametrize("kind", ["tif", "envi", "h5", "nc3"])
def test_what_a_label_file_marks_as_no_data_is_unlabelled(kind, tmp_path, cube, labels) -> None:
    marked = np.where(labels == 0, 255, labels).astype(np.uint8)
    path = tmp_path / "gt"
    if kind == "tif":
        write_tif(path, marked[:, :, None], nodata=255).close()
    elif kind == "envi":
        write_envi(path, marked[:, :, None], "bsq", "<", "data ignore value = 255\n")
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("gt", data=marked).attrs["_FillValue"] = np.uint8(255)
    else:
        with netcdf_file(path, "w") as file:
            for name, size in zip("yx", marked.shape, strict=True):
                file.createDimension(name, size)
            stored = file.createVariable("gt", "i2", ("y", "x"))
            stored[:] = marked
            stored._FillValue = np.int16(255)
    np.save(tmp_path / "cube.npy", cube)
    scene = load_scene(tmp_path / "cube.npy", path)
    assert scene.class_ids == tuple(np.unique(labels[labels > 0]))
    np.testing.assert_array_equal(scene.labels > 0, labels > 0)


@pytest.mark.parametrize("kind", ["h5", "nc3"])
def test_the_mark_of_the_cube_that_is_named(kind, tmp_path, cube, labels) -> None:
    path = tmp_path / "two"
    if kind == "h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=cube).attrs["_FillValue"] = np.int16(-9999)
            file.create_dataset("b", data=cube)
            file["nothing"] = h5py.Empty("f4")
    else:
        with netcdf_file(path, "w") as file:
            for name, size in zip("yxz", cube.shape, strict=True):
                file.createDimension(name, size)
            for name in "ab":
                file.createVariable(name, "i2", tuple("yxz"))[:] = cube
            file.variables["a"]._FillValue = np.int16(-9999)
    np.save(tmp_path / "gt.npy", labels)
    for key, mark in (("a", -9999), ("b", None)):
        assert open_cube(path, key).nodata == mark
        assert load_cube(path, key).nodata == mark
        assert load_scene(path, tmp_path / "gt.npy", cube_key=key).nodata == mark


WKT = (
    'PROJCS["WGS 84 / UTM zone 16N",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,'
    '298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION['
    '"Transverse_Mercator"],PARAMETER["latitude_of_origin",0],PARAMETER["central_meridian",-87],'
    'PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",500000],'
    'PARAMETER["false_northing",0],UNIT["metre",1],AUTHORITY["EPSG","32616"]]'
)


def test_netcdf_place(tmp_path, cube):
    with h5py.File(tmp_path / "c.nc", "w") as file:
        data = file.create_dataset("reflectance", data=cube)
        data.attrs["grid_mapping"] = "crs"
        data.attrs["_FillValue"] = np.array([-9999], np.int16)
        place = file.create_dataset("crs", data=0)
        place.attrs["spatial_ref"] = WKT
        place.attrs["GeoTransform"] = "500010 30 0 4100020 0 -30"
    reader = open_cube(tmp_path / "c.nc")
    assert reader.grid.transform == TRANSFORM
    assert reader.grid.epsg == 32616
    assert reader.nodata == -9999


def test_netcdf_place_of_a_group(tmp_path, cube):
    """Coordinates and grid mapping of the groups above count, as in products of AVIRIS."""
    height, width, bands = cube.shape
    with h5py.File(tmp_path / "c.nc", "w") as file:
        file["crs"] = 0
        file["crs"].attrs["crs_wkt"] = WKT
        file["northing"] = 4100005.0 - 30 * np.arange(height)
        file["easting"] = 500025.0 + 30 * np.arange(width)
        file["group/wavelength"] = np.linspace(400, 2500, bands)
        stored = file.create_dataset("group/reflectance", data=cube.transpose(2, 0, 1))
        stored.attrs["grid_mapping"] = "crs"
        for axis, name in enumerate(("group/wavelength", "northing", "easting")):
            file[name].make_scale(name.rsplit("/", 1)[-1])
            stored.dims[axis].attach_scale(file[name])
    reader = open_cube(tmp_path / "c.nc")
    np.testing.assert_array_equal(reader[:], cube)
    assert reader.grid.transform == TRANSFORM
    assert reader.grid.epsg == 32616


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_memory_of_windows_is_bounded(tmp_path):
    """Reading a 240 MB file by windows must not hold it: pages of a kept map would count."""
    with (tmp_path / "big.img").open("wb") as file:
        file.truncate(1000 * 600 * 200 * 2)
    (tmp_path / "big.hdr").write_text(
        "ENVI\nsamples = 600\nlines = 1000\nbands = 200\ndata type = 2\ninterleave = bsq\n"
    )
    code = (
        "import resource, sys\nfrom hytas.data import open_cube\n"
        "cube = open_cube(sys.argv[1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for row in range(0, 1000, 50):\n    cube.read(row, row + 50, 0, 600)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "big.img")]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < 60_000


def test_bands_that_an_envi_header_marks_as_bad_are_left_out(tmp_path, cube, labels):
    write_envi(tmp_path / "c.img", cube, "bsq", "<", "bbl = {1, 0, 1, 1, 0, 1}\n")
    np.save(tmp_path / "gt.npy", labels)
    scene = load_scene(tmp_path / "c.img", tmp_path / "gt.npy")
    assert scene.bad_bands == (1, 4)
    pixels = np.flatnonzero(scene.labels)
    assert Preprocessing.fit_scene(scene, pixels).bands.tolist() == [0, 2, 3, 5]
    assert Preprocessing.fit_scene(scene, pixels, bands="1-3").bands.tolist() == [0, 1, 2]
