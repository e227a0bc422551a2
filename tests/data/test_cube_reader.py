"""Windows equal slices of the whole, in every format; places on the earth survive."""

import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import netcdf_file, savemat

from hytas.data import (
    FORMATS,
    Geo,
    Preprocessing,
    load_cube,
    load_scene,
    open_cube,
    open_file,
    valid_pixels,
)
from hytas.errors import InputError

UTM_TRANSFORM = (30.0, 0.0, 500010.0, 0.0, -30.0, 4100020.0)
WINDOWS = ((0, 9, 0, 11), (2, 5, 3, 9), (8, 9, 10, 11), (0, 1, 0, 11))


def write_envi(path: Path, cube: np.ndarray, interleave: str, order: str, extra: str = "") -> None:
    axes = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}[interleave]
    code = {"i2": 2, "u2": 12, "f4": 4, "f8": 5, "u1": 1, "i4": 3}[cube.dtype.str[1:]]
    stored = np.ascontiguousarray(cube.transpose(axes))
    path.write_bytes(stored.astype(stored.dtype.newbyteorder(order)).tobytes())
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {cube.shape[1]}\nlines = {cube.shape[0]}\nbands = {cube.shape[2]}\n"
        f"data type = {code}\ninterleave = {interleave}\nbyte order = {int(order == '>')}\n{extra}"
    )


def write(kind: str, folder: Path, cube: np.ndarray) -> Path:
    tifffile = pytest.importorskip("tifffile")
    path = folder / "cube"
    if kind == "mat5":
        savemat(path := folder / "cube.mat", {"c": cube})
    elif kind == "mat73":
        with h5py.File(path := folder / "cube.mat", "w") as file:
            file["c"] = cube.T
    elif kind == "npz":
        np.savez(path := folder / "cube.npz", c=cube)
    elif kind == "npy":
        np.save(path := folder / "cube.npy", np.asfortranarray(cube))
    elif kind.startswith("envi"):
        write_envi(path := folder / "cube.img", cube, kind[5:8], kind[-1])
    elif kind == "h5":
        chunks = tuple(min(4, size) for size in cube.shape)
        with h5py.File(path := folder / "cube.h5", "w") as file:
            file.create_dataset("group/c", data=cube, chunks=chunks, compression="gzip")
    elif kind == "h5-bands-first":
        with h5py.File(path := folder / "cube.nc", "w") as file:
            file.create_dataset("c", data=np.moveaxis(cube, 2, 0))
            file["wavelength"] = np.linspace(400, 900, cube.shape[2])
    elif kind.startswith("nc3"):
        with netcdf_file(path := folder / "cube.nc", "w") as file:
            names = ("y", "x", "z") if kind == "nc3" else ("bands", "y", "x")
            data = cube if kind == "nc3" else np.moveaxis(cube, 2, 0)
            for name, size in zip(names, data.shape, strict=True):
                file.createDimension(name, size)
            file.createVariable("c", cube.dtype, names)[:] = data
    elif kind == "h5-named":
        with h5py.File(path := folder / "cube.nc", "w") as file:
            data = file.create_dataset("c", data=np.moveaxis(cube, 2, 1))
            data.dims[1].label = "Bands"
    else:
        options = {
            "tiff": {},
            "tiff-planes": {"planarconfig": "separate"},
            "tiff-zip": {
                "compression": "zlib",
                "predictor": cube.dtype.kind != "f",
                "rowsperstrip": 4,
            },
            "tiff-planes-zip": {
                "planarconfig": "separate",
                "compression": "zlib",
                "rowsperstrip": 2,
            },
            "tiff-tiles": {"tile": (16, 16), "compression": "zlib"},
            "tiff-planes-tiles": {"planarconfig": "separate", "tile": (16, 16)},
            "tiff-big-endian": {"byteorder": ">", "compression": "zlib"},
            "tiff-pages": {"photometric": "minisblack"},
            "tiff-pages-zip": {"photometric": "minisblack", "compression": "zlib"},
            "bigtiff": {"bigtiff": True},
        }[kind]
        first = "planes" in kind or "pages" in kind
        if "pages" not in kind:
            options |= {"photometric": "minisblack"}
            options.setdefault("planarconfig", "contig")
        data = np.moveaxis(cube, 2, 0) if first else cube
        tifffile.imwrite(path := folder / "cube.tif", np.ascontiguousarray(data), **options)
    return path


KINDS = (
    *("mat5", "mat73", "npz", "npy", "h5", "h5-bands-first", "h5-named", "nc3", "nc3-bands"),
    *(f"envi-{interleave}{order}" for interleave in ("bsq", "bil", "bip") for order in "<>"),
    *("tiff", "tiff-planes", "tiff-zip", "tiff-planes-zip", "tiff-tiles", "tiff-planes-tiles"),
    *("tiff-big-endian", "tiff-pages", "tiff-pages-zip", "bigtiff"),
)


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_windows_equal_slices(tmp_path, cube, kind, dtype):
    cube = cube.astype(dtype)
    reader = open_cube(write(kind, tmp_path, cube))
    assert reader.shape == cube.shape
    assert reader.dtype == cube.dtype
    assert reader.dtype.isnative
    assert reader.name == "cube"
    for row0, row1, col0, col1 in WINDOWS:
        window = reader.read(row0, row1, col0, col1)
        np.testing.assert_array_equal(window, cube[row0:row1, col0:col1])
        assert window.flags.c_contiguous
        assert window.dtype == cube.dtype
    np.testing.assert_array_equal(reader[2:5], cube[2:5])
    assert reader[4:4].shape == (0, *cube.shape[1:])
    np.testing.assert_array_equal(load_cube(tmp_path / reader.contents.path.name).cube, cube)


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
    reader = open_cube(write(kind, tmp_path_factory.mktemp("any"), cube))
    np.testing.assert_array_equal(reader.read(row0, row1, col0, col1), cube[row0:row1, col0:col1])


def test_the_number_of_bands_expected_tells_their_axis(tmp_path, cube):
    savemat(tmp_path / "c.mat", {"c": np.moveaxis(cube, 2, 0)})
    reader = open_cube(tmp_path / "c.mat", bands=6)
    assert reader.shape == cube.shape
    np.testing.assert_array_equal(reader.read(1, 4, 2, 7), cube[1:4, 2:7])
    np.testing.assert_array_equal(load_cube(tmp_path / "c.mat", bands=6).cube, cube)
    assert open_cube(tmp_path / "c.mat", bands=200).shape == (6, 9, 11)


def test_tiff_and_hdf5_scenes_with_labels(tmp_path, cube, labels):
    tifffile = pytest.importorskip("tifffile")
    path = write("tiff-planes-zip", tmp_path, cube)
    tifffile.imwrite(tmp_path / "gt.tif", labels)
    scene = load_scene(path, tmp_path / "gt.tif")
    np.testing.assert_array_equal(scene.cube, cube)
    assert scene.class_ids == (2, 5, 7)
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["a/cube"], file["a/gt"] = np.moveaxis(cube, 2, 0), labels
    np.testing.assert_array_equal(load_scene(tmp_path / "s.h5").cube, cube)


@pytest.mark.parametrize("kind", ["envi-bsq<", "tiff", "tiff-zip", "tiff-planes-tiles", "h5"])
def test_truncated(tmp_path, cube, kind):
    path = write(kind, tmp_path, np.random.default_rng(0).integers(0, 99, (90, 80, 4)).astype("i2"))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * 0.6)])
    with pytest.raises(InputError, match="truncated"):
        open_cube(path).read(0, 90, 0, 80)


def test_windows_outside_the_scene(tmp_path, cube):
    reader = open_cube(write("npy", tmp_path, cube))
    for window in ((0, 10, 0, 3), (-1, 3, 0, 3), (3, 3, 0, 3), (0, 3, 5, 12)):
        with pytest.raises(InputError, match="must lie inside the scene of 9 x 11 pixels"):
            reader.read(*window)


def test_valid_pixels():
    pixels = np.ones((3, 4, 2), np.float32)
    pixels[0, 1, 1], pixels[2, 2, 0], pixels[1, 3] = np.nan, np.inf, -9999
    pixels[1, 1, 0] = -9999
    expected = np.ones((3, 4), bool)
    expected[0, 1] = expected[2, 2] = expected[1, 3] = False
    np.testing.assert_array_equal(valid_pixels(pixels, -9999), expected)
    assert not valid_pixels(np.full((2, 2, 3), 7, np.int16), 7).any()
    assert valid_pixels(np.zeros((2, 2, 3), np.uint8)).all()


def test_envi_place(tmp_path, cube):
    extra = (
        "map info = {UTM, 1.5, 1.5, 500025, 4100005, 30, 30, 16, North, WGS-84, units=Meters}\n"
        "data ignore value = -9999\nwavelength units = Micrometers\n"
        "wavelength = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9}\n"
    )
    write_envi(tmp_path / "c.img", cube, "bil", "<", extra)
    reader = open_cube(tmp_path / "c.hdr")
    assert reader.nodata == -9999
    np.testing.assert_allclose(reader.wavelengths, [400, 500, 600, 700, 800, 900])
    assert reader.geo.epsg == 32616
    assert reader.geo.transform == UTM_TRANSFORM
    assert reader.geo.to_envi()["map info"].startswith("UTM, 1.5, 1.5, 500025")


def test_a_turned_envi_scene_lies_where_gdal_puts_it():
    """The numbers are those of GDAL 3 for this header."""
    info = "UTM, 3, 2, 500025, 4100005, 30, 20, 16, South, WGS-84, units=Meters, rotation=25"
    geo = Geo.from_envi({"map info": info})
    assert geo.epsg == 32716
    expected = (27.18923361, 12.67854785, 499965.0, 8.45236523, -18.12615574, 4100025.0)
    assert geo.transform == pytest.approx(expected)
    again = Geo.from_envi(Geo(geo.transform, geo.epsg).to_envi())
    assert again.transform == pytest.approx(expected)


def test_an_epsg_code_that_envi_cannot_tell_needs_rasterio():
    fields = Geo(UTM_TRANSFORM, 2154).to_envi()
    assert fields["map info"].startswith("Arbitrary, 1, 1, 500010.0, 4100020.0, 30.0, 30.0")
    try:
        from rasterio.crs import CRS
    except ImportError:
        assert "coordinate system string" not in fields
    else:
        assert CRS.from_wkt(fields["coordinate system string"]).to_epsg() == 2154


def write_geotiff(path: Path, cube: np.ndarray, geo: Geo, **options: object) -> None:
    tifffile = pytest.importorskip("tifffile")
    extra = [(*tag, True) for tag in geo.to_tags()]
    tifffile.imwrite(
        path, cube, planarconfig="contig", photometric="minisblack", extratags=extra, **options
    )


@pytest.mark.parametrize(
    "geo",
    [
        Geo(UTM_TRANSFORM, 32616),
        Geo(UTM_TRANSFORM, 32733),
        Geo((1e-4, 0.0, 11.5, 0.0, -1e-4, 48.25), 4326),
        Geo((20.0, 5.0, 600000.0, 5.0, -20.0, 4000000.0), 25832),
        Geo(UTM_TRANSFORM, None, 'PROJCS["Some_Local_Grid",GEOGCS["x"]]'),
    ],
)
def test_geotiff_round_trip_and_to_envi(tmp_path, cube, geo):
    write_geotiff(tmp_path / "c.tif", cube, geo, metadata=None)
    read = open_cube(tmp_path / "c.tif").geo
    assert read.transform == pytest.approx(geo.transform)
    assert (read.epsg, read.wkt) == (geo.epsg, geo.wkt)
    write_geotiff(tmp_path / "d.tif", cube, read, metadata=None)
    assert open_cube(tmp_path / "d.tif").geo == read
    back = Geo.from_envi(read.to_envi())
    assert back.transform == pytest.approx(geo.transform)
    assert (back.epsg, back.wkt or geo.wkt) == (geo.epsg, geo.wkt or back.wkt)


def test_gdal_metadata_of_a_geotiff(tmp_path, cube):
    tifffile = pytest.importorskip("tifffile")
    items = "".join(
        f'<Item name="wavelength" sample="{i}" role="">{0.4 + i / 10} </Item>' for i in range(6)
    )
    extra = [
        (42112, "s", 0, f"<GDALMetadata>{items}</GDALMetadata>", True),
        (42113, "s", 0, "-32768", True),
    ]
    tifffile.imwrite(
        tmp_path / "c.tif", cube, planarconfig="contig", photometric="minisblack", extratags=extra
    )
    reader = open_cube(tmp_path / "c.tif")
    assert reader.nodata == -32768
    np.testing.assert_allclose(reader.wavelengths, [400, 500, 600, 700, 800, 900])


@pytest.mark.parametrize("kind", ["tif", "envi", "h5", "nc3"])
def test_what_a_label_file_marks_as_no_data_is_unlabelled(kind, tmp_path, cube, labels) -> None:
    marked = np.where(labels == 0, 255, labels).astype(np.uint8)
    path = tmp_path / "gt"
    if kind == "tif":
        tifffile = pytest.importorskip("tifffile")
        tifffile.imwrite(path, marked, extratags=[(42113, "s", 0, "255", True)])
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


def test_netcdf_place(tmp_path, cube):
    with h5py.File(tmp_path / "c.nc", "w") as file:
        data = file.create_dataset("reflectance", data=cube)
        data.attrs["grid_mapping"] = "crs"
        data.attrs["_FillValue"] = np.array([-9999], np.int16)
        place = file.create_dataset("crs", data=0)
        place.attrs["spatial_ref"] = 'PROJCS["WGS 84 / UTM zone 16N",AUTHORITY["EPSG","32616"]]'
        place.attrs["GeoTransform"] = "500010 30 0 4100020 0 -30"
    reader = open_cube(tmp_path / "c.nc")
    assert reader.geo.transform == UTM_TRANSFORM
    assert reader.geo.epsg == 32616
    assert reader.nodata == -9999


def test_lzw_names_the_package_it_needs(tmp_path, cube):
    tifffile = pytest.importorskip("tifffile")
    path = write("tiff-zip", tmp_path, cube)
    with tifffile.TiffFile(path, mode="r+b") as file:
        file.pages[0].tags["Compression"].overwrite(5)
    try:
        import imagecodecs  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match="compressed with LZW, which needs the package imagec"):
            open_cube(path).read(0, 9, 0, 11)


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


def test_unknown_files_list_the_formats(tmp_path):
    (tmp_path / "a.xyz").write_bytes(b"abcdefgh")
    known = ", ".join(entry.name for entry in FORMATS)
    with pytest.raises(InputError, match=re.escape(known)):
        open_file(tmp_path / "a.xyz")


def test_bands_that_an_envi_header_marks_as_bad_are_left_out(tmp_path, cube, labels):
    write_envi(tmp_path / "c.img", cube, "bsq", "<", "bbl = {1, 0, 1, 1, 0, 1}\n")
    np.save(tmp_path / "gt.npy", labels)
    scene = load_scene(tmp_path / "c.img", tmp_path / "gt.npy")
    assert scene.bad_bands == (1, 4)
    pixels = np.flatnonzero(scene.labels)
    assert Preprocessing.fit_scene(scene, pixels).bands.tolist() == [0, 2, 3, 5]
    assert Preprocessing.fit_scene(scene, pixels, bands="1-3").bands.tolist() == [0, 1, 2]
