"""Every file layout gives the same scene."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from hytas.data import (
    Geo,
    load_cube,
    load_maps,
    load_scene,
    open_cube,
    open_file,
    palette,
    scene_from_arrays,
)
from hytas.data.formats.envi import parse_header
from hytas.errors import InputError


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
        x=cube, y=labels, note="text", scalar=3, row=np.arange(6.0), wavelength=np.arange(6) + 1
    )
    scene = load_scene(path)
    assert_same(scene, cube, labels)
    np.testing.assert_allclose(scene.wavelengths, 1000.0 * (np.arange(6) + 1))


def test_split_layout(mat, cube, labels):
    mask = np.arange(labels.size).reshape(labels.shape) % 3 == 0
    scene = load_scene(mat(input=cube, TR=labels * mask, TE=labels * ~mask))
    assert_same(scene, cube, labels)
    np.testing.assert_array_equal(scene.train > 0, (labels > 0) & mask)
    np.testing.assert_array_equal(scene.labels, np.maximum(scene.train, scene.test))


def test_split_layout_in_two_files_and_by_key(mat, cube, labels):
    mask = np.arange(labels.size).reshape(labels.shape) % 3 == 0
    data = mat("a.mat", c=cube, noise=cube[:, :, :1].squeeze() + 500)
    other = mat("b.mat", one=labels * mask, two=labels * ~mask, three=labels)
    scene = load_scene(data, other, labels_key="one,two")
    np.testing.assert_array_equal(scene.train > 0, (labels > 0) & mask)
    assert load_scene(data, other, labels_key="three").train is None
    with pytest.raises(InputError, match=r"several maps \(one .*two .*three ") as caught:
        load_scene(data, other)
    assert caught.value.hint == "name one with `labels_key`"


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


def test_matlab_v73(tmp_path, cube, labels):
    path = tmp_path / "scene.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["cube"] = cube.T
        file["gt"] = labels.T.astype(np.float64)
        file.create_group("#refs#")["a"] = np.zeros((3, 3, 3))
    data = bytearray(path.read_bytes())
    data[:19] = b"MATLAB 7.3 MAT-file"
    path.write_bytes(data)
    assert_same(load_scene(path), cube, labels)
    assert open_file(path).format == "MATLAB v7.3"
    # Written by h5py without MATLAB's header, but named .mat
    with h5py.File(tmp_path / "plain.mat", "w") as file:
        file["cube"], file["gt"] = cube.T, labels.T
    assert_same(load_scene(tmp_path / "plain.mat"), cube, labels)


def test_a_mat_file_beside_a_header_of_the_same_name(tmp_path, cube, labels):
    savemat(tmp_path / "scene.mat", {"cube": cube, "gt": labels})
    write_envi(tmp_path / "scene", CUBE, bytes(24))  # as a map of the scene may be named
    assert_same(load_scene(tmp_path / "scene.mat"), cube, labels)
    assert open_file(tmp_path / "scene.img").format == "ENVI BSQ"


def test_matlab_v73_with_an_empty_array(tmp_path, cube, labels):
    with h5py.File(tmp_path / "scene.mat", "w") as file:
        file["cube"], file["gt"], file["none"] = cube.T, labels.T, h5py.Empty("f8")
    assert_same(load_scene(tmp_path / "scene.mat"), cube, labels)


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


def test_numpy_files(tmp_path, cube, labels):
    np.savez(tmp_path / "both.npz", data=cube, gt=labels, wavelengths=np.linspace(0.4, 2.4, 6))
    scene = load_scene(tmp_path / "both.npz")
    assert_same(scene, cube, labels)
    np.testing.assert_allclose(scene.wavelengths, np.linspace(400, 2400, 6))
    np.save(tmp_path / "cube.npy", cube.astype(">i2"))
    np.save(tmp_path / "gt.npy", labels)
    assert_same(load_scene(tmp_path / "cube.npy", tmp_path / "gt.npy"), cube, labels)


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
    loaded = load_cube(tmp_path / "c.img")
    if byteorder == 0:
        assert isinstance(loaded.cube, np.memmap)
    np.testing.assert_array_equal(open_cube(tmp_path / "c.img").read(2, 5, 3, 9), data[2:5, 3:9])


def test_envi_header_text(tmp_path):
    path = tmp_path / "a.hdr"
    path.write_text(
        "ENVI\n; a comment\nSamples = 3\nmap  info = {UTM,\n; inside\n 1, 2}\ndescription={x = 1}\n"
    )
    assert parse_header(path) == {
        "samples": "3",
        "map info": ["UTM", "1", "2"],
        "description": ["x = 1"],
    }


def test_bands_first_is_put_right_by_the_labels(mat, cube, labels):
    for axis in (0, 1):
        scene = load_scene(mat(c=np.moveaxis(cube, -1, axis), gt=labels))
        assert_same(scene, cube, labels)
        assert f"bands on axis {axis + 1}" in scene.notes[0]


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


def test_load_maps(mat, labels):
    ((name, values),) = load_maps(mat(gt=labels))
    assert name == "gt"
    np.testing.assert_array_equal(values, labels)


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


def write_envi(path: Path, fields: dict[str, object], data: bytes) -> Path:
    header = path.with_suffix(".hdr")
    text = "".join(f"{name} = {value}\n" for name, value in fields.items())
    header.write_text(f"ENVI\n{text}", encoding="utf-8")
    path.with_suffix(".img").write_bytes(data)
    return header


CUBE = {"samples": 4, "lines": 3, "bands": 2, "data type": 1}


def test_envi_data_that_are_too_long_are_refused(tmp_path: Path) -> None:
    header = write_envi(tmp_path / "s", CUBE, bytes(29))
    with pytest.raises(InputError, match=r"too long .* holds 29 bytes, .* needs 24 .*cut"):
        open_file(header)


def test_a_mark_for_no_data_must_be_a_number(tmp_path: Path) -> None:
    header = write_envi(tmp_path / "s", CUBE | {"data ignore value": "none"}, bytes(24))
    with pytest.raises(InputError, match="'data ignore value' is none; a number is needed"):
        open_file(header)


def test_one_line_of_a_cube_is_a_scene(tmp_path: Path) -> None:
    fields = CUBE | {"lines": 1, "samples": 12}
    assert open_cube(write_envi(tmp_path / "s", fields, bytes(24))).shape == (1, 12, 2)


@pytest.mark.parametrize(
    ("listed", "units", "reason"),
    [
        ("{500}", "Nanometers", "1 values for 2 bands"),
        ("{a, b}", "Nanometers", "positive finite numbers are needed"),
        ("{500, nan}", "Nanometers", "positive finite numbers are needed"),
        ("{5000, 6000}", "Wavenumber", "wavelength units = Wavenumber: nanometers or"),
    ],
)
def test_unusable_wavelengths_are_told(
    tmp_path: Path, listed: str, units: str, reason: str
) -> None:
    fields = CUBE | {"wavelength": listed, "wavelength units": units}
    meta = open_file(write_envi(tmp_path / "s", fields, bytes(24))).meta
    assert "wavelengths" not in meta
    assert reason in meta["notes"][0]


def test_class_colours_of_the_label_file(tmp_path: Path) -> None:
    lookup = "{0,0,0, 10,20,30, 0, 0, 255}"
    fields = CUBE | {"bands": 1, "class lookup": lookup}
    meta = open_file(write_envi(tmp_path / "s", fields, bytes(12))).meta
    assert meta["class_colours"] == {0: (0, 0, 0), 1: (10, 20, 30), 2: (0, 0, 255)}
    cube, labels = np.ones((2, 3, 4)), np.array([[0, 1, 1], [2, 2, 1]])
    scene = scene_from_arrays(cube, labels, class_colours=meta["class_colours"])
    assert scene.palette.tolist() == [[10, 20, 30], [0, 0, 255]]
    for unfit in ({1: (1, 2, 3)}, {1: (1, 2, 3), 2: (1, 2, 3)}, {1: (1, 2, 3), 2: (0, 0, 0)}):
        other = scene_from_arrays(cube, labels, class_colours=unfit)
        assert np.array_equal(other.palette, palette(2))


_ENVI_UTM = (
    'PROJCS["UTM_Zone_33N",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984"]],'
    'PROJECTION["Transverse_Mercator"]]'
)


@pytest.mark.parametrize(
    ("wkt", "epsg"),
    [
        (_ENVI_UTM, 32633),
        (_ENVI_UTM.replace("GCS_WGS_1984", "GCS_European_1950"), None),
        ('PROJCS["ETRS_1989_LAEA",GEOGCS["GCS_ETRS_1989"]]', None),
        ('GEOGCS["GCS_North_American_1927",DATUM["D_North_American_1927"]]', None),
    ],
)
def test_a_coordinate_system_survives_geotiff(wkt: str, epsg: int | None) -> None:
    geo = Geo.from_envi({"coordinate system string": wkt})
    assert geo is not None
    tags = {tag[0]: tag for tag in geo.to_tags()}
    back = Geo.from_tags(tags)
    assert back is not None
    assert (geo.epsg, back.epsg) == (epsg, epsg)
    if epsg is None:
        assert back.wkt == wkt
        directory = tags[34735][3]
        keys = {directory[at]: directory[at + 3] for at in range(4, len(directory), 4)}
        assert keys[1024] == 32767  # GDAL takes the text for nothing under any other type
        assert 3073 in keys


def test_a_geographic_citation_is_read() -> None:
    text = 'ESRI PE String = GEOGCS["GCS_X"]|'
    directory = (1, 1, 0, 2, 2048, 0, 1, 32767, 2049, 34737, len(text), 0)
    geo = Geo.from_tags({34735: (34735, 3, 12, directory), 34737: (34737, 2, 0, text)})
    assert geo is not None
    assert geo.wkt == 'GEOGCS["GCS_X"]'
