"""Combinations of proxies over a set of scored architectures."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def ranks(scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks in (0, 1] of scores (n,), ascending; equals share their mean rank.

    NaN ranks below every number, and stays NaN.
    """
    return _places(scores) / max(1, len(scores))


def _places(scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The same, in 1..n."""
    values = np.asarray(scores, dtype=np.float64)
    finite = ~np.isnan(values)
    result = np.full(len(values), np.nan)
    known = values[finite]
    if len(known):
        ordered = np.sort(known)
        low = np.searchsorted(ordered, known, "left")
        high = np.searchsorted(ordered, known, "right")
        failed = len(values) - len(known)
        result[finite] = failed + (low + 1 + high) / 2
    return result


def rank_mean(columns: Sequence[Sequence[float] | NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean of the ranks that the proxies give, in (0, 1]; larger is better.

    NaN where a proxy failed. A rank is relative to the set given: a search passes every
    architecture evaluated so far, and tells its engine again what has moved since.

    Args:
        columns: of each proxy the scores (n,) of the same architectures.
    """
    # Sums of places are exact: architectures that are equal stay so.
    total: NDArray[np.float64] = np.stack([_places(column) for column in columns]).sum(axis=0)
    return total / (len(columns) * max(1, len(total)))
