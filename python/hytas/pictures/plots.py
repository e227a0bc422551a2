"""Plots: points with intervals, heat maps, and lines with bands, each as an SVG."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.pictures.figures import GROUND, INK, SOFT, figure, scale, svg

_COLOURS = ("#1b6ca8", "#d1622b", "#3a7d44", "#7a4fa3", "#b08900", "#008b8b", "#c2185b", "#555555")
_MARKERS = "os^Dv<>P"
_DASHES = ("-", "--", "-.", ":")
Interval = Sequence[float]
"""A value, and its lower and upper end."""
Band = Sequence[Sequence[float]]
"""Four columns: places, values, and the lower and the upper ends of a line."""


def draw_intervals(series: Mapping[str, Mapping[str, Interval | None]], label: str) -> str:
    """Draw figures with their intervals, a row a name, a colour and a mark a series.

    Args:
        series: label -> name -> value, lower and upper end; None leaves a place empty.
    """
    names = list(dict.fromkeys(chain.from_iterable(series.values())))
    with figure(620, 50 + 22 * len(names) + _key_height(series)) as drawing:
        axes = drawing.add_subplot(xlabel=label)
        axes.axvline(0, color=SOFT, linewidth=1)
        for number, (title, intervals) in enumerate(series.items()):
            shift = 0.5 * ((number + 0.5) / len(series) - 0.5)
            rows = [(at + shift, intervals.get(name)) for at, name in enumerate(names)]
            marks = np.array([(at, *found) for at, found in rows if found], np.float64)
            places, values, low, high = marks.reshape(-1, 4).T
            colour = _COLOURS[number % len(_COLOURS)]
            marker = _MARKERS[number % len(_MARKERS)]
            axes.hlines(places, low, high, color=colour, linewidth=1.2)
            axes.plot(values, places, marker, color=colour, markersize=5, label=title)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        _add_keys(drawing, axes)
        return svg(drawing)


def draw_heat_map(rows: Sequence[str], columns: Sequence[str], values: NDArray[np.float64]) -> str:
    """Draw a table of numbers in -1..1 as colours, each with its number.

    Where rows and columns are the same, the numbers below the diagonal stand for both halves.

    Args:
        values: (r, c); NaN leaves a cell empty.
    """
    same = list(rows) == list(columns)
    labels = 7 * max(map(len, rows)), 7 * max(map(len, columns))
    size = labels[0] + 34 * len(columns), labels[1] + 24 * len(rows)
    with figure(*size) as drawing:
        axes = drawing.add_subplot()
        axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="none")
        axes.set_xticks(range(len(columns)), columns, rotation=90)
        axes.set_yticks(range(len(rows)), rows)
        axes.grid(False)
        for row, column in np.argwhere(np.isfinite(values)):
            if not (same and column > row):
                text = f"{values[row, column]:.2f}".replace("0.", ".")
                colour = GROUND if abs(values[row, column]) > 0.6 else INK
                axes.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
        return svg(drawing)


def draw_cells(values: NDArray[np.float64]) -> str:
    """Draw a table of numbers as boxes; the largest is the darkest, one of 0 or less is white.

    Args:
        values: (r, c).
    """
    rows, columns = values.shape
    height = 440 * rows / columns if rows > 1 and columns < 4 * rows else 24 * rows
    with figure(440, height, layout=None) as drawing:
        axes = drawing.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        most = max(float(values.max()), 1e-30)
        axes.imshow(values, cmap="Blues", vmin=0, vmax=most, aspect="auto", interpolation="none")
        return svg(drawing)


def draw_lines(
    panels: Mapping[str, Mapping[str, Band]], labels: tuple[str, str], log: bool = False
) -> str:
    """Draw lines with their intervals, in panels side by side that share an axis.

    Args:
        panels: title -> label -> line.
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    names = list(dict.fromkeys(chain.from_iterable(panels.values())))
    size = max(300 * columns, 480), 250 * rows + _key_height(names)
    with figure(*size) as drawing:
        grid = drawing.subplots(rows, columns, squeeze=False, sharey=True)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, (title, lines) in zip(grid.flat, panels.items(), strict=False):
            axes.set_title(title, loc="left")
            axes.set_xlabel(labels[0])
            scale(axes, "x", chain.from_iterable(band[0] for band in lines.values()), log)
            for name, (places, values, low, high) in lines.items():
                number = names.index(name)
                colour = _COLOURS[number % len(_COLOURS)]
                dash = _DASHES[number // len(_COLOURS) % len(_DASHES)]
                axes.plot(places, values, dash, color=colour, label=name)
                axes.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)
        for axes in grid[:, 0]:
            axes.set_ylabel(labels[1])
        _add_keys(drawing, *grid.flat)
        return svg(drawing)


def _key_height(names: Collection[str]) -> float:
    return 18 * -(-len(names) // 3) if len(names) > 1 else 0


def _add_keys(drawing: Any, *axes: Any) -> None:
    """Draw the keys of several lines below the axes, each name once."""
    handles: dict[str, Any] = {}
    for panel in axes:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if len(handles) > 1:
        place = {"loc": "outside lower center", "ncols": 3}
        drawing.legend(list(handles.values()), list(handles), **place)
