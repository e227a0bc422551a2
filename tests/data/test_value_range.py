"""The value range that a model keeps of its training pixels."""

import numpy as np
import pytest

from hytas.data import Preprocessing
from hytas.errors import InputError


def spectra(count: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(2)
    return rng.normal(np.linspace(300, 900, 12), 50, (count, 12)).round().astype(np.int16)


def test_it_is_the_mean_absolute_z_and_two_percentiles() -> None:
    values = spectra()
    scaling = Preprocessing.fit(values)
    assert scaling.usual is not None
    z = np.abs((values - values.mean(0)) / values.std(0)).mean(1)
    assert scaling.usual.z == pytest.approx(np.median(z), rel=1e-4)
    assert scaling.usual[1:] == pytest.approx(np.quantile(values, (0.01, 0.99)))
    assert Preprocessing.from_dict(scaling.to_dict()).usual == scaling.usual


def test_clouds_and_pixels_without_data_do_not_change_it() -> None:
    values = spectra()
    scaling = Preprocessing.fit(values)
    assert scaling.usual is not None
    cloudy, empty = values.copy(), values.copy()
    cloudy[::3] = 9000
    empty[::2] = -1
    measured = scaling.value_range(cloudy, None)
    assert measured is not None
    assert measured.z < 2 * scaling.usual.z
    assert scaling.value_range(empty, -1.0) == scaling.value_range(values[1::2], None)
    assert scaling.value_range(np.full((5, 12), -1, np.int16), -1.0) is None
    ten = scaling.value_range(values * 10, None)
    assert ten is not None
    assert ten.z > 10 * scaling.usual.z


def test_bands_in_reverse_order_are_told_by_their_spread() -> None:
    rng = np.random.default_rng(3)
    spread = 10 + 60 * np.linspace(0, 1, 12) ** 2
    values = 500 + rng.normal(0, 1, (4000, 12)) * spread
    scaling = Preprocessing.fit(values[::2])
    other = 2 * values[1::2] + 100
    assert not scaling.is_reversed(other, None)
    assert scaling.is_reversed(other[:, ::-1], None)
    marked = other[:, ::-1].copy()
    marked[::2], marked[:, 3] = -1, np.nan
    assert scaling.is_reversed(marked, -1.0)
    assert not scaling.is_reversed(np.zeros((9, 12)), None)
    assert not Preprocessing.fit(spectra()).is_reversed(spectra()[:, ::-1], None)


@pytest.mark.parametrize("usual", [{"z": -1.0, "low": 0, "high": 1}, {"z": 1, "low": 2, "high": 1}])
def test_an_impossible_one_is_refused(usual: dict[str, float]) -> None:
    stored = {**Preprocessing.fit(spectra(50)).to_dict(), "usual": usual}
    with pytest.raises(InputError, match="usual"):
        Preprocessing.from_dict(stored)
