"""Values that stand for no data, declared or not, and values that float32 cannot hold."""

import numpy as np
import pytest
from reader_files import write_envi

from hytas.data import PatchReader, Preprocessing, load_scene, make_split, scene_from_arrays
from hytas.data.interpret.nodata import undeclared_in_rows
from hytas.data.synthetic import synthetic_scene
from hytas.errors import InputError


def with_border(fill, dtype=np.float64):
    """The synthetic scene's cube and labels, `fill` in three columns that hold no label."""
    scene = synthetic_scene()
    cube, labels = scene.cube.astype(dtype), scene.labels.copy()
    labels[:, 10:13] = 0
    cube[:, 10:13] = fill
    return cube, labels


@pytest.mark.parametrize("fill", [-9999.0, 1e20, -32768.0, 65535.0])
def test_fill_that_no_file_declares_is_named(fill):
    cube, labels = with_border(fill)
    (finding,) = scene_from_arrays(cube, labels).findings
    assert finding.code == "nodata-undeclared"
    assert finding.facts["count"] == 3 * len(cube)
    assert (finding.facts["values"], finding.facts["nodata"]) == ([fill], fill)
    assert scene_from_arrays(cube, labels, nodata=fill).notes == ()


def test_zeros_are_named_where_values_are_above_them_and_bright_pixels_are_not():
    cube, labels = with_border(0.0)
    (finding,) = scene_from_arrays(cube, labels).findings
    assert finding.facts["nodata"] == 0
    assert scene_from_arrays(-cube, labels).notes == ()
    cube, labels = with_border(0.0)
    cube[:, 10:13] = 1e5 * np.linspace(1, 2, cube.shape[2])  # no two bands alike
    assert scene_from_arrays(cube, labels).notes == ()


@pytest.mark.parametrize(
    ("dtype", "top", "fill"), [(np.int16, 10420, -9999), (np.uint16, 41000, 65535)]
)
def test_usual_marks_within_twice_the_range_are_named(dtype, top, fill):
    generator = np.random.default_rng(0)
    cube = generator.integers(20, top, (20, 30, 6)).astype(dtype)
    labels = np.tile([1, 2, 1, 2, 1], (20, 6))
    cube[0, 2, 3] = 30000  # one hot value
    cube[:, 10:13], labels[:, 10:12] = fill, 0
    (finding,) = scene_from_arrays(cube, labels).findings
    assert (finding.facts["count"], finding.facts["of"]) == (60, 600)
    assert (finding.facts["values"], finding.facts["nodata"]) == ([fill], fill)


def test_several_fills_and_labelled_ones_are_counted():
    cube, labels = with_border(-9999.0)
    cube[0, 10] = 1e20
    row, column = np.argwhere(labels > 0)[0]
    cube[row, column] = -9999.0
    (finding,) = scene_from_arrays(cube, labels).findings
    values = {"values": [-9999.0, 1e20], "nodata": -9999.0}
    counts = {"count": 3 * len(cube) + 1, "of": labels.size, "what": "pixels"}
    assert finding.facts == counts | values


def test_fill_in_all_bands_but_one_is_named():
    cube, labels = with_border(-9999.0)
    cube[:, 10:13, 0] = 1.0  # a mask, or a number of the row
    (finding,) = scene_from_arrays(cube, labels).findings
    assert (finding.code, finding.facts["count"]) == ("nodata-undeclared", 3 * len(cube))


@pytest.mark.parametrize("mark", [-9999.0, -32768.0])
def test_a_mark_in_some_bands_is_named(mark):
    scene = synthetic_scene()
    cube = scene.cube.astype(np.float64)
    cube[:5, :, 3:6] = mark  # as where a second detector sees less
    (finding,) = scene_from_arrays(cube, scene.labels).findings
    assert (finding.code, finding.facts["nodata"]) == ("nodata-undeclared", mark)
    assert scene_from_arrays(cube, scene.labels, nodata=mark).notes == ()
    (finding,) = undeclared_in_rows(cube, None, np.arange(cube.shape[2]))
    assert (finding.code, finding.facts["nodata"]) == ("nodata-undeclared", mark)
    cube[:5, :, 3:6] = 1.0
    cube[0, np.flatnonzero(scene.labels[0])[0], 3] = mark
    (finding,) = scene_from_arrays(cube, scene.labels).findings
    assert (finding.facts["count"], finding.facts["what"]) == (1, "values")


def test_a_cube_without_labels_is_searched_by_rows():
    cube, _ = with_border(-9999.0)
    bands = np.arange(cube.shape[2])
    tall = np.concatenate([cube] * 2)
    (finding,) = undeclared_in_rows(tall, None, bands)
    assert finding.code == "nodata-undeclared"
    assert (finding.facts["count"], finding.facts["values"]) == (48, [-9999])
    assert undeclared_in_rows(tall, -9999.0, bands) == ()
    (finding,) = undeclared_in_rows(with_border(0.0)[0], None, bands)
    assert finding.facts["count"] == 48
    assert undeclared_in_rows(-with_border(0.0)[0], None, bands) == ()
    (finding,) = undeclared_in_rows(cube[:5], None, bands)
    assert finding.facts["count"] == 15


def test_undeclared_fill_reaches_no_patch_farther_than_zeros_would():
    cube, labels = with_border(-9999.0)
    scene = scene_from_arrays(cube, labels)
    split = make_split(scene, kind="random")
    scaling = Preprocessing.fit_scene(scene, split.train)
    whole = scaling.apply(scene.cube)
    assert np.all(whole[:, 10:13] == -10.0)
    near = np.ravel_multi_index((5, 9), scene.labels.shape)
    patch = scaling.apply(PatchReader(scene.cube, 3)([near]))
    assert np.abs(patch).max() == 10.0
    measured = np.delete(whole, [10, 11, 12], axis=1)
    assert np.abs(measured).max() < 10.0


def test_what_training_pixels_hold_is_not_clipped():
    generator = np.random.default_rng(0)
    dim = generator.normal(100, 1, (2000, 4))
    bright = np.repeat([[9000.0], [20000.0]], 4, axis=1)
    spectra = np.concatenate([dim, bright])
    scaling = Preprocessing.fit(spectra)
    scaled = scaling.apply(spectra)[-2:, 0]
    assert scaled[1] > 2 * scaled[0] > 20
    assert scaling.reach == pytest.approx(2 * scaled[1], rel=1e-6)
    assert scaling.apply(np.full((1, 4), 1e7))[0] == pytest.approx([scaling.reach] * 4)
    again = Preprocessing.from_dict(scaling.to_dict())
    assert again.reach == scaling.reach
    older = {name: value for name, value in scaling.to_dict().items() if name != "reach"}
    assert Preprocessing.from_dict(older).apply(np.full((1, 4), 1e7)).min() > scaling.reach


def test_the_users_mark_comes_before_the_files(tmp_path):
    cube, labels = with_border(-9999.0, np.float32)
    np.savez(tmp_path / "scene.npz", cube=cube, labels=labels)
    scene = load_scene(tmp_path / "scene.npz", nodata=-9999)
    assert scene.nodata == -9999.0
    assert not scene.valid[:, 10:13].any()
    assert load_scene(tmp_path / "scene.npz").nodata is None


def test_a_mark_that_the_cube_cannot_hold(tmp_path):
    cube, labels = with_border(7, np.uint16)
    np.savez(tmp_path / "scene.npz", cube=cube, labels=labels)
    with pytest.raises(InputError, match=r"must be a value of the cube's type, uint16"):
        load_scene(tmp_path / "scene.npz", nodata=-9999)
    with pytest.raises(InputError, match=r"the synthetic scene has data everywhere"):
        load_scene("synthetic", nodata=0)


def test_a_mark_of_a_file_that_its_type_cannot_hold_is_told(tmp_path):
    cube, labels = with_border(7, np.uint16)
    np.save(tmp_path / "labels.npy", labels)
    write_envi(tmp_path / "envi.img", cube, "bsq", "<", "data ignore value = -9999\n")
    scene = load_scene(tmp_path / "envi.img", tmp_path / "labels.npy")
    assert scene.nodata is None
    assert scene.codes[0] == "not-used"


def test_labelled_values_beyond_float32():
    cube, labels = with_border(0.0)
    row, column = np.argwhere(labels > 0)[0]
    cube[row, column, 2] = 1e40
    with pytest.raises(InputError, match=r"band 3 \(1e\+40\): .* must be finite, as float32"):
        scene_from_arrays(cube, labels)
    cube[row, column, 2] = 1.0
    cube[:, 10:13] = 1e40
    scene = scene_from_arrays(cube, labels)
    (finding,) = scene.findings
    assert (finding.code, finding.facts["count"]) == ("pixels-masked", 3 * len(cube))
    scaling = Preprocessing.fit_scene(scene, np.flatnonzero(labels))
    assert np.all(scaling.apply(cube[:, 10:13]) == 0.0)


def test_a_mark_beyond_float32_unlabels():
    least = float(np.finfo(np.float64).min)  # of GDAL, for cubes of float64
    cube, labels = with_border(0.0)
    rows, columns = np.nonzero(labels)
    cube[rows[:5], columns[:5]] = least
    scene = scene_from_arrays(cube, labels, nodata=least)
    assert (scene.labels > 0).sum() == (labels > 0).sum() - 5
    assert (scene.codes[0], scene.findings[0].facts["count"]) == ("left-out", 5)


@pytest.mark.parametrize("factor", [1e-60, 1e-46])
def test_differences_below_float32_are_named(factor):
    cube, labels = with_border(0.0)
    pixels = np.flatnonzero(labels)
    with pytest.raises(InputError, match=r"0 of \d+ vary .* \d+ vary by less than float32 holds"):
        Preprocessing.fit_scene(scene_from_arrays(cube * factor, labels), pixels)


def test_a_band_of_rounding_errors_is_constant():
    cube, labels = with_border(0.0)
    generator = np.random.default_rng(0)
    cube[:, :, 4] = 0.1 + generator.integers(0, 3, labels.shape) * np.spacing(0.1)
    pixels = np.flatnonzero(labels)
    scaling = Preprocessing.fit_scene(scene_from_arrays(cube, labels), pixels)
    others = Preprocessing.fit_scene(synthetic_scene(), pixels).bands.tolist()
    assert scaling.bands.tolist() == [band for band in others if band != 4]


def test_a_mark_where_no_band_in_use_is_alive_unlabels_nothing():
    cube, labels = with_border(0.0)
    cube[:, :, 3] = np.nan
    scene = scene_from_arrays(cube, labels, nodata=-9999.0, bands="4")
    assert (scene.labels > 0).sum() == (labels > 0).sum()


@pytest.mark.parametrize("nodata", [None, np.nan, -9999.0])
def test_labelled_pixels_without_a_finite_value_are_unlabelled(nodata):
    cube, labels = with_border(np.nan)
    rows, columns = np.nonzero(labels)
    cube[rows[:5], columns[:5]] = np.nan
    scene = scene_from_arrays(cube, labels, nodata=nodata)
    assert (scene.labels > 0).sum() == (labels > 0).sum() - 5
    assert scene.codes == ("left-out", "pixels-masked")
    assert [one.facts["count"] for one in scene.findings] == [5, 3 * len(cube)]
    cube[rows[7], columns[7], 3] = np.inf
    with pytest.raises(InputError, match="1 labelled pixels hold NaN"):
        scene_from_arrays(cube, labels, nodata=nodata)
