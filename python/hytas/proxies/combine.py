"""Combinations of proxies over a set of scored architectures."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hytas.proxies.spec import ProxySpec


def ranks(scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks in (0, 1] of scores (n,), ascending; equals share their mean rank.

    NaN ranks below every number, and stays NaN.
    """
    values = np.asarray(scores, dtype=np.float64)
    finite = ~np.isnan(values)
    result = np.full(len(values), np.nan)
    known = values[finite]
    if len(known):
        ordered = np.sort(known)
        low = np.searchsorted(ordered, known, "left")
        high = np.searchsorted(ordered, known, "right")
        failed = len(values) - len(known)
        result[finite] = (failed + (low + 1 + high) / 2) / len(values)
    return result


def rank_mean(columns: Sequence[Sequence[float] | NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean over proxies of the ranks of n architectures; NaN where any proxy failed.

    A rank is relative to the set given, so a search passes every architecture evaluated so far, in
    a fixed order (that of its store): the result depends on that set alone, not on its order, and
    a resumed search finds it again.
    """
    total: NDArray[np.float64] = np.stack([ranks(column) for column in columns]).sum(axis=0)
    return total / len(columns)


def fitness(spec: ProxySpec, scores: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """The fitness (n,) that `spec`, a proxy or a combination, gives architectures with `scores`.

    Args:
        spec: from `parse_proxies`.
        scores: proxy -> score for each architecture, as `Evaluator.score` returns them.
    """
    members = spec.members or (spec,)
    columns = [
        np.array([each.get(str(member), np.nan) for each in scores], dtype=np.float64)
        for member in members
    ]
    return rank_mean(columns) if spec.members else columns[0]
