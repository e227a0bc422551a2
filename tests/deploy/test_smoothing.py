"""The guided filter against least squares in every window, written out."""

import numpy as np
import pytest

from hytas.data import Preprocessing
from hytas.deploy.smoothing import LineState, Smoothing, guided_rows


def slow(p: np.ndarray, guide: np.ndarray, valid: np.ndarray, r: int, eps: float) -> np.ndarray:
    """Ridge regression of the probabilities on the guide in each window; the mean of the answers.

    p (H, W, C), guide (H, W, 3), valid (H, W).
    """
    height, width, classes = p.shape
    models = {}
    for y, x in np.argwhere(valid):
        seen = np.zeros_like(valid)
        seen[max(0, y - r) : y + r + 1, max(0, x - r) : x + r + 1] = True
        seen &= valid
        n = int(seen.sum())
        design = np.c_[guide[seen], np.ones(n)]
        # eps |a|^2 for each pixel of the window, as rows of their own.
        ridge = np.c_[np.sqrt(n * eps) * np.eye(3), np.zeros(3)]
        answers = np.r_[p[seen], np.zeros((3, classes))]
        models[y, x] = np.linalg.lstsq(np.r_[design, ridge], answers, rcond=None)[0]
    found = np.zeros((height, width, classes))
    for y, x in np.argwhere(valid):
        near = [
            models[v, u]
            for v in range(max(0, y - r), min(height, y + r + 1))
            for u in range(max(0, x - r), min(width, x + r + 1))
            if valid[v, u]
        ]
        values = np.r_[guide[y, x], 1.0] @ np.mean(near, axis=0)
        values = np.maximum(values, 0)
        found[y, x] = values / values.sum()
    return found


def example(
    height: int, width: int, classes: int = 4, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.3), (height, width)).astype(np.float32)
    guide = rng.normal(0, [1, 0.5, 0.1], (height, width, 3)) + rng.normal(0, 9, 3)
    return p, guide, np.ones((height, width), bool)


def fast(p: np.ndarray, guide: np.ndarray, valid: np.ndarray, r: int, eps: float) -> np.ndarray:
    rows = (LineState(*values) for values in zip(p, guide, valid, strict=True))
    found = list(guided_rows(rows, r, eps))
    assert len(found) == len(p)
    return np.stack(found)


@pytest.mark.parametrize(
    ("height", "width", "radius"),
    [(9, 11, 2), (9, 11, 4), (1, 7, 2), (8, 1, 3), (1, 1, 4), (5, 4, 9), (4, 9, 4)],
)
def test_the_filter_is_the_mean_of_local_regressions(height: int, width: int, radius: int) -> None:
    values = example(height, width)
    found = fast(*values, radius, 0.01)
    assert np.abs(found - slow(*values, radius, 0.01)).max() < 1e-6
    assert np.abs(found.sum(axis=2) - 1).max() < 1e-6
    assert found.min() >= 0


def test_a_temperature_divides_the_logarithms() -> None:
    p, guide, valid = example(6, 7)
    rows = [LineState(*values) for values in zip(p, guide, valid, strict=True)]
    plain = np.stack(list(guided_rows(rows, 2, 0.01))).astype(np.float64)
    found = np.stack(list(guided_rows(rows, 2, 0.01, 0.5)))
    expected = plain**2 / (plain**2).sum(axis=2, keepdims=True)
    assert np.abs(found - expected).max() < 1e-6
    assert np.array_equal(found.argmax(axis=2), plain.argmax(axis=2))


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_pixels_without_data_do_not_leak(share: float) -> None:
    p, guide, valid = example(8, 9)
    valid = np.random.default_rng(1).random(valid.shape) >= share
    expected = slow(p, guide, valid, 2, 0.1)
    empty = ~valid
    p[empty], guide[empty] = np.nan, np.inf
    found = fast(p, guide, valid, 2, 0.1)
    assert np.abs(found - expected).max() < 1e-6
    assert (found[empty] == 0).all()


def test_a_constant_guide_averages() -> None:
    p, guide, valid = example(6, 7)
    guide[:] = 3.0
    found = fast(p, guide, valid, 1, 0.01)
    box = np.array(
        [
            [
                p[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2].reshape(-1, 4).mean(axis=0)
                for x in range(7)
            ]
            for y in range(6)
        ]
    )
    twice = [box[max(0, y - 1) : y + 2, 2:5].reshape(-1, 4).mean(axis=0) for y in range(6)]
    assert np.abs(found[:, 3] - twice).max() < 1e-6


def test_an_edge_of_the_guide_stays() -> None:
    p = np.zeros((9, 10, 2), np.float32)
    p[:, :5, 0] = p[:, 5:, 1] = 1
    p[4, 2] = 0, 1  # a speckle
    guide = np.zeros((9, 10, 3))
    guide[:, 5:] = 4.0
    found = fast(p, guide, np.ones((9, 10), bool), 4, 0.01).argmax(axis=2)
    assert (found[:, :5] == 0).all()
    assert (found[:, 5:] == 1).all()


def test_rows_are_the_same_to_the_bit_wherever_reading_began() -> None:
    p, guide, valid = example(30, 8, seed=3)
    valid[11:13, 2:6] = False
    whole = fast(p, guide, valid, 3, 0.1)
    for first in (1, 5, 17):
        part = fast(p[first:], guide[first:], valid[first:], 3, 0.1)
        assert np.array_equal(part[6:], whole[first + 6 :])


def scaling(bands: int) -> Preprocessing:
    return Preprocessing(
        np.arange(bands), np.zeros(bands, "f4"), np.ones(bands, "f4"), "standard", bands, -9.0
    )


def test_the_guide_is_the_principal_components_by_one_scale() -> None:
    rng = np.random.default_rng(0)
    cube = (rng.normal(0, 1, (40, 30, 6)) @ rng.normal(0, 1, (6, 6)) + 2).astype(np.float32)
    cube[:3] = -9.0
    held = cube[3:].reshape(-1, 6).astype(float)
    smoothing = Smoothing.fit(cube, scaling(6), -9.0)
    guide = smoothing.guide(held)
    centred = held - held.mean(axis=0)
    vectors = np.linalg.svd(centred, full_matrices=False)[2][:3]
    expected = centred @ vectors.T
    expected /= expected[:, 0].std()
    assert np.abs(np.abs(guide) - np.abs(expected)).max() < 1e-4
    assert guide.std(axis=0)[0] == pytest.approx(1.0)
    cube[:3] = 1e4  # had these pixels been read, all would differ
    again = Smoothing.from_dict(smoothing.to_dict(), 6)
    assert np.array_equal(again.directions, smoothing.directions)
    assert np.array_equal(again.offset, smoothing.offset)
    assert again.to_dict() == smoothing.to_dict()
