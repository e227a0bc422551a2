"""Charts: the confusion matrix, the Pareto front, the subnets of a supernet."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hytas.pictures.canvas import GREY, Canvas
from hytas.pictures.fonts import widest
from hytas.pictures.plots import COLOURS, Frame, blend

_MOST_NUMBERS = 30
"""Classes up to which every cell of a confusion matrix says its share."""
_LIGHT, _DARK = (247, 251, 255), (8, 48, 107)
_CELL, _SCALE = 26, 2.0


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
    names = list(report["per_class"])
    rows = [f"{name} ({report['support'][name]})" for name in names]
    side = _CELL * len(names)
    left, top = 40 + widest(rows, 11), 34
    page = Canvas(max(left + side + 14, 330), top + side + 40 + widest(names, 11))
    title = f"OA {report['OA']:.4f}, AA {report['AA']:.4f}, kappa {report['kappa']:.4f}"
    page.text(14, 20, title, size=13)
    for row, column in np.argwhere(counts > 0):
        share = float(shares[row, column])
        x, y = left + _CELL * column, top + _CELL * row
        page.box(x, y, _CELL, _CELL, blend(_LIGHT, _DARK, share))
        if len(names) <= _MOST_NUMBERS:
            text = f"{100 * share:.0f}" if share >= 0.005 else "<1"
            colour = "#ffffff" if share > 0.5 else "#222222"
            page.text(x + _CELL / 2, y + 17, text, size=10, anchor="middle", colour=colour)
    for at in range(len(names) + 1):
        place = _CELL * at
        page.line([(left, top + place), (left + side, top + place)])
        page.line([(left + place, top), (left + place, top + side)])
    for at, (row, name) in enumerate(zip(rows, names, strict=True)):
        page.text(left - 6, top + _CELL * at + 17, row, anchor="end")
        page.text(left + _CELL * at + 17, top + side + 8, name, anchor="end", turned=True)
    page.text(16, top + side / 2, "true class (pixels)", anchor="middle", turned=True, colour=GREY)
    below = page.height - 10
    page.text(left + side / 2, below, "predicted class", anchor="middle", colour=GREY)
    return page.write(path, _SCALE)


def draw_front(
    path: str | Path, costs: Sequence[float], scores: Sequence[float], cost: str
) -> Path:
    """Draw the architectures of a Pareto front, a dot each: score over cost.

    Args:
        path: an SVG file; replaced as a whole.
        scores: of each architecture; larger is better.

    Raises:
        OSError: the file cannot be written.
    """
    frame = Frame(Canvas(560, 380), costs, scores, (cost, "score (larger is better)"))
    frame.points(costs, scores, COLOURS[0])
    return frame.page.write(path)


def draw_family(
    path: str | Path,
    costs: Sequence[float],
    inherited: Sequence[float],
    alone: Sequence[float | None],
    cost: str,
) -> Path:
    """Draw the subnets of a supernet: accuracy over cost, next to the same networks trained alone.

    Args:
        path: an SVG file; replaced as a whole.
        inherited: accuracy on test pixels of each.
        alone: the same of the architecture trained alone; None where it was not.

    Raises:
        OSError: the file cannot be written.
    """
    trained = {costs[at]: value for at, value in enumerate(alone) if value is not None}
    order = sorted(range(len(costs)), key=lambda place: costs[place])
    across, line = [costs[at] for at in order], [inherited[at] for at in order]
    labels = cost, "overall accuracy, test pixels"
    values = [*line, *trained.values()]
    frame = Frame(Canvas(560, 400), across, values, labels, below=20, log=True)
    frame.curve(across, line, COLOURS[0])
    frame.points(across, line, COLOURS[0])
    frame.points(list(trained), list(trained.values()), COLOURS[1], "diamond")
    keys = [("weights of the supernet", COLOURS[0], "round")]
    if trained:
        keys.append(("trained alone", COLOURS[1], "diamond"))
    frame.keys(keys)
    return frame.page.write(path)
