"""Ranks of candidates within their kind, and rank correlations.

A proxy hardly compares networks of different kinds.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from hytas.spaces.genes import active, is_depth


def network_kind(architecture: Mapping[str, Any], depths: bool = True) -> str:
    """Return the kind of network of an architecture: its text genes and its depths, by name.

    Args:
        depths: whether networks of different depths are of different kinds.
    """
    genes = active(architecture).items()
    return str(
        sorted(one for one in genes if isinstance(one[1], str) or (depths and is_depth(one[0])))
    )


def rank_in_kinds(values: NDArray[np.float64], kinds: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return the rank of each candidate within its kind, as a share.

    Args:
        values: a score of each candidate (n,), larger is better; NaN where it failed.

    Returns:
        Shares (n,) between 0 and 1: (rank - .5) / n, so that the only candidate of a kind has .5;
        NaN where the score failed.
    """
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)
    ranks = np.full(len(values), np.nan)
    scored = ~np.isnan(values)
    if not scored.any():
        return ranks
    codes, order = codes[scored], rankdata(values[scored], "dense")
    counts = np.bincount(codes, minlength=len(numbers))
    before = np.cumsum(counts) - counts  # candidates of kinds with a smaller code
    places = rankdata(codes * (len(order) + 1) + order) - before[codes]
    ranks[scored] = (places - 0.5) / counts[codes]
    return ranks


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Spearman's rho of two columns (n,); equal values get their mean rank.

    Pairs with a value that is not finite are left out. The result is None if fewer than two pairs
    are left, or if a column is constant.
    """
    pairs = _finite_pairs(first, second)
    if pairs is None:
        return None
    a, b = (rankdata(column) for column in pairs)
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def _finite_pairs(
    first: ArrayLike, second: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    a, b = (np.asarray(column, dtype=np.float64) for column in (first, second))
    used = np.isfinite(a) & np.isfinite(b)
    a, b = a[used], b[used]
    if a.size < 2 or a.min() == a.max() or b.min() == b.max():
        return None
    return a, b
