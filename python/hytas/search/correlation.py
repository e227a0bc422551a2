"""Rank correlations, which are undefined (None) for a constant column."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Spearman's rho of two columns (n,); equal values get their mean rank.

    Pairs with a value that is not finite are left out. The result is None if fewer than two pairs
    are left, or if a column is constant.
    """
    from scipy.stats import rankdata

    pairs = _finite_pairs(first, second)
    if pairs is None:
        return None
    a, b = (rankdata(column) for column in pairs)
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def kendall(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Kendall's tau-b of two columns (n,); None as for `spearman`."""
    from scipy.stats import kendalltau

    pairs = _finite_pairs(first, second)
    return None if pairs is None else float(kendalltau(*pairs).statistic)


def _finite_pairs(
    first: ArrayLike, second: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    a, b = (np.asarray(column, dtype=np.float64) for column in (first, second))
    used = np.isfinite(a) & np.isfinite(b)
    a, b = a[used], b[used]
    if a.size < 2 or a.min() == a.max() or b.min() == b.max():
        return None
    return a, b
