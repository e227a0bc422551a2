"""Every file layout gives the same scene."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
import tifffile
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin
from rasterio.enums import ColorInterp
from scipy.io import savemat
from whole_cube import load_cube

from hytas.data import (
    load_scene,
    open_cube,
    open_file,
    scene_from_arrays,
)
from hytas.data.interpret.wavelengths import wavelength_facts
from hytas.data.palette import palette
from hytas.data.read.envi import fields_of
from hytas.data.record import OPACITY, OPACITY_IS_A_BAND
from hytas.errors import InputError
from refusals import refuses


def assert_same(scene, cube, labels):
    np.testing.assert_array_equal(scene.cube, cube)
    assert scene.cube.dtype == cube.dtype
    assert scene.cube.dtype.isnative
    ids = (0, *scene.class_ids)
    np.testing.assert_array_equal(np.array(ids)[scene.labels], labels)


def test_two_files_with_any_names(mat, cube, labels):
    scene = load_scene(mat("a.mat", foo=cube), mat("b.mat", bar=labels.astype(float)))
    assert_same(scene, cube, labels)
    assert scene.class_ids == (2, 5, 7)
    assert scene.labels.dtype == np.int32
    assert scene.class_names == ("class 2", "class 5", "class 7")
    assert scene.name == "a"
    assert scene.train is None


def test_one_file_with_cube_and_labels_and_other_things(mat, cube, labels):
    path = mat(
        x=cube, y=labels, note="text", scalar=3, row=np.arange(6.0), wavelength=np.arange(6) + 0.5
    )
    scene = load_scene(path)
    assert_same(scene, cube, labels)
    np.testing.assert_allclose(scene.wavelengths, 1000.0 * (np.arange(6) + 0.5))


def test_split_layout(mat, cube, labels):
    mask = np.arange(labels.size).reshape(labels.shape) % 3 == 0
    scene = load_scene(mat(input=cube, TR=labels * mask, TE=labels * ~mask))
    assert_same(scene, cube, labels)
    np.testing.assert_array_equal(scene.train > 0, (labels > 0) & mask)
    np.testing.assert_array_equal(scene.labels, np.maximum(scene.train, scene.test))


def test_masks_of_a_split_are_no_maps(mat, cube, labels):
    """Maps of classes whose names differ by "train" and "test" are a split; masks are not."""
    mask = np.arange(labels.size).reshape(labels.shape) % 3 == 0
    scene = load_scene(mat(c=cube, gt=labels, gt_Train=labels * mask, gt_Test=labels * ~mask))
    np.testing.assert_array_equal(scene.train > 0, (labels > 0) & mask)
    scene = load_scene(mat(c=cube, gt=labels, train_mask=mask, test_mask=~mask))
    assert scene.train is None
    assert scene.notes[0].startswith("not used: train_mask (9 x 11 logical), test_mask (9 x 11 ")
    assert load_scene(mat(c=cube, gt=labels, latest=mask)).notes == ()


def test_split_layout_in_two_files_and_by_key(mat, cube, labels):
    mask = np.arange(labels.size).reshape(labels.shape) % 3 == 0
    data = mat("a.mat", c=cube, noise=cube[:, :, :1].squeeze() + 500)
    other = mat("b.mat", one=labels * mask, two=labels * ~mask, three=labels)
    scene = load_scene(data, other, labels_key="one,two")
    np.testing.assert_array_equal(scene.train > 0, (labels > 0) & mask)
    assert load_scene(data, other, labels_key="three").train is None
    with pytest.raises(InputError, match=r"several maps: one .*two .*three .*labels_key"):
        load_scene(data, other)


def test_a_pixel_in_both_maps_is_for_testing_only(mat, cube, labels):
    train = labels.copy()
    test = np.where(np.arange(labels.size).reshape(labels.shape) % 3 == 0, labels, 0)
    scene = load_scene(mat(input=cube, TR=train, TE=test))
    assert not ((scene.train > 0) & (scene.test > 0)).any()
    np.testing.assert_array_equal(scene.test > 0, test > 0)
    assert f"{(test > 0).sum()} pixels are in both TR and TE" in scene.notes[0]


def test_the_only_map_that_can_be_ground_truth_is_taken(mat, cube, labels):
    others = {"mask": labels > 0, "latitude": np.linspace(40, 41, 99).reshape(9, 11), "z": cube[0]}
    scene = load_scene(mat(c=cube, gt=labels, dark=np.zeros((9, 11)), **others))
    assert_same(scene, cube, labels)


def test_matlabs_order_only_where_matlab_wrote(tmp_path, cube, labels):
    with h5py.File(tmp_path / "plain.mat", "w") as file:
        file["cube"], file["gt"] = cube, labels
    assert_same(load_scene(tmp_path / "plain.mat"), cube, labels)
    with h5py.File(tmp_path / "class.h5", "w") as file:
        for name, array in (("cube", cube), ("gt", labels)):
            stored = file.create_dataset(name, data=array.T)
            stored.attrs["MATLAB_class"] = np.bytes_(array.dtype.name)
    assert_same(load_scene(tmp_path / "class.h5"), cube, labels)


def test_a_mat_file_beside_a_header_of_the_same_name(tmp_path, cube, labels):
    savemat(tmp_path / "scene.mat", {"cube": cube, "gt": labels})
    write_envi(tmp_path / "scene", CUBE, bytes(24))  # as a map of the scene may be named
    assert_same(load_scene(tmp_path / "scene.mat"), cube, labels)
    assert open_file(tmp_path / "scene.img").format == "ENVI BSQ"


@pytest.mark.parametrize("letters", [b"IM", b"MI"])
def test_two_letters_make_no_matlab_file(tmp_path, cube, labels, letters):
    """MATLAB's version 5 has the letters of its byte order at byte 126."""
    text = letters.decode()
    cube.transpose(2, 0, 1)[0].flat[63] = int.from_bytes(letters, "little")
    description = "x" * (126 - len("ENVI\ndescription = {")) + text
    (tmp_path / "c.hdr").write_text(
        f"ENVI\ndescription = {{{description}}}\nsamples = 11\nlines = 9\nbands = 6\n"
        "data type = 2\ninterleave = bsq\nbyte order = 0\n"
    )
    cube.transpose(2, 0, 1).tofile(tmp_path / "c.img")
    facts = PngImagePlugin.PngInfo()
    facts.add_text("Comment", "x" * 77 + text)
    Image.fromarray(labels).save(tmp_path / "gt.png", pnginfo=facts)
    for name in ("c.hdr", "c.img", "gt.png"):
        assert (tmp_path / name).read_bytes()[126:128] == letters
    for name in ("c.hdr", "c.img"):
        assert_same(load_scene(tmp_path / name, tmp_path / "gt.png"), cube, labels)


@pytest.mark.parametrize("side", [300, pytest.param(900, marks=pytest.mark.slow)])
def test_a_sparse_scene_is_read(tmp_path, mat, side: int) -> None:
    """It takes less than a hundredth of its bytes in a file that is compressed."""
    cube, labels = np.zeros((side, side, 90), np.uint8), np.zeros((side, side), np.uint16)
    cube[:3, :50] = np.arange(90)
    labels[0], labels[1] = 1, 2
    packed = {"photometric": "minisblack", "compression": "zlib"}
    tifffile.imwrite(tmp_path / "c.tif", cube.transpose(2, 0, 1), **packed)
    tifffile.imwrite(tmp_path / "gt.tif", labels, **packed)
    for path in (tmp_path / "c.tif", mat("c.mat", c=cube)):
        assert path.stat().st_size < cube.nbytes / 200
        assert_same(load_scene(path, tmp_path / "gt.tif"), cube, labels)


def test_the_fingerprint_tells_class_ids_and_bad_bands(cube, labels):
    scenes = [
        scene_from_arrays(cube, labels),
        scene_from_arrays(cube, labels * 7),
        scene_from_arrays(cube, labels, bad_bands=(1, 2)),
        scene_from_arrays(cube, labels, nodata=-9999),
    ]
    assert len({scene.fingerprint for scene in scenes}) == 4
    again = scene_from_arrays(np.asfortranarray(cube), labels.astype(np.float64))
    assert again.fingerprint == scenes[0].fingerprint


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
@pytest.mark.parametrize("byteorder", [0, 1])
@pytest.mark.parametrize("dtype", ["int16", "uint16", "float32", "uint8", "float64"])
def test_envi_agrees_with_what_spectral_wrote(tmp_path, cube, labels, interleave, byteorder, dtype):
    envi = pytest.importorskip("spectral.io.envi")
    data = np.abs(cube).astype(dtype)
    metadata = {"wavelength": [str(w) for w in np.linspace(0.4, 2.4, 6)], "map info": ["UTM", "1"]}
    options = {"interleave": interleave, "byteorder": byteorder, "ext": ".img"}
    envi.save_image(str(tmp_path / "c.hdr"), data, dtype=dtype, metadata=metadata, **options)
    envi.save_classification(
        str(tmp_path / "gt.hdr"), labels, class_names=["none", *"abcdefg"], ext=".img"
    )
    for name in ("c.hdr", "c.img"):
        scene = load_scene(tmp_path / name, tmp_path / "gt.img")
        assert_same(scene, data, labels)
        np.testing.assert_allclose(scene.wavelengths, np.linspace(400, 2400, 6))
        assert scene.class_names == ("b", "e", "g")
    np.testing.assert_array_equal(load_cube(tmp_path / "c.img").cube, data)
    np.testing.assert_array_equal(open_cube(tmp_path / "c.img").read(2, 5, 3, 9), data[2:5, 3:9])


def test_envi_header_text(tmp_path):
    path = tmp_path / "a.hdr"
    path.write_text(
        "ENVI\n; a comment\nSamples = 3\nmap  info = {UTM,\n; inside\n 1, 2}\ndescription={x = 1}\n"
    )
    assert fields_of(path) == {
        "samples": "3",
        "map info": "{UTM,\n 1, 2}",
        "description": "{x = 1}",
    }


def test_bands_first_is_put_right_by_the_labels(mat, cube, labels):
    for axis in (0, 1):
        scene = load_scene(mat(c=np.moveaxis(cube, -1, axis), gt=labels))
        assert_same(scene, cube, labels)
        (finding, *_) = scene.findings
        order = (["bands", "height", "width"], ["height", "bands", "width"])[axis]
        assert (finding.code, finding.facts["order"]) == ("axes-guessed", order)


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(st.integers(2, 9), st.integers(2, 9), st.integers(10, 14)),
    dtype=st.sampled_from(["u1", "<i2", ">i2", ">u2", "<i4", ">f4", "<f8", ">f8"]),
    ids=st.lists(st.integers(1, 60000), min_size=2, max_size=6, unique=True),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_type_and_any_ids(tmp_path_factory, shape, dtype, ids, seed):
    generator = np.random.default_rng(seed)
    cube = generator.integers(0, 200, shape).astype(dtype)
    labels = generator.choice([0, *ids], shape[:2])
    labels.ravel()[:2] = ids[:2]
    path = tmp_path_factory.mktemp("any") / "s.npz"
    np.savez(path, c=cube, gt=labels)
    assert_same(load_scene(path), cube.astype(cube.dtype.newbyteorder("=")), labels)


def test_fingerprint_is_of_the_values(mat, cube, labels, tmp_path):
    first = load_scene(mat("a.mat", c=cube, gt=labels)).fingerprint
    np.savez(tmp_path / "b.npz", other=np.asfortranarray(cube).astype(">i2"), gt=labels)
    assert load_scene(tmp_path / "b.npz").fingerprint == first
    changed = cube.copy()
    changed[3, 4, 5] += 1
    assert load_scene(mat("c.mat", c=changed, gt=labels)).fingerprint != first
    relabelled = np.where(labels == 2, 5, labels)
    relabelled[0, 0] = 2
    assert load_scene(mat("d.mat", c=cube, gt=relabelled)).fingerprint != first


def test_contents_name_what_a_file_holds_without_reading(mat, cube, labels):
    contents = open_file(mat(c=cube, gt=labels))
    assert [str(v) for v in contents.variables] == ["c (9 x 11 x 6 int16)", "gt (9 x 11 uint8)"]


def test_the_cube_has_as_many_bands_as_wavelengths(tmp_path, cube, labels):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["site/quality"], file["site/data"] = cube[:, :, :3], cube
        file["site/data"].attrs["Scale_Factor"] = 10000.0
        file["site/wavelength"] = np.linspace(400, 900, 6)
    np.save(tmp_path / "gt.npy", labels)
    scene = load_scene(tmp_path / "a.h5", tmp_path / "gt.npy")
    assert_same(scene, cube, labels)
    assert scene.codes[0] == "values-unscaled"
    assert scene.notes[1] == "the cube is site/data (9 x 11 x 6 int16)"


def test_axes_of_one_column_or_line(tmp_path, cube):
    column = np.moveaxis(cube[:, :1], 2, 0)  # bands, rows, 1
    np.save(tmp_path / "a.npy", column)
    with refuses("scene", rule="if another axis holds bands, name them with `axes`"):
        load_cube(tmp_path / "a.npy")
    np.testing.assert_array_equal(load_cube(tmp_path / "a.npy", axes="band,y,x").cube, cube[:, :1])
    np.savez(tmp_path / "a.npz", cube=column, wavelength=np.linspace(400, 900, 6))
    np.testing.assert_array_equal(load_cube(tmp_path / "a.npz").cube, cube[:, :1])
    np.save(tmp_path / "line.npy", cube[:1])
    with refuses("data", rule="holds no label map"):
        load_scene(tmp_path / "line.npy")


def test_real_scenes(real: Path):
    scene = load_scene(real / "IndianPine.mat")
    assert scene.cube.shape == (145, 145, 200)
    assert scene.cube.dtype == np.uint8
    assert scene.classes == 16
    assert ((scene.train > 0).sum(), (scene.test > 0).sum()) == (695, 9671)
    usual = load_scene(real / "IndianPine.mat", real / "Indian_pines_gt.mat")
    assert (usual.labels > 0).sum() == 10249
    salinas = load_scene(real / "SalinasA_corrected.mat", real / "SalinasA_gt.mat")
    assert salinas.cube.shape == (83, 86, 204)
    assert salinas.class_ids == (1, 10, 11, 12, 13, 14)
    assert sum(salinas.class_counts().values()) == 5348
    prints = [each.fingerprint[:8] for each in (scene, usual, salinas, load_scene("synthetic"))]
    assert prints == ["f18c014a", "44410638", "9f7c713d", "1b9d7472"]


def write_envi(path: Path, fields: dict[str, object], data: bytes) -> Path:
    header = path.with_suffix(".hdr")
    text = "".join(f"{name} = {value}\n" for name, value in fields.items())
    header.write_text(f"ENVI\n{text}", encoding="utf-8")
    path.with_suffix(".img").write_bytes(data)
    return header


CUBE = {"interleave": "bsq", "samples": 4, "lines": 3, "bands": 2, "data type": 1}


def test_bytes_behind_the_values_of_envi_are_named(tmp_path: Path) -> None:
    contents = open_file(write_envi(tmp_path / "s", CUBE, bytes(range(29))))
    (finding,) = contents.findings
    assert (finding.code, finding.severity) == ("envi-of-other-size", "warning")
    assert (finding.facts["bytes"], finding.facts["needed"]) == (29, 24)
    np.testing.assert_array_equal(contents.variables[0].values().ravel(), range(24))


@pytest.mark.parametrize(
    ("text", "mark"),
    [("-9999", -9999), ("{-9999}", -9999), ("nan", np.nan), ("-1.#IND", np.nan), ("none", None)],
)
def test_no_data_values_of_envi(tmp_path: Path, text: str, mark: float | None) -> None:
    header = write_envi(tmp_path / "s", CUBE | {"data ignore value": text}, bytes(24))
    contents = open_file(header)
    np.testing.assert_equal(contents.variables[0].nodata, mark)
    assert bool(contents.notes) == (text == "none")


@pytest.mark.parametrize(
    ("listed", "units", "reason"),
    [
        ("{500}", "Nanometers", "of 1 values; a positive"),
        ("{a, b}", "Nanometers", "a positive finite number, not all equal, for each of 2 bands"),
        ("{500, nan}", "Nanometers", "a positive finite number, not all equal"),
        ("{5, 6}", "furlong", "unit 'furlong', 5 to 6, are not used"),
        ("{10000, 20000}", "", "unit '', 10000 to 20000, are not used: the unit is missing"),
        ("{1, 2}", "Index", "unit 'Index', 1 to 2, are not used"),
        ("{1, 2}", "", "unit '', 1 to 2, are not used"),
        ("{500, 500}", "nm", "not all equal"),
    ],
)
def test_unusable_wavelengths_are_told(
    tmp_path: Path, listed: str, units: str, reason: str
) -> None:
    fields = CUBE | {"wavelength": listed, "wavelength units": units}
    cube = open_cube(write_envi(tmp_path / "s", fields, bytes(24)))
    assert cube.wavelengths is None
    assert reason in cube.notes[0]


@pytest.mark.parametrize(
    ("listed", "units"),
    [
        ("{0.5, 0.8,}", "Micrometers"),
        ("[0.5 0.8]", "Nanometers"),
        ("{500, 800}", "Micrometers"),
        ("{500 nm, 800 nm}", ""),
        ("{5e-7, 8.0E-7}", "m"),
        ("{5000, 8000}", "Angstroms"),
        ("{20000, 12500}", "Wavenumber"),
        ("{20000, 12500}", "1/cm"),
        ("500, 800", "Unknown"),
    ],
)
def test_wavelengths_of_any_unit_are_in_nm(tmp_path: Path, listed: str, units: str) -> None:
    fields = CUBE | {"wavelengths": listed, "wavelength units": units}
    cube = open_cube(write_envi(tmp_path / "s", fields, bytes(24)))
    np.testing.assert_allclose(cube.wavelengths, [500, 800])
    is_guess = (listed, units) in (("[0.5 0.8]", "Nanometers"), ("{500, 800}", "Micrometers"))
    assert [f"in the unit '{units}'" in note for note in cube.notes] == [True] * is_guess


@pytest.mark.parametrize(
    ("order", "is_mixed"), [((5, 4, 3, 2, 1, 0), False), ((0, 3, 1, 5, 2, 4), True)]
)
def test_bands_in_no_order_are_told(mat, cube, labels, order, is_mixed) -> None:
    waves = np.linspace(400, 900, cube.shape[2])[list(order)]
    scene = load_scene(mat(c=cube, gt=labels, wavelength=waves))
    np.testing.assert_array_equal(scene.wavelengths, waves)
    assert ("wavelengths-unordered" in scene.codes) == is_mixed
    facts, findings = wavelength_facts(2, ["450", "500"], "nm", ["0.005", "0.006"])
    assert facts.fwhm is None
    assert [one.code for one in findings] == ["not-used"]
    overlapping = [*np.linspace(400, 900, 40), *np.linspace(890, 2400, 60)]
    assert wavelength_facts(100, overlapping)[1] == []


def test_a_scale_for_each_band_of_netcdf_is_told(tmp_path: Path, cube) -> None:
    scales = np.linspace(0.1, 0.2, cube.shape[2])
    array = xarray.DataArray(cube, dims=("y", "x", "band"), attrs={"scale_factor": scales})
    array.to_dataset(name="c").to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    opened = open_cube(tmp_path / "a.nc")
    np.testing.assert_array_equal(opened[:], cube)
    assert "values-unscaled" in opened.codes


@pytest.mark.parametrize(
    ("listed", "bad", "note"),
    [
        ("{1., 0.0e+00}", (1,), None),
        ("{true, False}", (1,), None),
        ("{0, -1}", (), "good, for each of 2 bands"),
        ("{1, 0, 1}", (), "good, for each of 2 bands"),
        ("{1, maybe}", (), "a number or truth value"),
    ],
)
def test_bad_bands_of_any_form(
    tmp_path: Path, listed: str, bad: tuple[int, ...], note: str | None
) -> None:
    cube = open_cube(write_envi(tmp_path / "s", CUBE | {"bbl": listed}, bytes(24)))
    assert cube.bad_bands == bad
    assert [note in each for each in cube.notes] == ([] if note is None else [True])


def test_class_colours_of_the_label_file(tmp_path: Path) -> None:
    lookup = "{0,0,0, 10,20,30, 0, 0, 255}"
    fields = CUBE | {"bands": 1, "class lookup": lookup}
    loaded = open_file(write_envi(tmp_path / "s", fields, bytes(12))).class_colours
    assert loaded == {0: (0, 0, 0), 1: (10, 20, 30), 2: (0, 0, 255)}
    cube, labels = np.ones((2, 3, 4)), np.array([[0, 1, 1], [2, 2, 1]])
    scene = scene_from_arrays(cube, labels, class_colours=loaded)
    assert scene.palette.tolist() == [[10, 20, 30], [0, 0, 255]]
    for unfit in ({1: (1, 2, 3)}, {1: (1, 2, 3), 2: (1, 2, 3)}, {1: (1, 2, 3), 2: (0, 0, 0)}):
        other = scene_from_arrays(cube, labels, class_colours=unfit)
        assert np.array_equal(other.palette, palette(2))


@pytest.mark.parametrize("dims", ["yxb", "byx", "xyb", "xby", "ybx"])
@pytest.mark.parametrize("kind", ["netcdf4", "netcdf3", "zarr"])
def test_names_of_dimensions_decide(tmp_path: Path, cube, labels, dims: str, kind: str) -> None:
    names = {"y": "lat", "x": "lon", "b": "wavelength"}
    axes = ["yxb".index(name) for name in dims]
    data = xarray.Dataset(
        {
            "cube": ([names[d] for d in dims], cube.transpose(axes)),
            "gt": (("lon", "lat"), labels.T),
        },
        {"wavelength": np.linspace(0.4, 0.9, 6)},
    )
    data.wavelength.attrs["units"] = "um"
    data = data.isel(lat=slice(None, 9), lon=slice(None, 9))  # a square scene
    if kind == "zarr":
        data.to_zarr(tmp_path / "s", zarr_format=2)
    else:
        form = {"netcdf4": "NETCDF4", "netcdf3": "NETCDF3_CLASSIC"}[kind]
        engine = {"netcdf4": "h5netcdf", "netcdf3": "scipy"}[kind]
        data.to_netcdf(tmp_path / "s", format=form, engine=engine)
    scene = load_scene(tmp_path / "s")
    assert_same(scene, cube[:, :9], labels[:, :9])
    np.testing.assert_allclose(scene.wavelengths, np.linspace(400, 900, 6))
    assert scene.notes == ()


def test_packed_netcdf(tmp_path: Path, cube) -> None:
    packing = {"scale_factor": 0.01, "add_offset": 5.0, "_FillValue": np.int16(-9999)}
    cube[2, 3] = -9999
    data = xarray.Dataset(
        {"cube": (("y", "x", "band"), cube, packing)},
        {
            "x": 500015.0 + 30 * np.arange(11),
            "y": 4100005.0 - 30 * np.arange(9),
            "other": ("time", np.arange(6.0) + 100),
            "wavelength": ("band", np.arange(6, dtype=np.int16), {"units": "nm"}),
            "good_wavelengths": ("band", np.array([1, 1, 0, 1, 1, 1], np.int8)),
        },
    )
    data.wavelength.attrs |= {"scale_factor": 100.0, "add_offset": 400.0}
    data.to_netcdf(tmp_path / "s.nc", engine="h5netcdf")
    read = load_cube(tmp_path / "s.nc")
    np.testing.assert_allclose(read.cube[3:], cube[3:] * 0.01 + 5, rtol=1e-5)
    np.testing.assert_allclose(read.wavelengths, [400, 500, 600, 700, 800, 900])
    assert read.bad_bands == (2,)
    assert read.nodata == -9999
    assert np.argwhere(~read.valid).tolist() == [[2, 3]]
    assert read.grid.transform == (30, 0, 500000, 0, -30, 4100020)


def test_several_lists_of_wavelengths(tmp_path: Path, cube) -> None:
    """The list that shares the dimension of the bands is the cube's."""
    data = xarray.Dataset(
        {"rfl": (("y", "x", "channel"), cube)},
        {"a_wavelength": ("sensor", np.arange(6.0) + 1), "wave": ("channel", np.arange(6.0) + 500)},
    )
    data.to_netcdf(tmp_path / "s.nc", engine="h5netcdf")
    np.testing.assert_array_equal(open_cube(tmp_path / "s.nc").wavelengths, np.arange(6) + 500)


def test_an_hdf5_file_with_a_scale_of_one_dimension(tmp_path: Path, cube, labels) -> None:
    """It has dimension scales as NetCDF has them, but is no NetCDF file."""
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["a/cube"], file["a/gt"] = cube.transpose(0, 2, 1), labels
        file["wavelength"] = np.linspace(400, 900, 6)
        file["wavelength"].make_scale("wavelength")
        file["a/cube"].dims[1].attach_scale(file["wavelength"])
    scene = load_scene(tmp_path / "s.h5")
    assert_same(scene, cube, labels)
    np.testing.assert_allclose(scene.wavelengths, np.linspace(400, 900, 6))


def test_the_user_names_the_axes(tmp_path: Path, cube, labels) -> None:
    np.save(tmp_path / "c.npy", cube.transpose(1, 2, 0))
    np.save(tmp_path / "gt.npy", labels)
    scene = load_scene(tmp_path / "c.npy", tmp_path / "gt.npy", axes="x,band,y")
    assert_same(scene, cube, labels)
    for wrong in ("y,x", "y,x,time", "y,y,band"):
        with pytest.raises(InputError) as caught:
            load_cube(tmp_path / "c.npy", axes=wrong)
        assert (caught.value.argument, caught.value.value) == ("axes", wrong)


def test_a_data_array_with_labels(cube, labels) -> None:
    data = xarray.DataArray(
        cube.transpose(2, 1, 0),
        dims=("band", "x", "y"),
        coords={"wavelength": ("band", np.linspace(400, 900, 6))},
        attrs={"_FillValue": -9999},
        name="flight",
    )
    scene = load_scene(data, xarray.DataArray(labels.T, dims=("x", "y")))
    assert_same(scene, cube, labels)
    np.testing.assert_array_equal(scene.wavelengths, np.linspace(400, 900, 6))
    assert (scene.name, scene.nodata, scene.sources) == ("flight", -9999, ())
    with pytest.raises(InputError, match="a DataArray holds a cube alone"):
        load_scene(data)


def test_unsigned_numbers_of_the_classic_netcdf(tmp_path: Path) -> None:
    values = np.arange(60, 255, dtype=np.uint8)[:180].reshape(5, 6, 6)
    facts = {"_Unsigned": "true", "_FillValue": np.int8(-17)}
    array = xarray.DataArray(values.view(np.int8), dims=("y", "x", "band"), attrs=facts)
    array.to_dataset(name="c").to_netcdf(tmp_path / "a.nc", engine="scipy")
    loaded = load_cube(tmp_path / "a.nc")
    np.testing.assert_array_equal(loaded.cube, values)
    assert loaded.cube.dtype == np.uint8
    assert loaded.nodata == 239


@pytest.mark.parametrize("version", [2, 3])
def test_a_coordinate_of_bands_with_a_unit_of_wavelengths(
    tmp_path: Path, cube, version: int
) -> None:
    waves = np.linspace(0.4, 1, cube.shape[2])
    bands = {"band": ("band", waves, {"units": "um"})}
    array = xarray.DataArray(cube.transpose(2, 1, 0), bands, ("band", "x", "y"), "c")
    array.to_dataset().to_zarr(tmp_path / "a.zarr", zarr_format=version, consolidated=False)
    loaded = load_cube(tmp_path / "a.zarr")
    np.testing.assert_array_equal(loaded.cube, cube)
    np.testing.assert_allclose(loaded.wavelengths, 1000 * waves)
    labels = np.arange(cube.shape[0] * cube.shape[1]).reshape(cube.shape[:2]) % 3
    scene = load_scene(array, xarray.DataArray(labels, dims=("y", "x")))
    np.testing.assert_allclose(scene.wavelengths, 1000 * waves)


@pytest.mark.parametrize(
    "place", ["fixed", "variable", "of cube", "of group", "of file", "npz", "nc"]
)
def test_wavelengths_as_texts(tmp_path: Path, cube, place: str) -> None:
    waves = np.linspace(400, 1000, cube.shape[2])
    texts = [f"{wave} nm" for wave in waves]
    path = tmp_path / "a.h5"
    if place == "npz":
        np.savez(path := tmp_path / "a.npz", cube=cube, wavelength=texts)
    elif place == "nc":
        path = tmp_path / "a.nc"
        array = xarray.DataArray(
            cube, dims=("y", "x", "band"), coords={"wavelength": ("band", texts)}
        )
        array.to_dataset(name="cube").to_netcdf(path, engine="h5netcdf")
    else:
        with h5py.File(path, "w") as file:
            file["group/cube"] = cube
            if place in ("fixed", "variable"):
                file["group/wavelength"] = np.array(texts, "S") if place == "fixed" else texts
            else:
                owner = {"of cube": "group/cube", "of group": "group", "of file": "/"}[place]
                file[owner].attrs["Wavelength"] = waves if place == "of file" else texts
    opened = open_cube(path)
    np.testing.assert_allclose(opened.wavelengths, waves)
    assert opened.shape == cube.shape
    assert opened.notes == ()


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("form", ["{{{}}}", "{}", "[{}]"])
def test_wavelengths_in_metadata_of_a_geotiff(tmp_path: Path, cube, form: str) -> None:
    height, width, bands = cube.shape
    waves = np.linspace(400, 1000, bands)
    size = {"height": height, "width": width, "count": bands, "dtype": cube.dtype.name}
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", **size) as file:
        file.write(cube.transpose(2, 0, 1))
        file.update_tags(wavelengths=form.format(", ".join(map(str, waves))))
    np.testing.assert_allclose(load_cube(tmp_path / "a.tif").wavelengths, waves)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_wavelengths_in_names_of_files(tmp_path: Path, cube) -> None:
    height, width, bands = cube.shape
    waves = [990 + 20 * band for band in range(bands)]
    size = {"height": height, "width": width, "count": 1, "dtype": cube.dtype.name}
    for band, wave in enumerate(waves):
        with rasterio.open(tmp_path / f"b_{wave}nm.tif", "w", driver="GTiff", **size) as file:
            file.write(cube[..., band], 1)
    loaded = load_cube(tmp_path)
    np.testing.assert_array_equal(loaded.cube, cube)
    assert loaded.wavelengths is not None
    assert loaded.wavelengths.tolist() == waves


def test_structures_in_structures_of_matlab(mat, cube, labels) -> None:
    scene = load_scene(
        mat(s={"deep": {"cube": cube, "wl": np.linspace(0.4, 1, cube.shape[2])}, "gt": labels})
    )
    assert_same(scene, cube, labels)
    assert scene.wavelengths is not None


def test_lists_that_are_not_used_are_named(mat, cube, labels) -> None:
    bands = cube.shape[2]
    scene = load_scene(mat(c=cube, gt=labels, wavelengths=np.arange(400, 401 + bands)))
    assert scene.codes == ("not-used",)
    assert f"each of {bands} bands" in scene.findings[0].hint
    waves = np.linspace(400, 900, bands)
    scene = load_scene(mat(c=cube, gt=labels, wavelengths=waves, bad_bands=[2, 3]))
    np.testing.assert_array_equal(scene.wavelengths, waves)
    assert scene.codes == ("not-used",)
    for other in (
        np.stack([waves, waves], axis=1),
        np.array([f"{wave} nm" for wave in waves], "O"),
    ):
        assert load_scene(mat(c=cube, gt=labels, wavelength=other)).codes == ("not-used",)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("last", ["alpha", "undefined", "near infrared"])
def test_a_picture_with_opacity_is_a_scene_of_three_bands(tmp_path: Path, last: str) -> None:
    values = np.random.default_rng(3).integers(0, 256, (4, 6, 5), np.uint8)
    values[3] = 255 * (np.arange(30).reshape(6, 5) % 7 > 0)
    if last == "near infrared":
        values[3] = np.arange(30).reshape(6, 5) % 7 * 40  # 0 in some pixels
    path = tmp_path / "drone.tif"
    with rasterio.open(
        path, "w", driver="GTiff", count=4, height=6, width=5, dtype="uint8", photometric="RGB"
    ) as file:
        tag = "undefined" if last == "undefined" else "alpha"
        file.colorinterp = [*file.colorinterp[:3], ColorInterp[tag]]
        file.write(values)
    cube = load_cube(path)
    bands = 3 if last == "alpha" else 4
    assert cube.cube.shape == (6, 5, bands)
    valid = values[3] > 0 if last == "alpha" else np.ones((6, 5), np.bool_)
    np.testing.assert_array_equal(cube.valid, valid)
    np.testing.assert_array_equal(cube.cube[valid], values.transpose(1, 2, 0)[valid][:, :bands])
    assert (OPACITY in cube.findings) == (bands == 3)
    assert (OPACITY_IS_A_BAND in cube.findings) == (last == "near infrared")


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_last_band_that_is_only_tagged_as_opacity_is_a_band(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 256, (6, 9, 7), np.uint16)
    path = tmp_path / "a.tif"
    with rasterio.open(
        path, "w", driver="GTiff", count=6, height=9, width=7, dtype="uint16"
    ) as file:
        file.colorinterp = [*file.colorinterp[:-1], ColorInterp.alpha]
        file.write(values)
    cube = load_cube(path)
    np.testing.assert_array_equal(cube.cube, values.transpose(1, 2, 0))
    assert OPACITY_IS_A_BAND in cube.findings


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_the_mask_of_a_picture(tmp_path: Path, cube, labels) -> None:
    picture = np.random.default_rng(3).choice(np.array([80, 200], np.uint8), (*labels.shape, 3))
    mask = np.arange(labels.size).reshape(labels.shape) % 5 > 0
    size = {"height": labels.shape[0], "width": labels.shape[1], "count": 3, "dtype": "uint8"}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", photometric="RGB", **size) as file,
    ):
        file.write(picture.transpose(2, 0, 1))
        file.write_mask(mask)
    np.save(tmp_path / "gt.npy", labels)
    scene = load_scene(tmp_path / "a.tif", tmp_path / "gt.npy")
    np.testing.assert_array_equal(scene.valid, mask)
    np.testing.assert_array_equal(scene.cube[mask], picture[mask])
    np.save(tmp_path / "cube.npy", cube)
    classes = load_scene(tmp_path / "cube.npy", tmp_path / "a.tif").labels
    np.testing.assert_array_equal(classes > 0, mask)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("where", ["YES", "NO", "alpha"])
def test_the_mask_of_a_geotiff(tmp_path: Path, cube, labels, where: str) -> None:
    height, width, bands = cube.shape
    mask = np.arange(labels.size).reshape(labels.shape) % 5 > 0
    size = {"height": height, "width": width, "dtype": cube.dtype.name}
    is_band = where == "alpha"
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK="YES" if is_band else where),
        rasterio.open(
            tmp_path / "a.tif", "w", driver="GTiff", count=bands + is_band, **size
        ) as file,
    ):
        file.write(cube.transpose(2, 0, 1), list(range(1, bands + 1)))
        for band in range(1, bands + 1):
            file.set_band_description(band, f"X{400 + band / 4}")  # as R's terra
        if is_band:
            file.colorinterp = [*file.colorinterp[:-1], ColorInterp.alpha]
            file.write(255 * mask.astype(cube.dtype), bands + 1)
        else:
            file.write_mask(mask)
    np.save(tmp_path / "gt.npy", labels)
    scene = load_scene(tmp_path / "a.tif", tmp_path / "gt.npy")
    np.testing.assert_array_equal(scene.valid, mask)
    np.testing.assert_array_equal(scene.wavelengths, 400 + np.arange(1, bands + 1) / 4)
    assert (OPACITY in scene.findings) == is_band
    np.testing.assert_array_equal(scene.cube[mask], cube[mask])
    np.testing.assert_array_equal(np.array((0, *scene.class_ids))[scene.labels], labels * mask)


def test_an_envi_header_in_latin_1_has_its_wavelengths(tmp_path: Path) -> None:
    np.arange(24, dtype=np.int16).tofile(tmp_path / "c.img")
    fields = "samples = 4\nlines = 3\nbands = 2\ndata type = 2\ninterleave = bsq\nbyte order = 0\n"
    header = f"ENVI\n{fields}wavelength units = µm\nwavelength = {{0.5, 0.6}}\n"
    (tmp_path / "c.hdr").write_text(header, encoding="latin-1")
    np.testing.assert_allclose(open_cube(tmp_path / "c.hdr").wavelengths, [500, 600])
