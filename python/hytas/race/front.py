"""A trained Pareto front: which racers go on, which remain, and how large the front is.

Every function here is one of plain values. Points are rows of objectives; less is better in each.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_Points = NDArray[np.float64]
FRONT_FINALISTS = 6
"""Finalists of the last rung of a race for a front."""


def non_dominated(points: _Points) -> NDArray[np.bool_]:
    """Return which of (n, k) points no other one beats: as good in all, and better in one."""
    no_worse = (points[:, None] <= points[None]).all(axis=2)
    better = (points[:, None] < points[None]).any(axis=2)
    return np.asarray(~(no_worse & better).any(axis=0))


def front_order(points: _Points) -> list[int]:
    """Return the places of (n, k) points, those of the first fronts first.

    Of a front those with the most room around them come first (Deb et al., A fast and elitist
    multiobjective genetic algorithm: NSGA-II, IEEE TEC 6, 2002).
    """
    left, order = np.arange(len(points)), []
    while len(left):
        front = left[non_dominated(points[left])]
        room = _crowding(points[front])
        order += front[np.argsort(-room, kind="stable")].tolist()
        left = np.setdiff1d(left, front)
    return order


def _crowding(points: _Points) -> NDArray[np.float64]:
    """Return the sum over objectives of the distance of the neighbours; inf at the ends."""
    room = np.zeros(len(points))
    for column in points.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        room[order[[0, -1]]] = np.inf
        if span > 0:
            room[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return room


def hypervolume(points: _Points, reference: Sequence[float]) -> float:
    """Return the volume of what points dominate, up to a reference point.

    By slices along the last objective (While et al., A faster algorithm for calculating
    hypervolume, IEEE TEC 10, 2006); fronts of a race are small.

    Args:
        points: (n, k); those that are beyond the reference count for nothing.
        reference: (k,) the worst point.
    """
    limit = np.asarray(reference, np.float64)
    inside = points[(points < limit).all(axis=1)]
    if not len(inside):
        return 0.0
    if inside.shape[1] == 1:
        return float(limit[0] - inside.min())
    ordered = inside[np.argsort(inside[:, -1], kind="stable")]
    ends = [*ordered[:, -1], limit[-1]]
    return math.fsum(
        (end - start) * hypervolume(ordered[: at + 1, :-1], reference[:-1])
        for at, (start, end) in enumerate(pairwise(ends))
        if end > start
    )
