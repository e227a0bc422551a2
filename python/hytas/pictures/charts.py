"""Charts: the confusion matrix, the Pareto front, the subnets of a supernet."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hytas.pictures.figures import ACCENT, GROUND, INK, SECOND, figure, scale, tag, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NUMBERS = 30
"""Classes up to which every cell of a confusion matrix says its share."""


def fill_confusion(
    axes: "Axes", report: Mapping[str, Any], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """Draw the confusion matrix of an accuracy report; a row is a true class, in shares of it.

    Args:
        report: as `hytas.metrics.accuracy_report` gives it.
        rows: labels of the true classes.
        columns: labels of the predicted classes.
    """
    from matplotlib.patches import Rectangle

    counts = np.asarray(report["confusion"])
    names, count = list(report["per_class"]), len(counts)
    for row, column in np.argwhere(counts > 0):
        total = counts[row].sum()
        share = counts[row, column] / total
        cell = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=ACCENT)
        cell.set(alpha=0.06 + 0.94 * share, edgecolor="none")
        sentence = f"{counts[row, column]} of {total} are predicted as {names[column]}"
        tag(axes.add_patch(cell), "cell", f"{names[row]}: {sentence}")
        if count <= _MOST_NUMBERS:
            text = f"{100 * share:.0f}" if share >= 0.005 else "<1"
            colour = GROUND if share > 0.5 else INK
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=9)
    axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5), aspect="equal")
    axes.set_xticks(range(count), columns)
    axes.set_yticks(range(count), rows)
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks(np.arange(count + 1) - 0.5, minor=True)
    axes.grid(False)
    axes.grid(which="minor")
    axes.tick_params(which="minor", bottom=False, left=False)


def draw_front(
    path: str | Path, costs: Sequence[float], scores: Sequence[float], cost: str
) -> Path:
    """Draw the architectures of a Pareto front, a dot each: score over cost.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        scores: of each architecture; larger is better.

    Raises:
        OSError: the file cannot be written.
    """
    with figure(560, 380) as drawing:
        axes = drawing.add_subplot(xlabel=cost, ylabel="score (larger is better)")
        scale(axes, "x", costs, log=False)
        axes.plot(costs, scores, "o", color=ACCENT)
        return write(drawing, path)


def draw_family(
    path: str | Path,
    costs: Sequence[float],
    inherited: Sequence[float],
    alone: Sequence[float | None],
    cost: str,
) -> Path:
    """Draw the subnets of a supernet: accuracy over cost, next to the same networks trained alone.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        inherited: accuracy on test pixels of each.
        alone: the same of the architecture trained alone; None where it was not.

    Raises:
        OSError: the file cannot be written.
    """
    with figure(560, 400) as drawing:
        axes = drawing.add_subplot(xlabel=cost, ylabel="overall accuracy, test pixels")
        scale(axes, "x", costs, log=True)
        order = np.argsort(costs, kind="stable")
        across, line = np.asarray(costs)[order], np.asarray(inherited)[order]
        axes.plot(across, line, "o-", color=ACCENT, label="weights of the supernet")
        trained = [(at, value) for at, value in zip(costs, alone, strict=True) if value is not None]
        if trained:
            places, values = zip(*trained, strict=True)
            axes.plot(places, values, "D", color=SECOND, label="trained alone")
        axes.legend()
        return write(drawing, path)
