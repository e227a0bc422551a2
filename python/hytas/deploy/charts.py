"""Charts of a training and of a test: the learning curve and the confusion matrix."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hytas.deploy.lettering import legible, lettering
from hytas.files import atomic_write

_INK, _GREY = "#222222", "#bbbbbb"
_LOSS, _WATCHED, _ACCURACY = "#1b6ca8", "#d1622b", "#3a7d44"
_MOST_NUMBERS = 30
"""Classes up to which every cell of a confusion matrix says its share."""


def draw_learning_curve(
    path: str | Path, history: Sequence[Mapping[str, Any]], best_epoch: int
) -> Path:
    """Draw the losses of every epoch, and the validation accuracy if there is one.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        history: of each epoch `epoch`, `loss`, `validation_loss` and `validation_oa` (or None).
        best_epoch: the epoch whose weights were kept, counted from 1.

    Raises:
        OSError: the file cannot be written.
    """
    epochs = [epoch["epoch"] for epoch in history]
    figure = _figure(6.0, 3.6)
    axes = figure.add_subplot()
    lines = axes.plot(epochs, [epoch["loss"] for epoch in history], color=_LOSS, label="training")
    axes.set_xlabel("epoch", color=_INK)
    axes.set_ylabel("loss", color=_INK)
    axes.grid(alpha=0.25)
    if history and history[0]["validation_oa"] is not None:
        watched = [epoch["validation_loss"] for epoch in history]
        lines += axes.plot(epochs, watched, color=_WATCHED, label="validation")
        right = axes.twinx()
        accuracy = [epoch["validation_oa"] for epoch in history]
        lines += right.plot(epochs, accuracy, color=_ACCURACY, label="validation OA (right)")
        right.set_ylim(0, 1.01)
        right.set_ylabel("overall accuracy", color=_INK)
    lines.append(axes.axvline(best_epoch, color=_GREY, linestyle="--", label="kept"))
    axes.legend(handles=lines, frameon=False, fontsize=8, loc="center right")
    return _save(figure, path)


def draw_confusion(path: str | Path, report: Mapping[str, Any]) -> Path:
    """Draw the confusion matrix of an accuracy report; a row is a true class, in shares of it.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        report: as `hytas.metrics.accuracy_report` gives it.

    Raises:
        OSError: the file cannot be written.
    """
    with lettering(list(report["per_class"])):
        return _save(_confusion(report), path)


def _confusion(report: Mapping[str, Any]) -> Any:
    counts = np.asarray(report["confusion"], dtype=np.float64)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    support = [int(report["support"][name]) for name in report["per_class"]]
    names = [legible(name) for name in report["per_class"]]
    side = 1.6 + 0.34 * len(names)
    figure = _figure(side + 0.09 * max(len(name) for name in names), side)
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    rows = [f"{name} ({count})" for name, count in zip(names, support, strict=True)]
    axes.set_yticks(range(len(names)), rows, fontsize=7)
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=90)
    axes.set_ylabel("true class (pixels)", color=_INK)
    axes.set_xlabel("predicted class", color=_INK)
    axes.set_title(
        f"OA {report['OA']:.4f}, AA {report['AA']:.4f}, kappa {report['kappa']:.4f}",
        fontsize=9,
        color=_INK,
    )
    if len(names) <= _MOST_NUMBERS:
        for row, column in np.argwhere(counts > 0):
            share = shares[row, column]
            colour = "white" if share > 0.5 else _INK
            text = f"{100 * share:.0f}" if share >= 0.005 else "<1"
            axes.text(column, row, text, ha="center", va="center", fontsize=6, color=colour)
    bar = figure.colorbar(image, ax=axes, shrink=0.6)
    bar.set_label("share of the true class", color=_INK, fontsize=8)
    return figure


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, path: str | Path) -> Path:
    """The same figures give the same file: no date, and no random names inside an SVG."""
    import matplotlib

    path = Path(path)
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with matplotlib.rc_context({"svg.hashsalt": "hytas"}), atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata=dated.get(path.suffix.lower()))
    return path
