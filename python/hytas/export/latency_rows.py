"""Rows of a latency table, and costs between those that are measured."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Genes = Mapping[str, Any]
Row = dict[str, Any]


class Rows(NamedTuple):
    """Rows of a table for the whole network, and for each layer by its depth gene."""

    whole: list[Row]
    layers: dict[str, list[Row]]


def row(milliseconds: float, **when: Any) -> Row:
    """Return a row in whole microseconds, so that the engine sees fewer different sums.

    A difference of two measured times may be negative; it counts as 0.
    """
    return {"when": when, "cost": round(1000.0 * max(milliseconds, 0.0))}


def layer_cost(depth: int, full: float, last: float) -> float:
    """Return the average cost of a layer at a depth, where one layer is the last."""
    return ((depth - 1) * full + last) / depth if depth else 0.0


def ends(values: Sequence[Any]) -> tuple[Any, Any]:
    """Return the first and the last value."""
    return values[0], values[-1]


def anchors(values: Sequence[int], factor: float) -> list[int]:
    """Return the values to measure: the smallest, the largest, and each `factor` times the last."""
    ordered = sorted(set(values))
    found = ordered[:1]
    for value in ordered[1:]:
        if value >= factor * found[-1]:
            found.append(value)
    return found if found[-1] == ordered[-1] else [*found, ordered[-1]]


def between_widths(measured: Mapping[int, Rows], embed_dim: int) -> Rows:
    """Return the rows of a width from the rows of measured widths.

    A cost is quadratic in the width: the parabola through the three nearest widths, or the line
    through two. It stays between the costs of the widths beside it.
    """
    if embed_dim in measured:
        return measured[embed_dim]
    nearest = sorted(sorted(measured, key=lambda width: abs(np.log(width / embed_dim)))[:3])
    below = max(width for width in measured if width < embed_dim)
    above = min(width for width in measured if width > embed_dim)

    def join(lists: Mapping[int, Sequence[Row]]) -> list[Row]:
        known = np.array([[one["cost"] for one in lists[width]] for width in nearest], float)
        costs = sum(_lagrange(nearest, i, embed_dim) * known[i] for i in range(len(nearest)))
        sides = [[one["cost"] for one in lists[width]] for width in (below, above)]
        costs = np.clip(costs, np.min(sides, axis=0), np.max(sides, axis=0))
        return [
            {"when": {**one["when"], "embed_dim": embed_dim}, "cost": round(float(cost))}
            for one, cost in zip(lists[nearest[0]], costs, strict=True)
        ]

    depths = measured[nearest[0]].layers
    return Rows(
        join({width: rows.whole for width, rows in measured.items()}),
        {gene: join({w: rows.layers[gene] for w, rows in measured.items()}) for gene in depths},
    )


def _lagrange(points: Sequence[int], index: int, at: int) -> float:
    """Return the weight of a point in the polynomial through all points."""
    others = [point for point in points if point != points[index]]
    return float(np.prod([(at - point) / (points[index] - point) for point in others]))
