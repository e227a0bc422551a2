"""Cross-validation of a cube by blocks, with scikit-learn's own tools."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

import hytas
from hytas.errors import InputError
from hytas.estimator import HSIClassifier
from tiny import SPACE


def fields() -> tuple[np.ndarray, np.ndarray]:
    labels = np.tile(np.repeat([3, 8], 4), (24, 3))
    labels[:, ::6] = 0
    noise = np.random.default_rng(0).normal(0, 0.1, (24, 24, 6))
    return (labels[..., None] + noise).astype(np.float32), labels


def small() -> HSIClassifier:
    return HSIClassifier(
        "1M-params",
        "params",
        space=SPACE,
        population=2,
        generations=1,
        finalists=1,
        patch_size=3,
        validation_fraction=0,
        epochs=1,
        device="cpu",
    )


def test_no_test_pixel_lies_in_a_training_patch() -> None:
    cube, labels = fields()
    pixels, targets = hytas.BlockSplit.samples(cube, labels)
    splitter = hytas.BlockSplit(3, block=6, patch_size=5)
    tested = []
    for train, test in splitter.split(pixels, targets):
        rows, columns = np.divmod(pixels.pixels, 24)
        gaps = [np.abs(places[train][:, None] - places[test][None]) for places in (rows, columns)]
        assert np.maximum(*gaps).min() > 2
        tested += test.tolist()
    assert sorted(tested) == list(range(len(targets)))
    assert splitter.get_n_splits(pixels) == 3


@pytest.mark.slow
def test_it_works_with_scikit_learn() -> None:
    pixels, targets = hytas.BlockSplit.samples(*fields())
    blocks = hytas.BlockSplit(2, block=6, patch_size=3)
    scores = cross_val_score(small(), pixels, targets, cv=blocks, error_score="raise")
    assert scores.shape == (2,)
    one = list(blocks.split(pixels, targets))[:1]
    search = GridSearchCV(small(), {"band_group": [3]}, cv=one, error_score="raise")
    search.fit(pixels, targets)
    assert search.predict(pixels).shape == targets.shape
    assert search.predict_proba(pixels).shape == (len(targets), 2)


def test_a_cube_is_refused_with_what_to_do() -> None:
    cube, labels = fields()
    with pytest.raises(InputError, match="a cube cannot be cut into rows; give pixels, targets"):
        cross_val_score(small(), cube, labels, cv=hytas.BlockSplit())
    with pytest.raises(ValueError, match="a cube cannot be cut into rows"):
        GridSearchCV(small(), {"patch_size": [25]}).fit(cube, labels)
