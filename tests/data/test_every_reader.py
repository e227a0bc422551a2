"""The same questions to the reader of every layout of files, by the table in `reader_files.py`."""

import gc
from pathlib import Path

import numpy as np
import pytest
import rasterio
import tifffile
from rasterio.control import GroundControlPoint
from reader_files import KINDS, TRANSFORM, Facts, kinds_that_say, write_envi, write_raster
from whole_cube import load_cube

from hytas.data import load_scene, open_cube, scene_from_arrays
from refusals import refuses

WINDOWS = ((0, 9, 0, 11), (2, 5, 3, 9), (8, 9, 10, 11), (0, 1, 0, 11))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name has a blank and a letter that ASCII lacks."""
    (tmp_path / "Jülich 1").mkdir()
    return tmp_path / "Jülich 1"


def made(name: str, height: int = 9, width: int = 11, dtype: str = "") -> np.ndarray:
    """A cube that the layout can hold; no two of its pixels are alike."""
    kind = KINDS[name]
    values = np.random.default_rng(0).integers(1, 200, (height, width, kind.bands or 6))
    return values.astype(dtype or kind.types[0])


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, kind in KINDS.items() for dtype in kind.types]
)
def test_windows_equal_slices(folder: Path, name: str, dtype: str) -> None:
    cube = made(name, dtype=dtype)
    path = KINDS[name].write(folder, cube, Facts())
    before = content(folder)
    reader = open_cube(path, bands=cube.shape[2])
    assert reader.contents.format in (KINDS[name].format, "NetCDF-4")  # that is HDF5
    assert (reader.name, reader.shape, reader.dtype) == ("cube", cube.shape, cube.dtype)
    assert reader.dtype.isnative
    for row0, row1, col0, col1 in WINDOWS:
        window = reader.read(row0, row1, col0, col1)
        np.testing.assert_array_equal(window, cube[row0:row1, col0:col1])
        assert window.flags.c_contiguous
        assert window.dtype == cube.dtype
    np.testing.assert_array_equal(reader[2:5], cube[2:5])
    assert reader[4:4].shape == (0, *cube.shape[1:])
    for window in ((0, 10, 0, 3), (-1, 3, 0, 3), (3, 3, 0, 3), (0, 3, 5, 12)):
        with refuses("window", rule="must lie inside the scene of 9 x 11 pixels"):
            reader.read(*window)
    whole = load_cube(path, bands=cube.shape[2])
    np.testing.assert_array_equal(whole.cube, cube)
    assert (whole.nodata, whole.bad_bands) == (reader.nodata, ())
    assert content(folder) == before


@pytest.mark.parametrize("size", [(9, 11), (1, 40), (24, 1)])
@pytest.mark.parametrize("name", KINDS)
def test_a_scene_is_that_of_its_arrays(folder: Path, name: str, size: tuple[int, int]) -> None:
    if size[1] == 1 and name.startswith("tiff-pages"):
        pytest.skip("the writer joins pages of one column into one page")
    cube = made(name, *size)
    labels = np.random.default_rng(1).choice(np.array([0, 2, 5, 7], np.uint8), size)
    np.save(folder / "gt.npy", labels)
    scene = load_scene(KINDS[name].write(folder, cube, Facts()), folder / "gt.npy")
    expected = scene_from_arrays(cube, labels, nodata=scene.nodata)
    np.testing.assert_array_equal(scene.cube, cube)
    np.testing.assert_array_equal(scene.labels, expected.labels)
    assert scene.class_ids == (2, 5, 7)
    assert scene.fingerprint == expected.fingerprint


@pytest.mark.parametrize("name", kinds_that_say("labels"))
def test_labels_in_the_file_of_the_cube(folder: Path, name: str) -> None:
    cube, labels = made(name), np.arange(99, dtype=np.uint8).reshape(9, 11) % 4
    scene = load_scene(KINDS[name].write(folder, cube, Facts(labels=labels)))
    np.testing.assert_array_equal(scene.labels, labels)
    np.testing.assert_array_equal(scene.cube, cube)


@pytest.mark.parametrize("name", kinds_that_say("waves"))
def test_wavelengths_are_in_nm(folder: Path, name: str) -> None:
    waves = np.linspace(400, 900, 6)
    reader = open_cube(KINDS[name].write(folder, made(name), Facts(waves)))
    assert reader.wavelengths is not None
    np.testing.assert_allclose(reader.wavelengths, waves)


@pytest.mark.parametrize("name", kinds_that_say("nodata"))
def test_the_no_data_value(folder: Path, name: str) -> None:
    cube = made(name)
    cube[2, 3] = -300
    path = KINDS[name].write(folder, cube, Facts(nodata=-300))
    assert open_cube(path).nodata == -300
    whole = load_cube(path)
    assert whole.nodata == -300
    assert np.argwhere(~whole.valid).tolist() == [[2, 3]]


@pytest.mark.parametrize("name", kinds_that_say("place"))
def test_the_place(folder: Path, name: str) -> None:
    grid = open_cube(KINDS[name].write(folder, made(name), Facts(transform=TRANSFORM))).grid
    assert grid is not None
    assert grid.transform == TRANSFORM
    assert grid.epsg == Facts().epsg


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", KINDS)
def test_a_truncated_file_is_refused(folder: Path, name: str) -> None:
    cube = made(name, 40, 31)
    path = KINDS[name].write(folder, cube, Facts())
    largest = max(content(folder), key=lambda each: each.stat().st_size)
    data = largest.read_bytes()
    for kept in (0.99, 0.9, 0.6, 0.3, 0.05):
        largest.write_bytes(data[: int(len(data) * kept)])
        if kept == 0.99 and name == "imagine":  # what is cut off is no pixel
            np.testing.assert_array_equal(load_cube(path).cube, cube)
            continue
        with refuses("scene", rule="truncated"):
            load_cube(path)
    gc.collect()  # scipy leaves a truncated NetCDF-3 file open


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.is_checked])
def test_damage_is_seen_where_there_are_checksums(folder: Path, name: str) -> None:
    path = KINDS[name].write(folder, made(name, 40, 31), Facts())
    largest = max(content(folder), key=lambda each: each.stat().st_size)
    data = bytearray(largest.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    largest.write_bytes(data)
    with refuses("scene", rule="truncated or corrupt"):
        load_cube(path)


@pytest.mark.parametrize("compress", ["lerc", "lerc_zstd"])
def test_one_changed_bit_of_a_tiff_with_checksums_is_seen(folder: Path, compress: str) -> None:
    path = write_raster(folder / "cube.tif", made("geotiff"), Facts(), compress=compress)
    data = path.read_bytes()
    with tifffile.TiffFile(path) as file:
        offset, size = file.pages[0].dataoffsets[0], file.pages[0].databytecounts[0]
    for place in np.linspace(offset + 2, offset + size - 1, 9, dtype=int):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with refuses("scene", rule="truncated or corrupt"):
            load_cube(path)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"planarconfig": "separate"},
        {"compression": "zlib"},
        {"planarconfig": "separate", "tile": (16, 16)},
    ],
)
def test_a_warning_of_the_library_refuses_no_pixels(folder: Path, how: dict[str, object]) -> None:
    """With a description, tifffile writes two tags of one number, of which libtiff warns."""
    cube = made("geotiff")
    described = {"photometric": "minisblack", "description": "plot 3, noon", **how}
    tifffile.imwrite(folder / "cube.tif", cube.transpose(2, 0, 1), **described)
    labels = np.arange(99, dtype=np.uint8).reshape(9, 11) % 4
    tifffile.imwrite(folder / "gt.tif", labels, photometric="minisblack", description="by hand")
    scene = load_scene(folder / "cube.tif", folder / "gt.tif")
    np.testing.assert_array_equal(scene.cube, cube)
    np.testing.assert_array_equal(scene.labels, labels)


def test_scales_and_control_points_that_are_not_used_give_a_note(folder: Path) -> None:
    path = write_raster(folder / "cube.tif", made("geotiff"), Facts())
    with rasterio.open(path, "r+") as file:
        file.scales = [1e-4] * file.count
    assert open_cube(path).codes[0] == "values-unscaled"
    corners = [GroundControlPoint(row, column, column, row) for row in (0, 9) for column in (0, 11)]
    with rasterio.open(path, "r+") as file:
        file.gcps = corners, rasterio.CRS.from_epsg(4326)
    cube = open_cube(path)
    assert "not used: its ground control points" in cube.notes[1]
    assert not cube.grid.is_placed
    gains = f"data gain values = {{{', '.join(['0.5'] * 6)}}}\n"
    for extra in (gains, "reflectance scale factor = 10000\n"):
        write_envi(folder / "cube.img", made("geotiff"), "bil", "<", extra)
        assert open_cube(folder / "cube.img").codes[0] == "values-unscaled"
    write_envi(
        folder / "cube.img", made("geotiff"), "bsq", "<", "reflectance scale factor = 1.00\n"
    )
    header = folder / "cube.hdr"
    header.write_text(header.read_text().replace("interleave = bsq\n", ""))
    (finding,) = open_cube(header).findings
    assert (finding.code, finding.facts["order"]) == ("axes-guessed", ["bands", "height", "width"])


@pytest.mark.parametrize(
    ("driver", "suffix", "options"),
    [
        ("PCIDSK", "pix", {"INTERLEAVING": "TILED"}),  # whose header counts blocks left out
        ("ISIS3", "lbl", {"DATA_LOCATION": "GEOTIFF", "GEOTIFF_OPTIONS": "COMPRESS=DEFLATE"}),
    ],
)
def test_tiles_and_compressed_pixels_are_no_truncated_file(
    folder: Path, driver: str, suffix: str, options: dict[str, str]
) -> None:
    cube = made("pci", dtype="int16")
    path = write_raster(folder / f"cube.{suffix}", cube, Facts(), driver, **options)
    np.testing.assert_array_equal(load_cube(path).cube, cube)
