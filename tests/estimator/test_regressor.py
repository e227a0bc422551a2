"""`HSIRegressor`: continuous targets of spectra."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from hytas import HSIRegressor, InputError, Recipe

RANDOM = np.random.default_rng(0)
LATENT = RANDOM.normal(size=(90, 3))
NOISE = 0.01 * RANDOM.normal(size=(90, 40))
SPECTRA = np.float32(LATENT @ RANDOM.normal(size=(3, 40)) + NOISE)


def test_bad_arrays_are_refused() -> None:
    with pytest.raises(NotFittedError):
        HSIRegressor().predict(SPECTRA)
    for targets in (np.zeros(90), np.zeros(3), np.full(90, np.nan)):
        with pytest.raises(InputError):
            HSIRegressor().fit(SPECTRA, targets)


@pytest.mark.slow
def test_it_learns_several_targets() -> None:
    targets = np.stack([LATENT[:, 0], LATENT[:, 1] ** 2], axis=1)
    lengths = {"population": 4, "generations": 1, "finalists": 2, "race_steps": 5}
    model = HSIRegressor("50K-params", effort="quick", recipe=Recipe(steps=10), **lengths)
    model.fit(SPECTRA[:70], targets[:70])
    assert model.predict(SPECTRA[70:]).shape == (20, 2)
    assert model.score(SPECTRA[70:], targets[70:]) > 0.6
