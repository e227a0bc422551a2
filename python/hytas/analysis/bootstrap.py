"""Figures of a ranking with bootstrap intervals, all resamples at once.

A resample is a number of copies of each network. Ranks, and how many networks are among the first,
follow from running sums of these numbers in the order of the values, so no resample is sorted.

Source: Efron, Bootstrap methods: another look at the jackknife, Annals of Statistics 7, 1979.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BLOCK = 512  # rows of the pairs of Kendall's tau that are in memory together
_ENDS = (2.5, 97.5)


def resamples(networks: int, count: int, seed: int) -> Floats:
    """Return copies of each network (1 + count, n); the first row is the sample itself."""
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(networks, np.full(networks, 1 / networks), size=count)
    return np.concatenate([np.ones((1, networks)), drawn])


@dataclass(frozen=True, eq=False)
class Ordered:
    """Values (n,) in ascending order, with their ties; a value that is not finite is the lowest.

    Attributes:
        order: (n,) places in ascending order.
        starts: (g,) where each group of equal values begins in `order`.
        group: (n,) the group of each network.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    group: NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats) -> "Ordered":
        """Order values."""
        known = np.where(np.isfinite(values), values, -np.inf)
        _, group = np.unique(known, return_inverse=True)
        order = np.argsort(known, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
        return cls(order, starts, group)

    @property
    def constant(self) -> bool:
        """Return whether all values are equal."""
        return len(self.starts) < 2

    def weights(self, copies: Floats) -> Floats:
        """Return how many networks (b, g) each group has in each resample."""
        return np.asarray(np.add.reduceat(copies[:, self.order], self.starts, axis=1))

    def ranks(self, copies: Floats) -> Floats:
        """Return the mean rank (b, n) of each network among those of its resample."""
        weights = self.weights(copies)
        before = np.cumsum(weights, axis=1) - weights
        return np.asarray((before + (weights + 1) / 2)[:, self.group])

    def among_first(self, copies: Floats, count: int) -> Floats:
        """Return the chance (b, n) of each network to be among the `count` largest, 0 or 1.

        It lies between where equal values compete for the last places.
        """
        weights = self.weights(copies)
        above = weights.sum(axis=1, keepdims=True) - np.cumsum(weights, axis=1)
        chance = np.clip((count - above) / np.maximum(weights, 1), 0, 1)
        return np.asarray(chance[:, self.group])


def spearman_of(one: Ordered, other: Ordered, copies: Floats) -> Floats:
    """Return Spearman's rho (b,) in each resample; NaN where a column is constant."""
    middle = (copies.sum(axis=1, keepdims=True) + 1) / 2
    a, b = one.ranks(copies) - middle, other.ranks(copies) - middle
    spread = np.sqrt((copies * a * a).sum(axis=1) * (copies * b * b).sum(axis=1))
    return _divided((copies * a * b).sum(axis=1), spread)


def kendall_of(one: Ordered, other: Ordered, copies: Floats) -> Floats:
    """Return Kendall's tau-b (b,) in each resample; NaN where a column is constant."""
    total = copies.sum(axis=1)
    agreeing = np.zeros(len(copies))
    a, b = one.group.astype(np.float32), other.group.astype(np.float32)
    narrow = copies.astype(np.float32)
    for start in range(0, len(a), _BLOCK):
        rows = slice(start, start + _BLOCK)
        pairs = np.sign(a[rows, None] - a) * np.sign(b[rows, None] - b)
        agreeing += (narrow[:, rows] @ pairs * copies).sum(axis=1)
    apart = [total**2 - (column.weights(copies) ** 2).sum(axis=1) for column in (one, other)]
    return _divided(agreeing, np.sqrt(apart[0] * apart[1]))


def precision_of(one: Ordered, other: Ordered, copies: Floats, share: float) -> Floats:
    """Return which part (b,) of the first `share` by one column is also first by the other."""
    count = math.ceil(share * copies.shape[1])
    both = one.among_first(copies, count) * other.among_first(copies, count)
    return np.asarray((copies * both).sum(axis=1) / count)


def with_interval(values: Floats) -> tuple[float, float, float] | None:
    """Return the figure of the sample and its 95 % interval over resamples; None if undefined."""
    known = values[1:][np.isfinite(values[1:])]
    if not math.isfinite(values[0]):
        return None
    low, high = np.percentile(known, _ENDS) if known.size else (math.nan, math.nan)
    return float(values[0]), float(low), float(high)


def mean_with_interval(values: Floats, copies: Floats) -> tuple[float, float, float] | None:
    """Return the mean of values (n,) and its 95 % interval over resamples."""
    return with_interval(copies @ values / copies.sum(axis=1))


def _divided(sums: Floats, spread: Floats) -> Floats:
    found = np.full(len(sums), np.nan)
    np.divide(sums, spread, out=found, where=spread > 1e-9)
    return np.asarray(np.clip(found, -1, 1))


def cell(found: Sequence[float] | None) -> str:
    """Return a figure and its interval as text: ".72 (.69 to .75)"; "-" if undefined."""
    if found is None:
        return "-"
    return f"{short(found[0])} ({short(found[1])} to {short(found[2])})"


def short(value: float | None) -> str:
    """Return a number with two digits after the point; "-" if there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text
