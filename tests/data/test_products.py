"""Products of satellite missions, made by code from the documents of their formats."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
from click.testing import CliRunner
from products_made import ENMAP, desis, emit, enmap, neon, pace, prisma
from reader_files import write_envi
from whole_cube import load_cube

from hytas import plugins
from hytas.cli.inspect import inspect
from hytas.data import load_scene, open_cube, open_file
from hytas.data.location import Orthorectified
from hytas.errors import InputError


def windows_agree(path: Path) -> None:
    """Read in parts, a cube is what it is as a whole."""
    whole, cube = load_cube(path).cube, open_cube(path)
    height, width, _ = cube.shape
    np.testing.assert_array_equal(cube.read(1, height, 2, width), whole[1:, 2:])
    np.testing.assert_array_equal(cube[0:2], whole[:2])


def test_emit_reflectance(tmp_path: Path) -> None:
    path = tmp_path / "EMIT_L2A_RFL_001.nc"
    made = emit(path)
    contents = open_file(path)
    assert contents.format == "EMIT L2A (NetCDF-4)"
    assert [variable.name for variable in contents.variables] == ["reflectance"]
    cube = load_cube(path)
    np.testing.assert_array_equal(cube.cube, made["reflectance"])
    np.testing.assert_array_equal(cube.wavelengths, [381, 500, 700, 1380, 1900, 2400])
    assert cube.bad_bands == (3, 4)
    assert cube.nodata == -9999
    assert not cube.valid[0, 0]
    assert cube.valid.sum() == 12 * 10 - 1
    windows_agree(path)


def test_a_product_of_a_user_comes_before_those_of_hytas(tmp_path: Path) -> None:
    emit(tmp_path / "emit.nc")
    code = "import dataclasses, hytas.plugins as p\ndef known(c): return c.find('reflectance')\n"
    code += "def own(c): 'Rename it.'; return dataclasses.replace(c, format='mine')\n"
    (tmp_path / "mine.py").write_text(f"{code}p.product(known, own)")
    plugins.load_plugins([str(tmp_path / "mine.py")])
    assert open_file(tmp_path / "emit.nc").format == "mine"
    plugins.unload(str(tmp_path / "mine.py"))
    assert open_file(tmp_path / "emit.nc").format == "EMIT L2A (NetCDF-4)"


def test_emit_latitudes_are_no_labels(tmp_path: Path, mat) -> None:
    path = tmp_path / "EMIT_L2A_RFL_001.nc"
    emit(path)
    with pytest.raises(InputError, match="holds no label map"):
        load_scene(path)
    labels = np.arange(120).reshape(12, 10) % 3
    scene = load_scene(path, mat("gt.mat", gt=labels))
    assert scene.bad_bands == (3, 4)
    # By name, the other arrays can still be asked for.
    with pytest.raises(InputError, match="labels must be whole numbers"):
        load_scene(path, labels_key="location/lat")


def test_emit_orthorectified(tmp_path: Path) -> None:
    path = tmp_path / "EMIT_L2A_RFL_001.nc"
    made = emit(path)
    location = open_cube(path).grid.location
    assert location.lookup.grid.epsg == 4326
    assert location.lookup.grid.transform == (0.001, 0.0, 20.0, 0.0, -0.001, 40.0)
    longitude, latitude = location.read()
    np.testing.assert_array_equal(latitude, made["location/lat"])
    values = np.arange(1, 121, dtype=np.uint8).reshape(12, 10)
    ortho = Orthorectified(values, location.lookup)
    assert ortho.shape == (15, 11)
    x, y = made["location/glt_x"], made["location/glt_y"]
    expected = np.where(x > 0, values[y - 1, x - 1], 0)
    np.testing.assert_array_equal(ortho[0:15], expected)
    np.testing.assert_array_equal(ortho[4:9], expected[4:9])
    # The table and the coordinates say the same: half a pixel of the grid at most.
    rows, columns = np.nonzero(x)
    there = longitude[y[rows, columns] - 1, x[rows, columns] - 1]
    assert np.abs(there - (20.0 + 0.001 * (columns + 0.5))).max() < 0.0006


@pytest.mark.parametrize("name", ["wavelengths", "good_wavelengths"])
def test_emit_lists_that_do_not_fit(tmp_path: Path, name: str) -> None:
    path = tmp_path / "EMIT_L2A_RFL_001.nc"
    emit(path, **{f"sensor_band_parameters/{name}": np.ones(5)})
    with pytest.raises(InputError, match=f"{name} .* must hold a number for each band"):
        open_file(path)


def test_emit_lookup_beyond_the_scene(tmp_path: Path) -> None:
    path = tmp_path / "EMIT_L2A_RFL_001.nc"
    emit(path, **{"location/glt_x": np.full((3, 3), 99), "location/glt_y": np.full((3, 3), 2)})
    lookup = open_cube(path).grid.location.lookup
    assert not Orthorectified(np.ones((12, 10), np.uint8), lookup)[0:3].any()


def test_prisma_detectors_are_one_cube(tmp_path: Path) -> None:
    path = tmp_path / "PRS_L2D_STD.he5"
    made = prisma(path)
    contents = open_file(path)
    assert contents.format == "PRISMA L2D (HDF5)"
    cube = load_cube(path)
    np.testing.assert_array_equal(cube.wavelengths, [450, 700, 950, 970, 2400])
    vnir = made["vnir"].transpose(0, 2, 1).astype(float) * (1.3 / 65535) - 0.1
    swir = made["swir"].transpose(0, 2, 1).astype(float) * (0.8 / 65535)
    bands = [vnir[..., 3], vnir[..., 2], swir[..., 1], vnir[..., 1], swir[..., 0]]
    expected = np.stack(bands, axis=2)
    np.testing.assert_allclose(cube.cube[:7], expected[:7], atol=2e-7)
    assert not cube.valid[7, 8]
    assert cube.valid.sum() == 8 * 9 - 1
    assert cube.cube.dtype == np.float32
    windows_agree(path)
    grid = open_cube(path).grid
    assert grid.epsg == 32632
    assert grid.transform == (30.0, 0.0, 499985.0, 0.0, -30.0, 5000015.0)


def test_prisma_radiance_in_sensor_geometry(tmp_path: Path) -> None:
    path = tmp_path / "PRS_L1_STD.he5"
    made = prisma(path, "L1")
    cube = load_cube(path)
    np.testing.assert_allclose(cube.cube[0, :, 0], made["vnir"][0, 3] / 100.0, rtol=1e-6)
    np.testing.assert_allclose(cube.cube[0, :, 4], made["swir"][0, 0] / 200.0 - 1.0, rtol=1e-5)
    assert open_cube(path).grid.transform is None
    assert cube.grid.location.lookup is None
    assert cube.grid.location.read()[1].shape == (8, 9)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"List_Cw_Swir": None}, "needs the attribute List_Cw_Swir"),
        ({"List_Cw_Swir": np.ones(9)}, "its list of wavelengths 9: they must agree"),
        ({"L2ScaleVnirMax": None}, "needs the attribute L2ScaleVnirMax"),
        ({"L2ScaleVnirMax": np.float32(-3)}, "must be below the maximum"),
    ],
)
def test_prisma_without_its_attributes(tmp_path: Path, changed: dict, words: str) -> None:
    path = tmp_path / "PRS_L2D_STD.he5"
    prisma(path, **changed)
    with pytest.raises(InputError, match=words) as caught:
        load_cube(path)
    assert (caught.value.argument, caught.value.value) == ("scene", path)


def test_prisma_corners_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "PRS_L2D_STD.he5"
    prisma(path, Product_LRcorner_easting=500000.0)
    assert open_cube(path).grid.transform is None
    assert open_cube(path).grid.location.lookup is None


@pytest.mark.parametrize("given", ["SPECTRAL_IMAGE.TIF", "METADATA.XML"])
def test_enmap(tmp_path: Path, given: str) -> None:
    import tifffile

    image = enmap(tmp_path)
    path = tmp_path / f"{ENMAP}-{given}"
    contents = open_file(path)
    assert contents.format == "EnMAP (GeoTIFF)"
    assert contents.files == (image, tmp_path / f"{ENMAP}-METADATA.XML")
    cube = load_cube(path)
    np.testing.assert_allclose(cube.wavelengths, [418.4, 550, 900, 1380, 2400])
    assert cube.bad_bands == (3,)
    stored = tifffile.imread(image).transpose(1, 2, 0)
    np.testing.assert_allclose(
        cube.cube, np.where(stored == -32768, -32768, stored * 1e-4), atol=1e-6
    )
    assert not cube.valid[0, 0]
    assert open_cube(path).grid.epsg == 32633
    windows_agree(path)


@pytest.mark.parametrize("end", ["_COG.tiff", "_COG.tif", ".BSQ", ".BIP"])
def test_enmap_in_another_format(tmp_path: Path, end: str) -> None:
    image = enmap(tmp_path)
    whole = load_cube(image)
    other = tmp_path / f"{ENMAP}-SPECTRAL_IMAGE{end}"
    if end.startswith("_COG"):
        image.rename(other)
    else:
        place = "map info = {UTM, 1, 1, 400000, 5800000, 30, 30, 33, North, WGS-84}\n"
        with rasterio.open(image) as file:
            stored = file.read().transpose(1, 2, 0)
        write_envi(other, stored, end[1:].lower(), "<", f"{place}data ignore value = -32768\n")
        image.unlink()
    for given in (other, tmp_path / f"{ENMAP}-METADATA.XML"):
        cube = load_cube(given)
        np.testing.assert_array_equal(cube.cube, whole.cube)
        assert cube.bad_bands == whole.bad_bands
        assert cube.grid.epsg == 32633
    assert open_file(other).format.startswith("EnMAP (")
    assert open_file(other).files[-1].name == f"{ENMAP}-METADATA.XML"


def test_enmap_bands_out_of_order(tmp_path: Path) -> None:
    image = enmap(tmp_path, (418.4, 950, 900, 1380, 2400))
    cube = load_cube(image)
    np.testing.assert_allclose(cube.wavelengths, [418.4, 900, 950, 1380, 2400])
    plain = tmp_path / "plain.tif"
    plain.write_bytes(image.read_bytes())
    np.testing.assert_allclose(cube.cube[2, 2, 1], load_cube(plain).cube[2, 2, 2] * 1e-4, rtol=1e-6)


def test_enmap_without_or_with_other_metadata(tmp_path: Path) -> None:
    image = enmap(tmp_path, (418.4, 550, 900))
    with pytest.raises(InputError, match=r"has 5 bands, and .*METADATA.XML 3: they must agree"):
        open_file(image)
    enmap(tmp_path)
    metadata = tmp_path / f"{ENMAP}-METADATA.XML"
    text = metadata.read_text()
    metadata.write_text(text.replace("<rows>6<", "<rows>4<"))
    with pytest.raises(InputError, match=r"has 6 x 7, and .*METADATA.XML 4 x 7: they"):
        open_file(image)
    metadata.write_text(text.replace(">900<", ">nine<"))
    with pytest.raises(InputError, match="wavelengthCenterOfBand of a band is 'nine'"):
        open_file(image)
    enmap(tmp_path)
    image.unlink()
    with pytest.raises(InputError, match="metadata without their image"):
        open_file(metadata)


def test_a_tile_of_enmap(tmp_path: Path) -> None:
    image = enmap(tmp_path)
    whole = load_cube(image)
    metadata = tmp_path / f"{ENMAP}-METADATA.XML"
    metadata.write_text(metadata.read_text().replace("<rows>6<", "<rows>1200<"))
    tile = load_cube(image)
    assert tile.codes[0] == "part-of-product"
    np.testing.assert_array_equal(tile.cube, whole.cube)
    metadata.unlink()
    plain = load_cube(image)
    assert plain.codes[0] == "values-unscaled"
    with rasterio.open(image) as file:
        np.testing.assert_array_equal(plain.cube, file.read().transpose(1, 2, 0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type"),
        ("<a><b></a>", "is not XML"),
        ("", "is not XML"),
        ("<a/>", "has 5 bands, and .* 0: they must agree"),
    ],
)
def test_hostile_metadata(tmp_path: Path, text: str, words: str) -> None:
    image = enmap(tmp_path)
    (tmp_path / f"{ENMAP}-METADATA.XML").write_text(text)
    with pytest.raises(InputError, match=words):
        open_file(image)


def test_desis(tmp_path: Path) -> None:
    cube = load_cube(desis(tmp_path))
    np.testing.assert_allclose(cube.wavelengths, [402.1, 404.7, 999.5])
    assert open_file(desis(tmp_path)).format == "DESIS (GeoTIFF)"
    assert 0.5 <= cube.cube.min() < cube.cube.max() <= 1.1
    assert cube.nodata == -32768


def test_pace_surface_reflectance(tmp_path: Path) -> None:
    path = tmp_path / "PACE_OCI.L2.SFREFL.nc"
    made = pace(path)
    cube = load_cube(path)
    assert open_file(path).format == "PACE OCI L2 (NetCDF-4)"
    np.testing.assert_allclose(cube.wavelengths, [346, 500, 895, 2258])
    np.testing.assert_allclose(cube.cube, made["geophysical_data/rhos"] * 1e-4 + 0.02, atol=1e-6)
    assert cube.grid.location.read()[0][0, 0] == -60
    windows_agree(path)


def test_pace_detectors_are_one_cube(tmp_path: Path) -> None:
    path = tmp_path / "PACE_OCI.L1B.nc"
    made = pace(path, "L1B")
    cube = load_cube(path)
    np.testing.assert_allclose(cube.wavelengths, [350, 595, 600, 800, 940, 1250, 1250])
    np.testing.assert_array_equal(cube.cube[..., 1], made["observation_data/rhot_red"][0])
    gains = made["observation_data/rhot_SWIR"][1:].transpose(1, 2, 0)
    np.testing.assert_array_equal(cube.cube[..., 5:], gains)
    windows_agree(path)


def test_hyperion_bad_bands(tmp_path: Path) -> None:
    (tmp_path / "EO1H.L1R").write_bytes(b"")  # as delivered, beside its converted cube
    cube = np.random.default_rng(0).integers(0, 900, (4, 3, 5)).astype("<i2")
    cube.transpose(0, 2, 1).tofile(tmp_path / "EO1H.bil")
    (tmp_path / "EO1H.hdr").write_text(
        "ENVI\nsamples = 3\nlines = 4\nbands = 5\ndata type = 2\ninterleave = bil\n"
        "sensor type = Hyperion\nwavelength units = Nanometers\n"
        "wavelength = {\n 355.6, 426.8,\n 1346.3, 1900.5, 2395.5}\nbbl = {0, 1,\n 1, 0, 1}\n"
    )
    loaded = load_cube(tmp_path / "EO1H.hdr")
    np.testing.assert_array_equal(loaded.cube, cube)
    assert loaded.bad_bands == (0, 3)


def test_neon_reflectance(tmp_path: Path) -> None:
    path = tmp_path / "NEON_D17_SJER_DP3_257000_4112000_reflectance.h5"
    stored = neon(path)
    loaded = load_cube(path)
    assert open_file(path).format == "NEON reflectance (HDF5)"
    np.testing.assert_allclose(loaded.cube[loaded.valid], stored[loaded.valid] / 1e4, rtol=1e-6)
    assert loaded.nodata == -9999
    assert not loaded.valid[0, 0]
    assert loaded.bad_bands == (2,)
    np.testing.assert_allclose(loaded.fwhm, 5.7)
    assert loaded.grid.transform == (1, 0, 257000, 0, -1, 4112000)
    assert loaded.codes == ("pixels-masked",)
    windows_agree(path)
    with pytest.raises(InputError, match="holds no label map"):
        load_scene(path)
    for map_info in ("UTM, 1, 1, 2, 3, 1, 1, 11, North, WGS-84, units=Meters, 30", "UTM"):
        neon(path, map_info=map_info)
        assert load_cube(path).grid.transform is None
    neon(path, **{"Metadata/Spectral_Data/Wavelength": np.zeros(4)})
    with pytest.raises(InputError, match="a NEON product needs the list Wavelength"):
        load_scene(path)


def test_neon_radiance_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "NEON_D17_SJER_DP1_20210607_L001-1_radiance.h5"
    neon(path)
    whole = np.random.default_rng(1).integers(0, 40, (6, 5, 4)).astype(np.uint8)
    parts = np.random.default_rng(2).integers(0, 50_000, (6, 5, 4)).astype(np.uint16)
    whole[0, 0], parts[1, 1] = 255, 65535
    with h5py.File(path, "r+") as file:
        file.move("SJER/Reflectance", "SJER/Radiance")
        del file["SJER/Radiance/Reflectance_Data"]
        for name, values in (("Integer", whole), ("Decimal", parts)):
            stored = file.create_dataset(f"SJER/Radiance/Radiance{name}Part", data=values)
            stored.attrs["Data_Ignore_Value"] = np.iinfo(values.dtype).max
        stored.attrs["Scale_Factor"] = 50_000.0
    loaded, mask = load_cube(path), np.zeros((6, 5), np.bool_)
    mask[0, 0] = mask[1, 1] = True
    assert open_file(path).format == "NEON radiance (HDF5)"
    np.testing.assert_array_equal(loaded.valid, ~mask)
    np.testing.assert_allclose(loaded.cube[~mask], (whole + parts / 50_000)[~mask], rtol=1e-6)
    np.testing.assert_allclose(loaded.wavelengths, [450, 800, 1400, 2200])
    assert loaded.grid.crs == "EPSG:32611"
    windows_agree(path)


def test_other_files_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "own.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["reflectance"] = np.ones((4, 5, 6), np.float32)
        file["gt"] = np.arange(20).reshape(4, 5) % 3
        file.attrs["broken"] = h5py.Empty("f4")
    contents = open_file(path)
    assert contents.format == "HDF5"
    assert load_scene(path).classes == 2


@pytest.mark.parametrize(
    ("product", "place", "bad"),
    [
        (emit, "sensor geometry, latitudes and longitudes, with a lookup table", "4-5"),
        (prisma, "EPSG:32632", None),
        (pace, "sensor geometry, latitudes and longitudes", None),
        (neon, "EPSG:32611", "3"),
    ],
)
def test_inspect_says_what_a_product_is(tmp_path: Path, product, place: str, bad: str) -> None:
    product(tmp_path / "product.h5")
    done = CliRunner().invoke(inspect, [str(tmp_path / "product.h5"), "--json"])
    assert done.exit_code == 0, done.output
    description = json.loads(done.output)
    assert description["place"].startswith(place)
    assert description.get("bad bands") == bad
