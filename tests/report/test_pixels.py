"""Spectra and pixels of a report: what is reduced is measured, and a file gives back the same."""

from pathlib import Path

import numpy as np
import pytest
from made_up import BANDS, HEIGHT, WIDTH, pixels

from hytas.errors import InputError
from hytas.report import ReportPixels
from hytas.report.pixels import class_means, false_colours, label_spots, usual_stride
from hytas.report.spectra import CODE_BYTES, reduce_spectra


def smooth_cube(height: int, width: int, bands: int) -> np.ndarray:
    generator = np.random.default_rng(3)
    ends = generator.uniform(100, 4000, (3, bands))
    shares = generator.dirichlet([1, 1, 1], (height, width))
    return np.asarray(shares @ ends, np.float32)


def test_the_error_is_that_of_the_spectra_that_are_kept() -> None:
    cube = smooth_cube(40, 30, 50)
    everywhere = np.ones(cube.shape[:2], np.bool_)
    kept = np.arange(2, 48)
    spectra = reduce_spectra(cube, everywhere, kept, None)
    assert spectra is not None
    back = np.array([[spectra.spectrum(row, col) for col in range(30)] for row in range(40)])
    near = np.clip(cube[..., kept], *np.percentile(cube[..., kept], [0.05, 99.95], axis=(0, 1)))
    error = np.sqrt(np.mean((back - near) ** 2)) / near.std(axis=(0, 1)).mean()
    assert spectra.error == pytest.approx(error, rel=0.05)
    assert error < 0.01
    assert spectra.bands.tolist() == (kept + 1).tolist()


def test_a_hot_pixel_does_not_coarsen_the_others() -> None:
    cube = smooth_cube(40, 40, 20)
    cube[3, 3] = 1e7
    spectra = reduce_spectra(cube, np.ones((40, 40), np.bool_), np.arange(20), None)
    assert spectra is not None
    assert spectra.cut > 0
    assert "outliers, are clipped" in spectra.describe()
    assert np.abs(spectra.spectrum(20, 20) - cube[20, 20]).max() < 100


def test_a_large_scene_keeps_fewer_spectra_and_says_so() -> None:
    cube = np.lib.stride_tricks.as_strided(
        smooth_cube(1, 300, 9)[0], (400, 300, 9), (0, 36, 4), writeable=False
    )
    spectra = reduce_spectra(cube, np.ones((400, 300), np.bool_), np.arange(9), None)
    assert spectra is not None
    assert spectra.stride == 2
    assert spectra.codes.size <= CODE_BYTES
    assert "of every second row and column" in spectra.describe()
    assert usual_stride(400, 300) == 1
    assert usual_stride(10_000, 9_000) == 13


def test_pixels_without_data_have_no_spectrum() -> None:
    cube = smooth_cube(10, 10, 8)
    cube[2] = np.nan
    valid = np.ones((10, 10), np.bool_)
    spectra = reduce_spectra(cube, valid, np.arange(8), None)
    assert spectra is not None
    assert np.isfinite(spectra.spectrum(5, 5)).all()
    assert reduce_spectra(cube, np.zeros((10, 10), np.bool_), np.arange(8), None) is None


def test_class_means_are_those_of_labelled_pixels() -> None:
    cube = smooth_cube(9, 9, 5)
    labels = np.zeros((9, 9), np.int32)
    labels[2:4], labels[6] = 1, 3
    predicted = class_means(cube, labels, 3, np.array([0, 2, 4]))
    assert predicted[0] == pytest.approx(cube[2:4].mean(axis=(0, 1))[[0, 2, 4]], rel=1e-5)
    assert np.isnan(predicted[1]).all()
    assert predicted[2] == pytest.approx(cube[6].mean(axis=0)[[0, 2, 4]], rel=1e-5)


def test_numbers_stand_inside_their_class() -> None:
    plane = pixels().predicted
    predicted = label_spots(plane)
    assert [number for number, *_ in predicted] == [1, 2, 3]
    for number, row, column in predicted:
        assert plane[int(row * HEIGHT), int(column * WIDTH)] == number


def test_a_file_gives_back_the_pixels(tmp_path: Path) -> None:
    path, whole = tmp_path / "pixels.npz", pixels()
    whole.save(path)
    back = ReportPixels.load(path)
    assert back.size == (HEIGHT, WIDTH)
    for name in ("predicted", "truth", "confidence", "roles", "means", "palette"):
        assert np.array_equal(getattr(back, name), getattr(whole, name), equal_nan=True)
    assert back.spectra is not None
    assert whole.spectra is not None
    assert back.spectra.spectrum(4, 4).shape == (BANDS,)
    assert np.array_equal(back.spectra.spectrum(4, 4), whole.spectra.spectrum(4, 4))
    assert back.spectra.describe() == whole.spectra.describe()


@pytest.mark.parametrize("content", [b"", b"PK", b"\x00" * 100])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pixels.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is truncated or corrupt: not a readable file of a run"):
        ReportPixels.load(path)


def test_false_colours_show_near_infrared_red_and_green() -> None:
    cube = np.zeros((2, 3, 5))
    cube[0, 0, 3], cube[0, 1, 2], cube[0, 2, 1] = 1.0, 1.0, 1.0
    valid = np.ones((2, 3), bool)
    valid[1, 2] = False
    nm = np.array([450.0, 560.0, 660.0, 860.0, 1600.0])
    picture = false_colours(cube, valid, np.arange(5), nm)
    assert (picture[0].argmax(axis=1) == [0, 1, 2]).all()
    assert (picture[1, 2] == 0).all()
