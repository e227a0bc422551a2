"""`HSIRegressor`: continuous targets of spectra."""

from typing import Any

import numpy as np
import pytest
import xarray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from hytas import HSIRegressor, InputError, Recipe
from hytas.estimator.regressor import repeated

RANDOM = np.random.default_rng(0)
LATENT = RANDOM.normal(size=(90, 3))
NOISE = 0.01 * RANDOM.normal(size=(90, 40))
SPECTRA = np.float32(LATENT @ RANDOM.normal(size=(3, 40)) + NOISE)


LENGTHS = {"population": 2, "generations": 1, "finalists": 1, "race_steps": 2}
QUICK = HSIRegressor("50K-params", effort="quick", recipe=Recipe(steps=4), **LENGTHS)
EXACT = "a row counts as often as its weight says, and another order of rows is another training"
FAILING = {
    "check_sample_weight_equivalence_on_dense_data": EXACT,
    "check_sample_weight_equivalence_on_sparse_data": EXACT,
}


@pytest.mark.slow
@parametrize_with_checks([QUICK], expected_failed_checks=lambda _: FAILING)
def test_the_checks_of_scikit_learn(estimator: HSIRegressor, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    ("weights", "counts"),
    [([1, 2, 0], [1, 2, 0]), ([0.5, 1.5, 0.5], [1, 3, 1]), ([1, 1.37, 0.63], [8, 11, 5])],
)
def test_a_row_counts_as_often_as_its_weight_says(weights: list[float], counts: list[int]) -> None:
    rows = repeated(np.array(weights, np.float64))
    assert np.bincount(rows, minlength=3).tolist() == counts


def test_bad_arrays_are_refused() -> None:
    with pytest.raises(NotFittedError):
        HSIRegressor().predict(SPECTRA)
    for targets in (np.zeros(90), np.zeros(3), np.full(90, np.nan)):
        with pytest.raises(ValueError, match=r"y|samples"):
            HSIRegressor().fit(SPECTRA, targets)
    with pytest.raises(InputError):
        HSIRegressor().fit(SPECTRA.reshape(9, 10, 40), np.zeros((9, 10)), sample_weight=[1.0])


@pytest.mark.slow
def test_several_targets_weights_and_cross_validation() -> None:
    targets = np.stack([LATENT[:, 0], LATENT[:, 1] ** 2], axis=1)
    model = clone(QUICK).set_params(recipe=Recipe(steps=10), finalists=2)
    model.fit(SPECTRA[:70], targets[:70], sample_weight=np.arange(70) % 3)
    assert model.predict(SPECTRA[70:]).shape == (20, 2)
    assert model.score(SPECTRA[70:], targets[70:]) > 0.6
    assert (cross_val_score(QUICK, SPECTRA, LATENT[:, 0], cv=2) > 0.7).all()


@pytest.mark.slow
def test_pixels_of_a_cube() -> None:
    cube = SPECTRA.reshape(9, 10, 40)
    values = LATENT[:, 0].reshape(9, 10).copy()
    values[::4] = np.nan
    model = clone(QUICK).set_params(patch_size=3).fit(cube, values)
    known = np.isfinite(values)
    assert np.corrcoef(model.predict(cube)[known], values[known])[0, 1] > 0.8
    array = xarray.DataArray(cube, {"y": np.arange(9), "x": np.arange(10)}, ("y", "x", "band"))
    given = model.predict(array)
    assert given.dims == ("y", "x")
    assert np.array_equal(given.values, model.predict(cube))
