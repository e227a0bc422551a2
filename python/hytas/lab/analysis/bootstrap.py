"""Figures of a ranking with bootstrap intervals, all resamples at once.

A resample is a number of copies of each network. Ranks, and how many networks are among the first,
follow from running sums of these numbers in the order of the values, so no resample is sorted.

Source: Efron, Bootstrap methods: another look at the jackknife, Annals of Statistics 7, 1979.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hytas.types import Floats

_BLOCK = 512  # rows of the pairs of Kendall's tau that are in memory together
_ENDS = (2.5, 97.5)


def resamples(networks: int, count: int, seed: int) -> Floats:
    """Return copies of each network (1 + count, n); the first row is the sample itself."""
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(networks, np.full(networks, 1 / networks), size=count)
    return np.concatenate([np.ones((1, networks)), drawn])


@dataclass(frozen=True, eq=False)
class Column:
    """Values (n,) in ascending order with their ties, in every resample.

    A value that is not finite is the lowest.

    Attributes:
        copies: (b, n) of `resamples`.
        order: (n,) places in ascending order.
        starts: (g,) where each group of equal values begins in `order`.
        group: (n,) the group of each network.
    """

    copies: Floats
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    group: NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats, copies: Floats) -> "Column":
        """Order values."""
        finite = np.where(np.isfinite(values), values, -np.inf)
        _, group = np.unique(finite, return_inverse=True)
        order = np.argsort(finite, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
        return cls(copies, order, starts, group)

    @cached_property
    def weights(self) -> Floats:
        """Return how many networks (b, g) each group has in each resample."""
        return np.asarray(np.add.reduceat(self.copies[:, self.order], self.starts, axis=1))

    @cached_property
    def ranks(self) -> Floats:
        """Return the rank (b, n) of each network minus the mean rank; equal values share one."""
        before = np.cumsum(self.weights, axis=1) - self.weights
        middle = self.copies.sum(axis=1, keepdims=True) / 2
        return np.asarray((before + self.weights / 2 - middle)[:, self.group])

    @cached_property
    def spread(self) -> Floats:
        """Return the sum (b,) of the squares of `ranks`."""
        return np.asarray((self.copies * self.ranks**2).sum(axis=1))

    def among_first(self, count: int) -> Floats:
        """Return the chance (b, n) of each network to be among the `count` largest, 0 or 1.

        It lies between where equal values compete for the last places.
        """
        above = self.weights.sum(axis=1, keepdims=True) - np.cumsum(self.weights, axis=1)
        chance = np.clip((count - above) / np.maximum(self.weights, 1), 0, 1)
        return np.asarray(chance[:, self.group])


def spearman_of(one: Column, other: Column) -> Floats:
    """Return Spearman's rho (b,) in each resample; NaN where a column is constant."""
    sums = np.einsum("bn,bn,bn->b", one.copies, one.ranks, other.ranks)
    return _divided(sums, np.sqrt(one.spread * other.spread))


def kendall_of(one: Column, other: Column) -> Floats:
    """Return Kendall's tau-b (b,) in each resample; NaN where a column is constant."""
    total = one.copies.sum(axis=1)
    agreeing = np.zeros(len(total))
    a, b = one.group.astype(np.float32), other.group.astype(np.float32)
    narrow = one.copies.astype(np.float32)
    for start in range(0, len(a), _BLOCK):
        rows = slice(start, start + _BLOCK)
        pairs = np.sign(a[rows, None] - a) * np.sign(b[rows, None] - b)
        agreeing += (narrow[:, rows] @ pairs * one.copies).sum(axis=1)
    untied = [total**2 - (column.weights**2).sum(axis=1) for column in (one, other)]
    return _divided(agreeing, np.sqrt(untied[0] * untied[1]))


def precision_of(one: Column, other: Column, share: float) -> Floats:
    """Return which part (b,) of the first `share` by one column is also first by the other."""
    count = math.ceil(share * one.copies.shape[1])
    both = one.among_first(count) * other.among_first(count)
    return np.asarray((one.copies * both).sum(axis=1) / count)


def with_interval(values: Floats) -> tuple[float, float, float] | None:
    """Return the figure of the sample and its 95 % interval over resamples; None if undefined."""
    finite = values[1:][np.isfinite(values[1:])]
    if not math.isfinite(values[0]):
        return None
    low, high = np.percentile(finite, _ENDS) if finite.size else (math.nan, math.nan)
    return float(values[0]), float(low), float(high)


def mean_with_interval(values: Floats, copies: Floats) -> tuple[float, float, float] | None:
    """Return the mean of values (n,) and its 95 % interval over resamples."""
    return with_interval(copies @ values / copies.sum(axis=1))


def _divided(sums: Floats, spread: Floats) -> Floats:
    quotients = np.full(len(sums), np.nan)
    np.divide(sums, spread, out=quotients, where=spread > 1e-9)
    return np.asarray(np.clip(quotients, -1, 1))


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
