"""Patches equal those of a padded cube; scaling uses training pixels only."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hytas.data import (
    PatchReader,
    Preprocessing,
    parse_bands,
    scene_from_arrays,
    synthetic_scene,
)
from hytas.data.palette import palette
from hytas.errors import InputError
from refusals import refuses


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999),
    half=st.integers(0, 3),
    extra=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    dtype=st.sampled_from(["uint8", "int16", "float32"]),
)
def test_patches_against_padding(seed, half, extra, dtype):
    size = 2 * half + 1
    height, width = size + extra[0], size + extra[1]
    cube = np.random.default_rng(seed).integers(0, 255, (height, width, 3)).astype(dtype)
    padded = np.pad(cube, ((half, half), (half, half), (0, 0)), mode="reflect")
    patches = PatchReader(cube, size)(np.arange(height * width))
    assert patches.dtype == cube.dtype
    for pixel, patch in enumerate(patches):
        row, column = divmod(pixel, width)
        np.testing.assert_array_equal(patch, padded[row : row + size, column : column + size])


def test_patches_of_a_bands_first_memory_order(cube):
    turned = np.ascontiguousarray(cube.transpose(2, 0, 1)).transpose(1, 2, 0)
    pixels = np.array([0, 50, 98])
    np.testing.assert_array_equal(PatchReader(turned, 5)(pixels), PatchReader(cube, 5)(pixels))
    assert PatchReader(cube, 3)([]).shape == (0, 3, 3, 6)


def test_patch_arguments(cube):
    for size in (0, -1, 2, 6):
        with pytest.raises(InputError, match=f"patch_size={size}: must be odd"):
            PatchReader(cube, size)([0])
    with pytest.raises(InputError, match="11: is larger than the scene of 9 x 11"):
        PatchReader(cube, 11)([0])
    with pytest.raises(InputError, match="must be 0 to 98"):
        PatchReader(cube, 3)([0, 99])


@pytest.mark.parametrize("method", ["standard", "minmax"])
def test_dark_is_where_zero_counts_lie(method):
    spectra = np.random.default_rng(0).integers(5, 90, (50, 4)).astype(np.int16)
    spectra[:, 3] += 1000  # an offset, not light
    scaling = Preprocessing.fit(spectra, method=method, nodata=0)
    expected = Preprocessing.fit(spectra, method=method).apply(np.zeros((1, 4), np.int16))[0]
    np.testing.assert_array_equal(scaling.dark[:3], expected[:3])
    assert scaling.dark[3] == -10.0


@pytest.mark.parametrize("method", ["standard", "minmax"])
def test_scaling_is_fitted_on_the_pixels_given(method):
    generator = np.random.default_rng(0)
    cube = generator.integers(0, 60000, (8, 9, 5)).astype(np.uint16)
    cube[:, :, 1] = 0
    cube[:4, :, 3] = 77  # constant over the training pixels, not elsewhere
    labels = np.tile(np.arange(9) % 3, (8, 1))
    scene = scene_from_arrays(cube, labels)
    pixels = np.arange(36)
    fitted = Preprocessing.fit_scene(scene, pixels, method=method)
    assert fitted.bands.tolist() == [0, 2, 4]
    scaled = fitted.apply(cube.reshape(-1, 5)[pixels])
    assert scaled.dtype == np.float32
    if method == "standard":
        np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-5)
    else:
        np.testing.assert_allclose(scaled.min(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(scaled.max(axis=0), 1, atol=1e-6)
    poisoned = cube.copy()
    poisoned[4:] = 12345
    other = Preprocessing.fit_scene(scene_from_arrays(poisoned, labels), pixels, method=method)
    np.testing.assert_array_equal(other.offset, fitted.offset)
    np.testing.assert_array_equal(other.scale, fitted.scale)


def test_scaling_maps_what_is_not_finite_to_zero():
    spectra = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    fitted = Preprocessing.fit(spectra)
    spectra[3, 2], spectra[4, 1] = np.nan, -np.inf
    scaled = fitted.apply(spectra)
    assert scaled[3, 2] == 0
    assert scaled[4, 1] == 0
    assert np.isfinite(scaled).all()
    assert np.isnan(spectra[3, 2])


def test_scaling_round_trip_through_json():
    spectra = np.random.default_rng(0).normal(100, 30, size=(20, 6))
    fitted = Preprocessing.fit(spectra, method="minmax", bands="1-2,4,6")
    back = Preprocessing.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert back.bands.tolist() == [0, 1, 3, 5]
    np.testing.assert_array_equal(back.apply(spectra), fitted.apply(spectra))
    good = fitted.to_dict()
    for change, message in (
        ({"bands": [0, 1]}, "lists of one length"),
        ({"bands": [0, 1, 2, 6]}, "bands must be 0 to 5"),
        ({"scale": [1, 1, 0, 1]}, "scale positive"),
        ({"offset": "x"}, "not readable"),
    ):
        with pytest.raises(InputError, match=message):
            Preprocessing.from_dict(good | change)
    good.pop("method")
    with pytest.raises(InputError, match="not readable"):
        Preprocessing.from_dict(good)


def test_scaling_arguments():
    spectra = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(InputError, match="scaling='robust': is not one of standard, minmax"):
        Preprocessing.fit(spectra, method="robust")
    with pytest.raises(InputError, match="1 of 3 vary over the training pixels"):
        Preprocessing.fit(spectra * [0, 0, 1])
    with pytest.raises(InputError, match="finite"):
        Preprocessing.fit(spectra * np.nan)
    with pytest.raises(InputError, match="there are none to train on; scaling needs"):
        Preprocessing.fit(spectra[:0])
    with pytest.raises(InputError, match="bands=4: the scaling was fitted on 3"):
        Preprocessing.fit(spectra).apply(np.zeros((2, 4)))


def test_band_selection():
    assert parse_bands("1-3, 7,5-5", 8).tolist() == [0, 1, 2, 4, 6]
    assert parse_bands("1-103,110-148,167-224", 224).size == 200
    for text in ("", "0-3", "3-1", "1-9", "a", "1-", "-3", "1--3", "1.5"):
        with pytest.raises(InputError, match="bands="):
            parse_bands(text, 8)


def test_band_selection_by_wavelengths():
    waves = np.array([400.0, 700, 1400, 1000, 1900, 2500])  # in the order of two sensors
    assert parse_bands("400-900nm, 1000nm-1900 nm", 6, waves).tolist() == [0, 1, 2, 3, 4]
    assert parse_bands("400-900nm,1", 6, waves).tolist() == [0, 1]
    assert parse_bands("6,400-700NM,650.5-750nm", 6, waves, (0,)).tolist() == [1, 5]
    for text, rule in (
        ("900-950nm", "such as 400-900nm; bands lie at 400.0 to 2500.0 nm"),
        ("900-400nm", "holds no band that may be used: bands are numbers and ranges, upwards"),
        ("400nm", "or ranges of wavelengths such as 400-900nm"),
        ("0.4-0.6um", "or ranges of wavelengths such as 400-900nm"),
        ("390-410nm", "holds no band that may be used"),
    ):
        with refuses("bands", text, rule):
            parse_bands(text, 6, waves, (0,))
    with refuses("bands", "400-900nm", "lie at unknown wavelengths"):
        parse_bands("400-900nm", 6)
    scene = scene_from_arrays(
        np.arange(96).reshape(4, 4, 6), np.arange(16).reshape(4, 4) % 3, wavelengths=waves
    )
    scaling = Preprocessing.fit_scene(scene, np.arange(16), bands="400-900nm")
    assert scaling.bands.tolist() == [0, 1]


def test_synthetic_scene():
    scene = synthetic_scene()
    assert scene.cube.dtype == np.uint16
    assert scene.height != scene.width
    assert scene.classes == 6
    assert scene.fingerprint == synthetic_scene(0).fingerprint
    assert scene.fingerprint != synthetic_scene(1).fingerprint
    assert (scene.cube.reshape(-1, scene.bands) == 0).all(axis=0).sum() >= 8
    assert min(scene.class_counts().values()) >= 60
    fitted = Preprocessing.fit_scene(scene, np.flatnonzero(scene.train))
    assert scene.bands - fitted.bands.size >= 8


def test_neighbours_tell_more_of_the_synthetic_scene_than_spectra_alone():
    from sklearn.svm import SVC

    for seed in (0, 1):
        scene = synthetic_scene(seed)
        train, test = np.flatnonzero(scene.train), np.flatnonzero(scene.test)
        spectra = Preprocessing.fit_scene(scene, train).apply(scene.cube.reshape(-1, scene.bands))
        cube = spectra.reshape(*scene.labels.shape, -1)
        near = np.pad(cube, ((1, 1), (1, 1), (0, 0)), mode="reflect")
        height, width = scene.labels.shape
        patches = np.concatenate(
            [
                near[row : row + height, column : column + width]
                for row in range(3)
                for column in range(3)
            ],
            axis=2,
        ).reshape(height * width, -1)
        labels = scene.labels.ravel()
        alone, together = (
            SVC(C=100).fit(values[train], labels[train]).score(values[test], labels[test])
            for values in (spectra, patches)
        )
        assert 0.5 < alone < 0.8
        assert together > alone + 0.1


def test_palette_colours_are_distinct():
    for classes in (1, 6, 20, 40, 100):
        colours = palette(classes)
        assert colours.shape == (classes, 3)
        assert colours.dtype == np.uint8
        assert len({tuple(c) for c in colours.tolist()} | {(0, 0, 0)}) == classes + 1
    np.testing.assert_array_equal(palette(40)[:6], palette(6))


def test_no_data_is_not_measured_and_not_trained_on():
    rng = np.random.default_rng(0)
    cube = rng.integers(100, 200, (8, 9, 4)).astype(np.int16)
    labels = rng.integers(1, 3, (8, 9))
    cube[0, :3] = -9999
    cube[1, 1, 2] = -9999
    scene = scene_from_arrays(cube, labels, nodata=-9999.0)
    assert [(one.code, one.facts["count"]) for one in scene.findings] == [("left-out", 3)]
    assert (scene.labels[0, :3] == 0).all()
    assert (scene.labels != 0).sum() == 69
    assert scene.valid.sum() == 69
    pixels = np.flatnonzero(scene.labels)
    fitted = Preprocessing.fit_scene(scene, pixels)
    measured = [cube[..., band][cube[..., band] != -9999] for band in range(4)]
    np.testing.assert_allclose(fitted.offset, [values.mean() for values in measured], rtol=1e-6)
    np.testing.assert_allclose(fitted.scale, [values.std() for values in measured], rtol=1e-6)
    scaled = fitted.apply(cube)
    assert (scaled[cube == -9999] == 0).all()
    assert (np.abs(scaled) < 3).all()
    back = Preprocessing.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert back.nodata == -9999
    older = {key: value for key, value in fitted.to_dict().items() if key != "nodata"}
    assert Preprocessing.from_dict(older).nodata is None


@pytest.mark.parametrize(
    ("dtype", "nodata"),
    [("i2", float("nan")), ("i2", 1e9), ("i2", -1.5), ("i2", None), ("f4", -1.7e308)],
)
def test_a_mark_for_no_data_that_no_value_equals_is_none(dtype, nodata):
    cube = np.arange(60).reshape(4, 5, 3).astype(dtype)
    scene = scene_from_arrays(cube, np.tile([1, 2, 1, 2, 1], (4, 1)), nodata=nodata)
    assert scene.nodata is None
    assert scene.valid.all()


@pytest.mark.parametrize(
    ("dtype", "mark"), [("f4", -3.4028235e38), ("f4", -9999.9), ("f2", -9999.0), ("f8", 1e-7)]
)
def test_a_mark_for_no_data_is_the_value_that_the_type_holds(dtype, mark):
    rng = np.random.default_rng(1)
    cube = rng.normal(150, 30, (8, 9, 4)).astype(dtype)
    whole = scene_from_arrays(cube.copy(), np.tile([1, 2, 1], (8, 3)))
    cube[2, 3, 1] = mark
    scene = scene_from_arrays(cube, np.tile([1, 2, 1], (8, 3)), nodata=mark)
    pixels = np.flatnonzero(scene.labels)
    fitted, wanted = (Preprocessing.fit_scene(one, pixels) for one in (scene, whole))
    np.testing.assert_allclose(fitted.offset, wanted.offset, rtol=0.02)
    np.testing.assert_allclose(fitted.scale, wanted.scale, rtol=0.05)
    assert fitted.apply(cube)[2, 3, 1] == 0
    assert scene.fingerprint != scene_from_arrays(cube, np.tile([1, 2, 1], (8, 3))).fingerprint
