"""Figures of a ranking with bootstrap intervals.

Source: Efron, Bootstrap methods: another look at the jackknife, Annals of Statistics 7, 1979.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hytas.types import Floats

_ENDS = (2.5, 97.5)


def resamples(networks: int, count: int, seed: int) -> NDArray[np.int64]:
    """Return copies of each network (1 + count, n); the first row is the sample itself."""
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(networks, np.full(networks, 1 / networks), size=count)
    return np.concatenate([np.ones((1, networks), np.int64), drawn])


def in_resamples(
    statistic: Callable[[Floats, Floats], float | None],
    one: Floats,
    other: Floats,
    copies: NDArray[np.int64],
) -> Floats:
    """Return a rank statistic of two columns (n,) in each resample (b,); NaN if undefined.

    A value that is not finite is the lowest.

    Args:
        copies: (b, n) of `resamples`.
    """
    finite = (np.where(np.isfinite(each), each, -np.inf) for each in (one, other))
    ranks = np.stack([np.unique(each, return_inverse=True)[1] for each in finite]).astype(float)
    values = (statistic(*np.repeat(ranks, row, axis=1)) for row in copies)
    return np.array([math.nan if value is None else value for value in values])


def kendall(one: Floats, other: Floats) -> float:
    """Return Kendall's tau-b; NaN where a column is constant."""
    from scipy.stats import kendalltau

    return float(kendalltau(one, other).statistic)


def precision(one: Floats, other: Floats, share: float) -> float:
    """Return which part of the first `share` by one column is also first by the other."""
    count = math.ceil(share * len(one))
    return float((among_first(one, count) * among_first(other, count)).sum() / count)


def among_first(values: Floats, count: int) -> Floats:
    """Return the chance (n,) of each value to be among the `count` largest, 0 or 1.

    It lies between where equal values compete for the last places.
    """
    last = np.partition(values, -count)[-count]
    above, equal = values > last, values == last
    chance: Floats = above + equal * (count - above.sum()) / equal.sum()
    return chance


def with_interval(values: Floats) -> tuple[float, float, float] | None:
    """Return the figure of the sample and its 95 % interval over resamples; None if undefined."""
    finite = values[1:][np.isfinite(values[1:])]
    if not math.isfinite(values[0]):
        return None
    low, high = np.percentile(finite, _ENDS) if finite.size else (math.nan, math.nan)
    return float(values[0]), float(low), float(high)


def mean_with_interval(
    values: Floats, copies: NDArray[np.int64]
) -> tuple[float, float, float] | None:
    """Return the mean of values (n,) and its 95 % interval over resamples."""
    return with_interval(copies @ values / copies.sum(axis=1))


def cell(figure: Sequence[float | None] | None, digits: int = 2) -> str:
    """Return a figure and its interval as text: "0.72 (0.69 to 0.75)"; "-" if undefined."""
    if figure is None:
        return "-"
    value, low, high = (rounded(each, digits) for each in figure)
    return value if low == "-" else f"{value} ({low} to {high})"


def rounded(value: float | None, digits: int = 2) -> str:
    """Return a number with some digits after the point; "-" if there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def amount(params: float) -> str:
    """Return a number of parameters in few characters: 36K, 1.5M."""
    return f"{params / 1e6:.3g}M" if params >= 1e6 else f"{params / 1e3:.3g}K"
