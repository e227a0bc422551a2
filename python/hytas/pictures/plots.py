"""Plots: points with intervals, heat maps, and lines with bands, each as an SVG."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hytas.files import legible
from hytas.pictures.axes import Axis, axis, log_axis
from hytas.pictures.canvas import GREY, INK, MARKS, Canvas
from hytas.pictures.fonts import text_width, widest

COLOURS = ("#1b6ca8", "#d1622b", "#3a7d44", "#7a4fa3", "#b08900", "#008b8b", "#c2185b", "#555555")
_DASHES = ("", "6 3", "6 2 2 2", "2 2")
_BLUE, _WHITE, _RED = (33, 102, 172), (247, 247, 247), (178, 24, 43)
_CELL, _ROW, _SIZE, _KEY_ROW = 34, 24, 10, 18
Interval = Sequence[float]
"""A value, and its lower and upper end."""
Band = Sequence[Sequence[float]]
"""Four columns: places, values, and the lower and the upper ends of a line."""


def blend(start: Sequence[int], end: Sequence[int], share: float) -> str:
    """Return the colour that lies at `share` between two."""
    mixed = np.rint(np.array(start) + share * (np.array(end) - np.array(start))).astype(int)
    return "#" + bytes(mixed.tolist()).hex()


def _axis(values: Sequence[float], start: float, end: float, log: bool) -> Axis:
    numbers = np.asarray(values, np.float64)
    positive = numbers[numbers > 0]
    if log and positive.size:
        return log_axis(float(positive.min()), float(positive.max()), start, end)
    return axis(numbers, start, end, linear=True)


class Frame:
    """A chart on a page: axes with ticks and labels, and what is drawn between them."""

    def __init__(
        self,
        page: Canvas,
        across: Sequence[float],
        up: Sequence[float],
        labels: tuple[str, str],
        *,
        corner: tuple[float, float] = (0.0, 0.0),
        size: tuple[float, float] | None = None,
        below: float = 0.0,
        log: bool = False,
    ) -> None:
        """Draw the axes.

        Args:
            corner: of the chart on the page, left and above.
            size: of the chart; None takes the page.
        """
        self.page = page
        width, height = size or (page.width, page.height)
        left, right = corner[0] + 58, corner[0] + width - 14
        top, bottom = corner[1] + 16, corner[1] + height - 44 - below
        self.across = _axis(across, left, right, log)
        self.up = _axis(up, bottom, top, False)
        self._below = bottom + 58
        for x, text in self.across.ticks:
            page.line([(x, top), (x, bottom)])
            page.text(x, bottom + 15, text, size=_SIZE, anchor="middle", colour=GREY)
        for y, text in self.up.ticks:
            page.line([(left, y), (right, y)])
            page.text(left - 5, y + 3.5, text, size=_SIZE, anchor="end", colour=GREY)
        page.text((left + right) / 2, bottom + 34, labels[0], anchor="middle")
        middle = corner[0] + 13, (top + bottom) / 2
        page.text(*middle, labels[1], anchor="middle", turned=True)

    def _spots(self, across: Sequence[float], up: Sequence[float]) -> list[tuple[float, float]]:
        return [
            (round(self.across.place(x), 1), round(self.up.place(y), 1))
            for x, y in zip(across, up, strict=True)
            if np.isfinite(y) and (x > 0 or not self.across.log)
        ]

    def curve(
        self, across: Sequence[float], up: Sequence[float], colour: str, dash: str = ""
    ) -> None:
        """Draw a line through points."""
        if spots := self._spots(across, up):
            self.page.line(spots, colour, 1.6, dash)

    def band(
        self, across: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
    ) -> None:
        """Fill the band between two lines."""
        edge = [*self._spots(across, low), *reversed(self._spots(across, high))]
        if edge:
            self.page.area(edge, colour, opacity=0.13)

    def points(
        self, across: Sequence[float], up: Sequence[float], colour: str, mark: str = "round"
    ) -> None:
        """Draw a mark at each point."""
        for x, y in self._spots(across, up):
            self.page.mark(mark, x, y, colour)

    def keys(self, entries: Sequence[tuple[str, str, str]]) -> None:
        """Draw the keys below the chart: name, colour and mark of each."""
        left = self.across.start
        for name, colour, mark in entries:
            self.page.mark(mark, left + 5, self._below - 4, colour)
            self.page.text(left + 14, self._below, name, size=_SIZE)
            left += 34 + text_width(legible(name), _SIZE)


def draw_intervals(series: Mapping[str, Mapping[str, Interval | None]], label: str) -> str:
    """Draw figures with their intervals, a row a name, a colour and a mark a series.

    Args:
        series: label -> name -> value, lower and upper end; None leaves a place empty.
    """
    names = list(dict.fromkeys(name for values in series.values() for name in values))
    ends = [
        end for values in series.values() for interval in values.values() for end in interval or ()
    ]
    left, width = 20 + widest(names, _SIZE), 620.0
    keys = _key_rows(list(series), width - 28) if len(series) > 1 else []
    bottom = 14.0 + _ROW * len(names)
    page = Canvas(width, bottom + 44 + _KEY_ROW * len(keys))
    across = axis(np.array([0.0, *ends]), left, width - 14, linear=True)
    for x, text in across.ticks:
        page.line([(x, 14), (x, bottom)])
        page.text(x, bottom + 15, text, size=_SIZE, anchor="middle", colour=GREY)
    zero = round(across.place(0), 1)
    page.line([(zero, 14), (zero, bottom)], GREY)
    page.text((left + width) / 2, bottom + 33, label, anchor="middle")
    for row, name in enumerate(names):
        page.text(left - 8, 14 + _ROW * (row + 0.5) + 3.5, name, size=_SIZE, anchor="end")
        for number, values in enumerate(series.values()):
            interval = values.get(name)
            if interval is None:
                continue
            y = round(14 + _ROW * (row + 0.25 + 0.5 * (number + 0.5) / len(series)), 1)
            value, low, high = (round(across.place(end), 1) for end in interval)
            page.line([(low, y), (high, y)], COLOURS[number % len(COLOURS)], 1.2)
            page.mark(MARKS[number % len(MARKS)], value, y, COLOURS[number % len(COLOURS)])
    _draw_keys(page, keys, bottom + 44, marked=True)
    return page.svg()


def draw_heat_map(rows: Sequence[str], columns: Sequence[str], values: NDArray[np.float64]) -> str:
    """Draw a table of numbers in -1..1 as colours, each with its number.

    Where rows and columns are the same, the numbers below the diagonal stand for both halves.

    Args:
        values: (r, c); NaN leaves a cell empty.
    """
    same = list(rows) == list(columns)
    left, below = 14 + widest(rows, _SIZE), 14.0 + _ROW * len(rows)
    page = Canvas(left + _CELL * len(columns) + 14, below + 20 + widest(columns, _SIZE))
    for row, column in np.argwhere(np.isfinite(values)):
        value = float(values[row, column])
        x, y = left + _CELL * column, 14 + _ROW * row
        fill = blend(_WHITE, _RED if value > 0 else _BLUE, min(1.0, abs(value)))
        page.box(x, y, _CELL, _ROW, fill)
        if not (same and column > row):
            text = f"{value:.2f}".replace("0.", ".")
            colour = "#ffffff" if abs(value) > 0.6 else INK
            page.text(x + _CELL / 2, y + 16, text, size=9, anchor="middle", colour=colour)
    for at, name in enumerate(rows):
        page.text(left - 6, 14 + _ROW * at + 16, name, size=_SIZE, anchor="end")
    for at, name in enumerate(columns):
        x = left + _CELL * (at + 0.5) + 3.5
        page.text(x, below + 8, name, size=_SIZE, anchor="end", turned=True)
    return page.svg()


def draw_cells(values: NDArray[np.float64]) -> str:
    """Draw a table of numbers as boxes; the largest is the darkest, one of 0 or less is white.

    Args:
        values: (r, c).
    """
    rows, columns = values.shape
    width, most = 440 / columns, max(float(values.max()), 1e-30)
    height = width if rows > 1 and columns < 4 * rows else _ROW
    page = Canvas(440, rows * height)
    for row, column in np.ndindex(rows, columns):
        fill = blend(_WHITE, _BLUE, max(0.0, float(values[row, column]) / most))
        page.box(round(column * width, 1), round(row * height, 1), width, height, fill)
    return page.svg()


def draw_lines(
    panels: Mapping[str, Mapping[str, Band]], labels: tuple[str, str], log: bool = False
) -> str:
    """Draw lines with their intervals, in panels side by side that share an axis.

    Args:
        panels: title -> label -> line.
    """
    columns = min(3, len(panels))
    wide, high, title = 300.0, 250.0, 18.0
    size = max(columns * wide, 480.0), -(-len(panels) // columns) * (high + title)
    names = list(dict.fromkeys(label for lines in panels.values() for label in lines))
    keys = _key_rows(names, size[0] - 28) if len(names) > 1 else []
    page = Canvas(size[0], size[1] + _KEY_ROW * len(keys) + 8)
    up = [
        value
        for lines in panels.values()
        for _, *parts in lines.values()
        for part in parts
        for value in part
    ]
    for at, (name, lines) in enumerate(panels.items()):
        corner = at % columns * wide, at // columns * (high + title) + title
        across = [place for band in lines.values() for place in band[0]]
        page.text(corner[0] + 58, corner[1] + 4, name, size=12)
        shown = labels[0], labels[1] if at % columns == 0 else ""
        frame = Frame(page, across, up, shown, corner=corner, size=(wide, high), log=log)
        for label, (places, values, low, top) in lines.items():
            number = names.index(label)
            colour = COLOURS[number % len(COLOURS)]
            frame.band(places, low, top, colour)
            dash = _DASHES[number // len(COLOURS) % len(_DASHES)]
            frame.curve(places, values, colour, dash)
    _draw_keys(page, keys, size[1])
    return page.svg()


def _key_rows(names: Sequence[str], width: float) -> list[list[tuple[int, str, float]]]:
    """Return rows of keys: number, name and place of each, within a width."""
    rows: list[list[tuple[int, str, float]]] = [[]]
    left = 14.0
    for number, name in enumerate(names):
        wide = 40 + text_width(legible(name), _SIZE)
        if rows[-1] and left + wide > width:
            rows.append([])
            left = 14.0
        rows[-1].append((number, name, left))
        left += wide
    return rows


def _draw_keys(
    page: Canvas, rows: Sequence[Sequence[tuple[int, str, float]]], top: float, marked: bool = False
) -> None:
    for at, row in enumerate(rows):
        y = top + _KEY_ROW * at + 12
        for number, name, left in row:
            colour = COLOURS[number % len(COLOURS)]
            if marked:
                page.mark(MARKS[number % len(MARKS)], left + 10, y - 4, colour)
            else:
                dash = _DASHES[number // len(COLOURS) % len(_DASHES)]
                page.line([(left, y - 4), (left + 20, y - 4)], colour, 1.6, dash)
            page.text(left + 26, y, name, size=_SIZE)
