"""Plots of an analysis: points with intervals, heat maps, and lines with bands."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.pictures.style import GREY, INK, page

_COLOURS = ("#1b6ca8", "#d1622b", "#3a7d44", "#7a4fa3", "#b08900", "#008b8b", "#c2185b", "#555555")
_MARKERS = "os^Dv<>P"
_DASHES = ("-", "--", "-.", ":")
Interval = tuple[float, float, float]
Band = tuple[Sequence[float], Sequence[float], Sequence[float], Sequence[float]]
"""Places, values, and the lower and the upper ends of a line."""


def as_svg(draw: Callable[..., Any], *arguments: Any) -> str:
    """Return what `draw(path, *arguments)` draws, as the text of an SVG.

    Its letters are those of the reader's machine, so a chart of many numbers stays small.
    """
    import matplotlib

    plain = matplotlib.rc_context({"svg.fonttype": "none"})
    with tempfile.TemporaryDirectory() as folder, plain:
        path = Path(folder) / "plot.svg"
        draw(path, *arguments)
        return path.read_text(encoding="utf-8")


def draw_intervals(
    path: str | Path,
    series: Mapping[str, Mapping[str, Interval | None]],
    label: str,
) -> Path:
    """Draw figures with their intervals, a row a name, a colour and a marker a series.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        series: label -> name -> value, lower and upper end; None leaves a place empty.
        label: of the axis.

    Raises:
        OSError: the file cannot be written.
    """
    names = list(dict.fromkeys(name for values in series.values() for name in values))
    with page(path, 6.4, 0.9 + 0.24 * len(names), names=[*names, *series]) as figure:
        axes = figure.add_subplot()
        for number, (title, values) in enumerate(series.items()):
            shift = 0.5 * ((number + 0.5) / len(series) - 0.5)
            known = [(at, values.get(name)) for at, name in enumerate(names)]
            rows = [(at + shift, found) for at, found in known if found is not None]
            if not rows:
                continue
            middle = np.array([found for _, found in rows], np.float64)
            axes.errorbar(
                middle[:, 0],
                [at for at, _ in rows],
                xerr=np.nan_to_num(np.abs(middle[:, 1:] - middle[:, :1]).T),
                fmt=_MARKERS[number % len(_MARKERS)],
                color=_COLOURS[number % len(_COLOURS)],
                markersize=4,
                linewidth=1,
                label=title,
            )
        axes.axvline(0, color=GREY, linewidth=1)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(label, color=INK)
        axes.grid(alpha=0.25, axis="x")
        if len(series) > 1:
            axes.legend(frameon=False, fontsize=7, loc="best")
    return Path(path)


def draw_heat_map(
    path: str | Path,
    rows: Sequence[str],
    columns: Sequence[str],
    values: NDArray[np.float64],
) -> Path:
    """Draw a table of numbers in -1..1 as colours, each with its number.

    Where rows and columns are the same, the numbers below the diagonal stand for both halves.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        rows: r labels.
        columns: c labels.
        values: (r, c); NaN leaves a cell empty.

    Raises:
        OSError: the file cannot be written.
    """
    same = list(rows) == list(columns)
    width, height = 1.9 + 0.34 * len(columns), 1.7 + 0.26 * len(rows)
    with page(path, width, height, names=[*rows, *columns]) as figure:
        axes = figure.add_subplot()
        axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        axes.set_yticks(range(len(rows)), rows, fontsize=7)
        axes.set_xticks(range(len(columns)), columns, fontsize=7, rotation=90)
        for row, column in np.argwhere(np.isfinite(values)):
            if same and column > row:
                continue
            value = values[row, column]
            text = f"{value:.2f}".replace("0.", ".")
            colour = "white" if abs(value) > 0.6 else INK
            axes.text(column, row, text, ha="center", va="center", fontsize=5.5, color=colour)
    return Path(path)


def draw_lines(
    path: str | Path,
    panels: Mapping[str, Mapping[str, Band]],
    labels: tuple[str, str],
    log: bool = False,
) -> Path:
    """Draw lines with their intervals, in panels side by side that share an axis.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        panels: title -> label -> line.
        labels: of the axes, across and up.
        log: make the axis across logarithmic.

    Raises:
        OSError: the file cannot be written.
    """
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    titles = [*panels, *(label for lines in panels.values() for label in lines)]
    labelled = {label for lines in panels.values() for label in lines}
    columns = 4 if max(map(len, labelled), default=0) < 15 else 2
    below = 0.2 * -(-len(labelled) // columns)
    size = max(1.2 + 2.9 * across, 5.5), 0.6 + 2.4 * down + below
    with page(path, *size, names=titles) as figure:
        grid = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, (title, lines) in zip(grid, panels.items(), strict=False):
            for number, (label, band) in enumerate(lines.items()):
                _line(axes, number, label, band)
            axes.set_title(title, fontsize=8, color=INK)
            axes.grid(alpha=0.25)
            axes.tick_params(labelsize=7)
            if log:
                _make_log(axes, lines)
            axes.set_xlabel(labels[0], fontsize=8, color=INK)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        grid[0].set_ylabel(labels[1], fontsize=8, color=INK)
        handles, names = grid[0].get_legend_handles_labels()
        if len(names) > 1:
            figure.legend(
                handles,
                names,
                fontsize=7,
                frameon=False,
                loc="outside lower center",
                ncols=columns,
            )
    return Path(path)


def _make_log(axes: Any, lines: Mapping[str, Band]) -> None:
    """Make the axis across logarithmic, with plain numbers at some of the places of the lines."""
    places = sorted({float(place) for band in lines.values() for place in band[0]})
    few = len(places) <= 6
    chosen = [place for place in places if few or f"{place:g}".rstrip("0") in ("1", "5")]
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks(chosen, [f"{place:g}" for place in chosen])


def _line(axes: Any, number: int, label: str, band: Band) -> None:
    places, values, low, high = (np.asarray(column, np.float64) for column in band)
    colour = _COLOURS[number % len(_COLOURS)]
    dash = _DASHES[number // len(_COLOURS) % len(_DASHES)]
    axes.plot(places, values, dash, color=colour, linewidth=1.3, label=label)
    if np.isfinite(low).any():
        axes.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)


def draw_bars(path: str | Path, panels: Mapping[str, Mapping[str, float]], label: str) -> Path:
    """Draw bars, a row a name, in panels side by side.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        panels: title -> name -> length, not negative.
        label: of the axis.

    Raises:
        OSError: the file cannot be written.
    """
    most = max((len(bars) for bars in panels.values()), default=1)
    names = [name for bars in panels.values() for name in bars]
    with page(path, 1 + 2.8 * len(panels), 0.9 + 0.22 * most, names=[*panels, *names]) as figure:
        grid = figure.subplots(1, len(panels), squeeze=False).ravel()
        for axes, (title, bars) in zip(grid, panels.items(), strict=True):
            axes.barh(range(len(bars)), list(bars.values()), color=_COLOURS[0])
            axes.set_yticks(range(len(bars)), list(bars), fontsize=7)
            axes.set_ylim(len(bars) - 0.5, -0.5)
            axes.set_title(title, fontsize=8, color=INK)
            axes.set_xlabel(label, fontsize=8, color=INK)
            axes.tick_params(labelsize=7)
            axes.grid(alpha=0.25, axis="x")
    return Path(path)
