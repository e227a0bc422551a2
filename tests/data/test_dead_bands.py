"""A band without a value is left out by itself and does not hurt training."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from hytas.data import Preprocessing, load_scene, make_split, parse_bands, scene_from_arrays
from hytas.data.bands import format_bands, measured_bands
from hytas.data.interpret.nodata import valid_pixels
from hytas.errors import InputError
from hytas.run import RunConfig

LABELS = np.tile(np.arange(12) % 4, (10, 1))


def floats(bands: int = 8) -> np.ndarray:
    spectra = np.random.default_rng(0).uniform(20, 90, (4, bands))
    noise = np.random.default_rng(1).normal(0, 3, (10, 12, bands))
    return (spectra[LABELS] + noise).astype(np.float32)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("labelled_only", [False, True])
def test_a_band_without_a_value_goes_by_itself(bad, labelled_only):
    cube = floats()
    dead = [2, 5, 6]
    cube[..., dead] = np.where(labelled_only & (LABELS == 0), 7, bad)[..., None]
    scene = scene_from_arrays(cube, LABELS)
    assert scene.notes == ("3 bands (3,6-7) hold no finite value in a labelled pixel: left out",)
    assert scene.valid.all()
    assert scene.bands == 8
    split = make_split(scene, kind="random", patch_size=3, train_per_class=9)
    for bands, kept in ((None, [0, 1, 3, 4, 7]), ("2-6", [1, 3, 4])):
        fitted = Preprocessing.fit_scene(scene, split.train, bands=bands)
        assert fitted.bands.tolist() == kept
        without = Preprocessing.fit(cube.reshape(-1, 8)[split.train][:, kept])
        np.testing.assert_array_equal(fitted.offset, without.offset)
        np.testing.assert_array_equal(fitted.scale, without.scale)
        assert np.isfinite(fitted.apply(cube)).all()


def test_a_band_that_failed_in_part_is_refused_unless_left_out(tmp_path: Path):
    cube = floats()
    cube[..., 4] = np.nan
    row, column = (int(i) for i in np.argwhere(LABELS > 0)[3])
    cube[row, column, 4] = 50.0
    savemat(tmp_path / "scene.mat", {"cube": cube, "gt": LABELS.astype(np.uint8)})
    count = (LABELS > 0).sum() - 1
    for bands in (None, "1-8", "5-7"):
        with pytest.raises(InputError, match=f"{count} labelled pixels hold NaN .* column 1, band"):
            load_scene(tmp_path / "scene.mat", bands=bands)
    scene = load_scene(tmp_path / "scene.mat", bands="1-4,6-8")
    assert scene.notes == ()
    assert scene.valid.all()
    config = RunConfig(data=str(tmp_path / "scene.mat"), bands="1-4,6-8")
    assert config.load_scene().fingerprint == scene.fingerprint
    split = make_split(scene, kind="random", patch_size=3)
    fitted = Preprocessing.fit_scene(scene, split.train, bands="1-4,6-8")
    assert fitted.bands.tolist() == [0, 1, 2, 3, 5, 6, 7]
    marked = scene_from_arrays(cube, LABELS, bad_bands=(4,))
    assert marked.bad_bands == (4,)
    with pytest.raises(InputError, match=r"'9' holds no band that may be used: .* within 1 to 8,"):
        load_scene(tmp_path / "scene.mat", bands="9")
    with pytest.raises(InputError, match=r"'400-600' holds no band .* such as 400-900nm"):
        load_scene(tmp_path / "scene.mat", bands="400-600")


def test_a_scene_of_nothing_but_nan_is_refused():
    with pytest.raises(InputError, match=r"^data: 90 of 90 labelled pixels hold no data \(NaN, "):
        scene_from_arrays(floats() * np.nan, LABELS)
    with pytest.raises(InputError, match="finite"):
        Preprocessing.fit(floats().reshape(-1, 8) * np.nan)


def test_no_data_beside_a_dead_band():
    cube = floats()
    cube[..., 3] = np.nan
    cube[1, :3] = -9999
    cube[2, 1, [0, 1, 2, 4, 5, 6, 7]] = -9999
    scene = scene_from_arrays(cube, LABELS, nodata=-9999.0)
    pixels, bands = scene.findings
    assert (pixels.code, pixels.facts["count"]) == ("left-out", 3)
    assert (bands.case, bands.facts["count"]) == ("bands-without-data", 1)
    assert np.argwhere(~scene.valid).tolist() == [[1, 0], [1, 1], [1, 2], [2, 1]]
    fitted = Preprocessing.fit_scene(scene, np.flatnonzero(scene.labels))
    assert fitted.bands.tolist() == [0, 1, 2, 4, 5, 6, 7]


def test_bands_in_use():
    cube = floats()
    cube[..., 0], cube[0, 0, 1] = np.nan, np.nan
    labelled = LABELS > 0
    assert measured_bands(cube, labelled, None).tolist() == list(range(1, 8))
    assert measured_bands(cube, labelled & False, None).tolist() == list(range(8))
    assert measured_bands(np.ones((10, 12, 8), np.int16), labelled, None).size == 8
    assert not valid_pixels(cube).any()
    assert valid_pixels(cube, bands=np.arange(1, 8)).sum() == LABELS.size - 1
    assert valid_pixels(cube, bands=np.arange(2, 8)).all()
    for text in ("1-103,110-148", "1", "1-2,4,6-7"):
        assert format_bands(parse_bands(text, 224)) == text
