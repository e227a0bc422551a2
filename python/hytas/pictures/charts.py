"""Charts: the confusion matrix, the Pareto front, the subnets of a supernet."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.files import legible
from hytas.pictures.style import INK, page

_LINE, _POINTS = "#1b6ca8", "#d1622b"
_MOST_NUMBERS = 30
"""Classes up to which every cell of a confusion matrix says its share."""


def draw_confusion(path: str | Path, report: Mapping[str, Any]) -> Path:
    """Draw the confusion matrix of an accuracy report; a row is a true class, in shares of it.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        report: as `hytas.metrics.accuracy_report` gives it.

    Raises:
        OSError: the file cannot be written.
    """
    counts = np.asarray(report["confusion"], dtype=np.float64)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [legible(name) for name in report["per_class"]]
    support = [int(report["support"][name]) for name in report["per_class"]]
    side = 1.6 + 0.34 * len(names)
    width = side + 0.09 * max(len(name) for name in names)
    with page(path, width, side, names=names) as figure:
        axes = figure.add_subplot()
        image = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        rows = [f"{name} ({count})" for name, count in zip(names, support, strict=True)]
        axes.set_yticks(range(len(names)), rows, fontsize=7)
        axes.set_xticks(range(len(names)), names, fontsize=7, rotation=90)
        axes.set_ylabel("true class (pixels)", color=INK)
        axes.set_xlabel("predicted class", color=INK)
        title = f"OA {report['OA']:.4f}, AA {report['AA']:.4f}, kappa {report['kappa']:.4f}"
        axes.set_title(title, fontsize=9, color=INK)
        if len(names) <= _MOST_NUMBERS:
            _write_shares(axes, counts, shares)
        bar = figure.colorbar(image, ax=axes, shrink=0.6)
        bar.set_label("share of the true class", color=INK, fontsize=8)
    return Path(path)


def _write_shares(axes: Any, counts: NDArray[np.float64], shares: NDArray[np.float64]) -> None:
    """Write the percentage into each cell (C, C) that is not empty."""
    for row, column in np.argwhere(counts > 0):
        share = shares[row, column]
        colour = "white" if share > 0.5 else INK
        text = f"{100 * share:.0f}" if share >= 0.005 else "<1"
        axes.text(column, row, text, ha="center", va="center", fontsize=6, color=colour)


def draw_front(
    path: str | Path, costs: Sequence[float], scores: Sequence[float], cost: str
) -> Path:
    """Draw the architectures of a Pareto front, a dot each: score over cost.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        costs: of each architecture.
        scores: of each architecture; larger is better.
        cost: name of the cost, for the axis.

    Raises:
        OSError: the file cannot be written.
    """
    with page(path, 6.0, 4.0) as figure:
        axes = figure.add_subplot()
        axes.plot(costs, scores, marker="o", linestyle="none", markersize=4)
        axes.set_xlabel(cost)
        axes.set_ylabel("score (larger is better)")
        axes.grid(alpha=0.3)
    return Path(path)


def draw_family(
    path: str | Path,
    costs: Sequence[float],
    inherited: Sequence[float],
    alone: Sequence[float | None],
    cost: str,
) -> Path:
    """Draw the subnets of a supernet: accuracy over cost, beside the same networks trained alone.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        costs: of each subnet.
        inherited: accuracy on test pixels of each.
        alone: the same of the architecture trained alone; None where it was not.
        cost: name of the cost, for the axis.

    Raises:
        OSError: the file cannot be written.
    """
    order = sorted(range(len(costs)), key=lambda place: costs[place])
    with page(path, 6.0, 4.0) as figure:
        axes = figure.add_subplot()
        across = [costs[place] for place in order]
        line = [inherited[place] for place in order]
        axes.plot(across, line, marker="o", color=_LINE, label="weights of the supernet")
        trained = [(costs[place], alone[place]) for place in order if alone[place] is not None]
        if trained:
            axes.plot(*zip(*trained, strict=True), "x", color=_POINTS, label="trained alone")
        axes.set_xscale("log")
        axes.set_xlabel(cost, color=INK)
        axes.set_ylabel("overall accuracy, test pixels", color=INK)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    return Path(path)
