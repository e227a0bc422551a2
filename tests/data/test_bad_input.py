"""Bad input is refused in one line that names the argument, the value and the rule."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy.io import savemat
from whole_cube import load_cube

from hytas.data import load_scene, make_split, open_file, scene_from_arrays
from hytas.data.read.untrusted import VARIABLE
from hytas.errors import InputError

from commands import run_here  # isort: skip


def refused(*arguments, **keywords):
    """Return the message that load_scene refuses with, which is one line."""
    with pytest.raises(InputError) as caught:
        load_scene(*arguments, **keywords)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_missing_folder_and_empty_file(tmp_path):
    assert refused(tmp_path / "none.mat") == f"data='{tmp_path / 'none.mat'}': no such file"
    assert "no folder of a Zarr store or of files of bands" in refused(tmp_path)
    (tmp_path / "empty.mat").touch()
    assert "holds no bytes" in refused(tmp_path / "empty.mat")


def test_missing_labels_file_is_named_as_such(mat, cube, tmp_path):
    assert refused(mat(c=cube), tmp_path / "gt.mat").endswith("no such file")
    assert refused("folder\0/scene.mat").endswith("no such file")
    assert "known by name: indian_pines" in refused("indian-pines")
    assert "holds no label map; name its file with labels" in refused(mat(c=cube))
    assert "holds c (9 x 11 x 6 int16), but no label map" in refused(mat(c=cube), mat(c=cube))
    np.savez(tmp_path / "scene.npz", c=cube, gt=np.ones((9, 11)).astype("U5"))
    assert "holds no label map" in refused(tmp_path / "scene.npz")


@pytest.mark.parametrize(
    "text", ["hello\n", "x" * 5000, "1,2,3\n" * 100, "\0\0\0\0", "\x01\0\0\0" * 40]
)
def test_text_named_mat(tmp_path, text):
    path = tmp_path / "scene.mat"
    path.write_text(text)
    assert "truncated or corrupt" in refused(path) or "is not a scene" in refused(path)


def test_other_files(tmp_path, mat, cube):
    (tmp_path / "scene.txt").write_text("hello")
    message = refused(tmp_path / "scene.txt")
    assert "its format is none of MATLAB v7.3, NumPy" in message
    (tmp_path / "a.gdb").mkdir()
    assert refused(tmp_path / "a.gdb").endswith("of files of bands")
    (tmp_path / "a.mat").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "run git lfs pull" in refused(tmp_path / "a.mat")
    (tmp_path / "a.hdr").write_text("ENVI\nfile type = ENVI Spectral Library\n")
    (tmp_path / "a.sli").write_bytes(bytes(80))
    for name in ("a.hdr", "a.sli"):
        assert "a row of a spectral library is a spectrum" in refused(tmp_path / name)


@pytest.mark.parametrize(("at", "value"), [(128, 77), (144, 99), (160, 10), (188, 4), (184, 40)])
def test_bad_tags_of_matlab(tmp_path, monkeypatch, cube, labels, at, value):
    monkeypatch.setenv(VARIABLE, "1")  # scipy crashes
    savemat(tmp_path / "a.mat", {"c": cube, "gt": labels}, do_compression=False)
    data = bytearray((tmp_path / "a.mat").read_bytes())
    data[at : at + 4] = value.to_bytes(4, "little")
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_cube(tmp_path / "a.mat", "c")
    assert caught.value.argument == "scene"
    assert caught.value.value == tmp_path / "a.mat"


def test_structures_and_cells_pass_the_check_of_tags(tmp_path, cube, labels):
    other = {
        "s": {"a": 1, "b": "text"},
        "k": np.array([[1, "x"]], dtype=object),
        "z": np.zeros((0, 3)),
    }
    savemat(tmp_path / "a.mat", {"c": cube, "gt": labels, **other}, do_compression=False)
    assert load_scene(tmp_path / "a.mat").classes == 3


def test_not_a_scene(mat, labels, cube):
    assert "holds gt (9 x 11 uint8), but no numeric cube" in refused(mat(gt=labels))
    for listed in (mat(x=labels), mat(Y=labels, nRow=9, nCol=11)):
        assert "of spectra, name label_column" in refused(listed)
    np.save(mat().with_suffix(".npy"), {"cube": cube}, allow_pickle=True)
    assert "but no numeric cube with three axes" in refused(mat().with_suffix(".npy"))
    message = refused(mat(a=np.zeros((2, 3, 4, 5)), b=labels))
    assert "holds a (2 x 3 x 4 x 5" in message
    assert "holds nothing" in refused(mat())
    assert "real numbers are needed" in refused(mat(c=cube + 1j, gt=labels))
    assert "but no numeric cube" in refused(mat(c=np.array(["abc"]), gt=labels))


@pytest.mark.parametrize("dtype", ["?", "g"])
def test_numbers_that_no_model_takes(labels, dtype):
    with pytest.raises(InputError, match=r"of type .* (real numbers|at most 64 bits)"):
        scene_from_arrays(np.ones((9, 11, 6), dtype), labels)


def test_classes_of_one_name_are_told_apart(cube, labels):
    scene = scene_from_arrays(cube, labels, class_names=["Grass", "Grass", "Grass (2)"])
    assert scene.class_names == ("Grass", "Grass (3)", "Grass (2)")
    assert scene.findings[-1].code == "classes-of-one-name"
    assert scene.findings[-1].facts == {"ids": [2, 5], "name": "Grass"}
    assert sum(scene.class_counts().values()) == (labels > 0).sum()


@pytest.mark.parametrize("dtype", ["c8", "U3", "S2", "M8[s]", "O"])
def test_types_that_are_no_numbers(tmp_path, labels, dtype):
    np.savez(tmp_path / "s.npz", c=np.zeros((9, 11, 6)).astype(dtype), gt=labels)
    assert "real numbers needed" in refused(tmp_path / "s.npz")
    np.savez(tmp_path / "t.npz", c=np.ones((9, 11, 6)), gt=labels.astype(dtype))
    assert "real numbers needed" in refused(tmp_path / "t.npz") or "no label map" in refused(
        tmp_path / "t.npz"
    )


def test_several_cubes(mat, cube, labels):
    path = mat(a=cube, b=cube + 1, gt=labels)
    message = refused(path)
    assert "a (9 x 11 x 6 int16), b (9 x 11 x 6 int16)" in message
    assert "name one with cube_key" in message
    np.testing.assert_array_equal(load_scene(path, cube_key="b").cube, cube + 1)
    other = mat("one-fits.mat", a=cube, b=np.moveaxis(cube, 0, 1), gt=labels)
    np.testing.assert_array_equal(load_scene(other).cube, cube)
    assert "no such variable as 'z': there are" in refused(path, cube_key="z")
    assert "three axes needed" in refused(path, cube_key="gt")
    assert "two axes needed" in refused(path, cube_key="a", labels_key="b")
    assert "must name one map, or two" in refused(path, cube_key="a", labels_key="b,c,d")


def test_height_and_width_must_agree(mat, cube, labels):
    message = refused(mat("a.mat", c=cube), mat("b.mat", gt=labels[:, :-1]))
    assert "gt (9 x 10 uint8)" in message
    assert "9 x 11 x 6" in message
    assert "no label map with the height and width of the cube" in message
    message = refused(mat("a.mat", c=cube), mat("b.mat", gt=labels.T))
    assert "gt (11 x 9 uint8)" in message
    assert "transpose, reshape or join" in message
    message = refused(mat("a.mat", c=cube), mat("b.mat", gt=labels[1:]), labels_key="gt")
    assert "has 8 x 11, and the cube 9 x 11: they must agree" in message
    with pytest.raises(InputError, match="labels='TE': has 8 x 11, and the cube 9 x 11: they"):
        load_scene(mat(input=cube, TR=labels, TE=labels[1:]))


def test_labels_out_of_rule(mat, cube, labels):
    data = mat("a.mat", c=cube)

    def with_labels(values):
        return refused(data, mat("b.mat", gt=values))

    assert "holds no labelled pixel" in with_labels(labels * 0)
    assert "holds labels of class 7" in with_labels(np.where(labels == 7, 7, 0))
    negative = labels.astype(int)
    negative[2, 3] = -1
    assert "'gt': is -1 at row 2, column 3: labels must be whole" in with_labels(negative)
    half = labels.astype(float)
    half[4, 5] = 1.5
    assert "'gt': is 1.5 at row 4, column 5: labels must be whole numbers" in with_labels(half)
    half[4, 5] = np.inf
    assert "is inf at row 4, column 5" in with_labels(half)


def test_split_maps_out_of_rule(mat, cube, labels):
    train = labels.copy()
    train[:2] = 0
    test = np.where(train > 0, 0, labels)
    train[train == 5] = 0
    message = refused(mat(input=cube, TR=train, TE=test))
    assert "class 5 of TE has no pixel to train on: TR has 0, and a pixel in both" in message
    message = refused(mat(input=cube, TR=labels, TE=labels))
    count = int((labels == 2).sum())
    assert f"class 2 of TE has no pixel to train on: TR has {count}, and a pixel" in message
    torn = labels.copy()
    row, column = np.argwhere(labels == 2)[0]
    torn[row, column] = 5
    message = refused(mat(input=cube, TR=labels, TE=torn))
    assert f"row {row}, column {column} is 2 in the one and 5 in the other" in message


def test_a_test_map_that_may_count_from_0(mat, cube, labels):
    ids = np.searchsorted([0, 2, 5, 7], labels).astype(np.uint8)
    top = np.where(np.arange(9)[:, None] < 5, ids, 0)
    rest = np.where(top > 0, 0, ids)
    from_0 = np.maximum(rest, 1) - 1
    (finding,) = load_scene(mat(input=cube, TR=top, TE=from_0)).findings
    assert (finding.code, finding.where) == ("labels-from-0", "TE")
    assert finding.facts == {"number": 3, "owner": "TR"}
    assert "TR: has no class 3, which TE has" in refused(mat(input=cube, TR=from_0, TE=top))
    assert load_scene(mat(input=cube, TR=top, TE=rest)).findings == ()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(mat, cube, labels, bad):
    values = cube.astype(np.float32)
    holes = np.argwhere(labels == 0)[:3]
    for row, column in holes:
        values[row, column, 1] = bad
    scene = load_scene(mat(c=values, gt=labels))
    assert scene.codes == ("pixels-masked",)
    assert (~scene.valid).sum() == 3
    assert load_cube(mat(c=values)).codes == ("axes-guessed", "pixels-masked")
    assert load_cube(mat(c=values), axes="y,x,band").codes == ("pixels-masked",)
    row, column = np.argwhere(labels == 2)[1]  # of the first class
    values[row, column, 0] = bad
    message = refused(mat(c=values, gt=labels))
    assert (
        f"1 labelled pixels hold NaN or infinite values, the first at row {row}, column {column}"
        in message
    )


def test_arguments_of_other_types(mat, cube, labels):
    path, gt = mat(c=cube), mat("gt.mat", gt=labels)
    for argument, given in (
        ("labels", {"labels": [gt, gt, gt]}),
        ("bands", {"labels": gt, "bands": [1, 2]}),
        ("nodata", {"labels": gt, "nodata": "x"}),
        ("class_names", {"labels": gt, "class_names": ["a", "b", "c"]}),
    ):
        with pytest.raises(InputError) as caught:
            load_scene(path, **given)
        assert caught.value.argument == argument
    with pytest.raises(InputError, match="wavelengths: 5 given for 6 bands"):
        scene_from_arrays(cube, labels, wavelengths=range(5))
    with pytest.raises(InputError, match="wavelengths: must be a number for each band"):
        scene_from_arrays(cube, labels, wavelengths=["400 nm"] * 6)
    for argument, arrays in (
        ("data", (np.ma.masked_less(cube, 0), labels)),
        ("labels", (cube, np.ma.masked_equal(labels, 2))),
    ):
        with pytest.raises(InputError, match=f"{argument}: is a masked array"):
            scene_from_arrays(*arrays)
    plain = scene_from_arrays(cube, labels)
    assert (
        scene_from_arrays(cube.tolist(), labels.tolist()).labels.tolist() == plain.labels.tolist()
    )
    assert scene_from_arrays(np.ma.array(cube), labels).fingerprint == plain.fingerprint


def test_a_training_and_a_test_map_of_two_files(mat, cube, labels):
    top = np.where(np.arange(9)[:, None] < 5, labels, 0)
    maps = [mat("a.mat", a=top), mat("b.mat", b=np.where(top > 0, 0, labels))]
    scene = load_scene(mat(c=cube), maps)
    assert np.array_equal(scene.train > 0, top > 0)
    assert np.array_equal(scene.test > 0, (top == 0) & (labels > 0))
    named = [part for path in maps for part in ("--labels", path)]
    told = json.loads(run_here("inspect", mat(c=cube), *named, "--json").stdout)
    counts = {"training": int((top > 0).sum()), "test": int((scene.test > 0).sum())}
    assert told["split of the file"] == counts
    refusal = run_here("inspect", mat(c=cube), *named, *named[:2])
    assert "--labels: 3 given: a scene has" in refusal.stderr
    with pytest.raises(InputError, match="labels='TR and TE and b': 3 given: a scene has"):
        load_scene(mat(c=cube), [mat("two.mat", TR=top, TE=labels), maps[1]])
    shapes = maps[1].with_suffix(".geojson")
    shapes.write_text("{}")
    with pytest.raises(InputError, match="polygons or points take one file"):
        load_scene(mat(c=cube), [maps[0], shapes])
    pixels = xr.DataArray(cube, dims=("y", "x", "band"))
    arrays = [xr.DataArray(own, dims=("y", "x")) for own in (top, np.where(top == 0, labels, 0))]
    for given in (maps, arrays):
        np.testing.assert_array_equal(load_scene(pixels, given).test, scene.test)
    with pytest.raises(InputError, match=r"labels='list': must be a path, a DataArray, or"):
        load_scene(pixels, [maps[0], 1])


def test_a_class_has_one_number_in_a_training_and_a_test_map(mat, cube, labels):
    top = np.where(np.arange(9)[:, None] < 5, labels, 0)
    ids = np.unique(labels[labels > 0])
    names = np.array([f"name {number}" for number in ids], object)
    train = mat("a.mat", a=top, class_names=names)
    rest = np.where(top > 0, 0, labels)
    scene = load_scene(mat(c=cube), [train, mat("b.mat", b=rest, class_names=names)])
    assert scene.class_names == tuple(names)
    first, second = (np.searchsorted([0, *ids], one) for one in (top, rest))
    few = mat(c=cube, TR=first, TE=np.where(second == 3, 0, second), class_names=names)
    assert load_scene(few).class_names == tuple(names)  # the test map lacks the last class
    other = mat("b.mat", b=rest, class_names=np.roll(names, 1))
    rule = rf"name {ids[-1]} is {ids[-1]} in the one and {ids[0]} in the other: each has one"
    with pytest.raises(InputError, match=rule):
        load_scene(mat(c=cube), [train, other])


def test_an_id_beyond_all_numbers(cube, labels):
    with pytest.raises(InputError, match=r"is 9223372036854775808 at .*: labels must be"):
        scene_from_arrays(cube, np.where(labels == 5, np.uint64(2**63), labels.astype(np.uint64)))
    with pytest.raises(InputError, match=r"is 5000000000 at row .* to 2\^31 - 1"):
        scene_from_arrays(cube, np.where(labels == 5, 5 * 10**9, labels.astype(np.int64)))


def test_shapes_out_of_rule(labels):
    for shape, rule in (((9, 11), "three axes"), ((9, 0, 5), "no pixel"), ((9, 11, 1), "one band")):
        with pytest.raises(InputError, match=rule):
            scene_from_arrays(np.ones(shape), labels)
    with pytest.raises(InputError, match="labels: missing"):
        scene_from_arrays(np.ones((9, 11, 3)))
    with pytest.raises(InputError, match="has 2 names, and the labels 3 classes, 2, 5, 7:"):
        scene_from_arrays(np.ones((9, 11, 3)), labels, class_names=["a", "b"])


def test_a_class_with_one_pixel(cube, labels):
    lone = np.where(labels == 5, 0, labels)
    lone[0, 0] = 5
    scene = scene_from_arrays(cube, lone)
    split = make_split(scene, kind="random", patch_size=3, train_per_class=5)
    assert split.notes == (
        "class 5 is not both trained and tested: 1 pixels to train on, 0 to test on, 0 for neither",
        "fewer training pixels than asked for: class 5 (1/5)",
        "fewer than 3 training pixels, so none for validation: class 5",
    )
    assert 0 in split.train
    pair = np.zeros(labels.shape, np.uint8)
    pair[0, 0], pair[4, 4] = 1, 2
    with pytest.raises(InputError, match="fewer than 2 classes of scene both to train"):
        make_split(scene_from_arrays(cube, pair), kind="random", patch_size=3)


def test_a_test_map_out_of_rule(cube, labels):
    scene = scene_from_arrays(cube, train=labels, test=labels * 0)
    with pytest.raises(InputError, match="the test map of scene holds no pixel to test on"):
        make_split(scene, patch_size=3)
    untrained = replace(scene, train=np.where(scene.train == 2, 0, scene.train))
    with pytest.raises(InputError, match="class 5 of test has no pixel to train on"):
        make_split(untrained, patch_size=3)


def test_every_message_names_the_argument(tmp_path):
    (tmp_path / "c.hdr").write_text("ENVI\nlines = many\n")
    (tmp_path / "c.img").write_bytes(b"12")
    for argument in ("data", "labels", "scene"):
        with pytest.raises(InputError, match="lines and bands keywords") as caught:
            open_file(tmp_path / "c.hdr", argument)
        assert (caught.value.argument, caught.value.value) == (argument, tmp_path / "c.hdr")


def test_envi_mistakes(tmp_path):
    np.zeros(24, np.int16).tofile(tmp_path / "alone.img")
    with pytest.raises(InputError, match=r"needs its header, alone\.hdr"):
        open_file(tmp_path / "alone.img")
    header = tmp_path / "c.hdr"
    fields = "samples = 4\nlines = 3\nbands = 2\ndata type = 2\ninterleave = bsq\nbyte order = 0\n"
    header.write_text("ENVI\n" + fields)
    with pytest.raises(InputError, match=r"needs the file c or c\.img next to it"):
        open_file(header)
    np.zeros(24, np.int16).tofile(tmp_path / "c.img")
    assert open_file(header).variables[0].shape == (2, 3, 4)
    for old, new, message in (
        (
            "bands = 2",
            "bands = 3",
            r"holds 48 bytes, and its header describes 72 \(offset 0 \+ 3 x 3 x 4 int16\); ",
        ),
        ("data type = 2", "data type = 4", "describes 96 "),
        ("lines = 3", "lines = many", "samples, lines and bands keywords"),
        (
            "data type = 2\n",
            "",
            "'data type' holds nothing: must be one of 1, 2, 3,",
        ),
        ("bsq", "bsq\nheader offset = 8", r"describes 56 \(offset 8"),
        ("data type = 2", "data type = 7", "data_type that is recognised"),
        ("byte order = 0", "byte order = 7", "'byte order' holds 7: must be one of 0, 1"),
        ("bsq", "xyz", "'interleave' holds xyz: must be one of bsq, bil, bip"),
        ("byte order = 0", "byte order = 0\nheader offset = -4", "Inconsistent nLineOffset"),
        (
            "bsq",
            "bsq\nmajor frame offsets = {8, 4}",
            "'major frame offsets' holds {8, 4}: must",
        ),
    ):
        header.write_text("ENVI\n" + fields.replace(old, new))
        with pytest.raises(InputError, match=message):
            open_file(header)
    header.write_text("ENVI\n" + fields + "minor frame offsets = {0, 0}\n")
    assert open_file(header).variables[0].shape == (2, 3, 4)
    (tmp_path / "c.img").rename(tmp_path / "c.hyspex")
    assert open_file(header).variables[0].shape == (2, 3, 4)
    (tmp_path / "c.hyspex").rename(tmp_path / "c.img")
    header.write_text("ENVI\n" + fields, encoding="utf-16")
    with pytest.raises(InputError, match="its format is none of"):
        open_file(tmp_path / "c.img")


@pytest.mark.parametrize("mark", [255, 65535])
def test_a_usual_mark_among_the_ids_is_named(cube, labels, mark):
    (finding,) = scene_from_arrays(
        cube, np.where(labels == 0, mark, labels.astype(np.uint16))
    ).findings
    assert (finding.code, finding.where) == ("mark-is-a-class", "labels")
    assert finding.facts == {"name": str(mark), "mark": str(mark)}
    assert scene_from_arrays(cube, np.where(labels == 7, 100, labels)).findings == ()
