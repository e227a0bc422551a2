"""The classified scene next to the ground truth, with a legend."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hytas.pictures.canvas import GREY, Canvas, picture_png
from hytas.pictures.fonts import widest

_PANEL = 700
"""Pixels of the longer side of a small map; a pixel of the scene is a square of whole pixels."""
_LARGEST_SIDE = 1400
_LEGEND_ROWS = 18
_MARGIN, _TITLE, _ENTRY, _SWATCH, _SIZE = 14, 26, 24, 16, 15
_NO_DATA = (255, 255, 255)
Ids = npt.NDArray[np.int32]


class Legend(NamedTuple):
    """The classes of a map, one entry each.

    Attributes:
        colours: (red, green, blue), each 0..255.
    """

    ids: Sequence[int]
    names: Sequence[str]
    colours: Sequence[tuple[int, int, int]]


class Rows(Protocol):
    """A map (H, W) that gives full rows: an array, or a file's that need not fit into memory."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Height and width."""

    def __getitem__(self, rows: slice, /) -> npt.NDArray[Any]:
        """Rows (h, W)."""


def colour_map(ids: Ids, legend: Legend) -> npt.NDArray[np.uint8]:
    """Return class ids (H, W) as colours (H, W, 3); ids that the legend lacks are white, like 0."""
    order = np.argsort(legend.ids)
    legend_ids, colours = np.asarray(legend.ids)[order], np.asarray(legend.colours, np.uint8)[order]
    slot = np.minimum(np.searchsorted(legend_ids, ids), len(legend_ids) - 1)
    named = legend_ids[slot] == ids
    return np.where(named[..., None], colours[slot], np.array(_NO_DATA, np.uint8))


def map_png(ids: Ids, legend: Legend) -> bytes:
    """Return class ids (H, W) as a PNG of as many pixels; ids that the legend lacks are clear."""
    named = np.isin(ids, np.asarray(legend.ids))
    colours = colour_map(ids, legend)
    return picture_png(np.dstack([colours, np.where(named, 255, 0).astype(np.uint8)]))


def draw_map(
    path: str | Path,
    labels: Rows,
    legend: Legend,
    *,
    truth: Ids | None = None,
    title: str = "",
    south_up: bool = False,
) -> Path:
    """Draw a class map with the classes' names, next to the ground truth if there is one.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        labels: (H, W) class ids; 0 where there is no data.
        legend: ids, names and colours of the classes.
        truth: (H, W) class ids, 0 unlabelled.
        south_up: the first row is the southernmost; the picture has the north above.

    Raises:
        OSError: the file cannot be written.
    """
    step = -(-max(labels.shape) // _LARGEST_SIDE)  # more pixels cost memory and show nothing
    maps = [(title or "classified", labels[::step][:, ::step])]
    if truth is not None:
        maps.append(("ground truth", truth[::step, ::step]))
    if south_up:
        maps = [(name, values[::-1]) for name, values in maps]
    height, width = maps[0][1].shape
    zoom = max(1, _PANEL // max(height, width))
    across = max(zoom * width, round(widest((name for name, _ in maps), _SIZE))) + _MARGIN
    down = zoom * height + _TITLE + _MARGIN
    # Two maps stand side by side; wide ones lie above one another.
    columns, rows = (1, len(maps)) if width > 1.5 * height else (len(maps), 1)
    entries = _entries(legend, any((values == 0).any() for _, values in maps))
    right, below = _legend_size(entries)
    page = Canvas(_MARGIN + columns * across + right, _MARGIN + max(rows * down, below))
    for index, (name, values) in enumerate(maps):
        x, y = _MARGIN + index % columns * across, _MARGIN + index // columns * down
        page.text(x, y + _SIZE, name, size=_SIZE)
        page.box(x - 1, y + _TITLE - 1, zoom * width + 2, zoom * height + 2, GREY)
        page.pixels(x, y + _TITLE, zoom, colour_map(values, legend))
    _draw_legend(page, entries, _MARGIN + columns * across)
    return page.write(path)


def _entries(legend: Legend, unlabelled: bool) -> list[tuple[str, str]]:
    entries = [
        (name, "#" + bytes(colour).hex())
        for name, colour in zip(legend.names, legend.colours, strict=True)
    ]
    return [*entries, ("none", "#ffffff")] if unlabelled else entries


def _legend_size(entries: Sequence[tuple[str, str]]) -> tuple[float, float]:
    widths = [
        widest((name for name, _ in entries[at : at + _LEGEND_ROWS]), _SIZE)
        for at in range(0, len(entries), _LEGEND_ROWS)
    ]
    height = _TITLE + _ENTRY * min(len(entries), _LEGEND_ROWS) + _MARGIN
    return sum(width + _SWATCH + 2.5 * _MARGIN for width in widths), height


def _draw_legend(page: Canvas, entries: Sequence[tuple[str, str]], left: float) -> None:
    for first in range(0, len(entries), _LEGEND_ROWS):
        column = entries[first : first + _LEGEND_ROWS]
        for row, (name, colour) in enumerate(column):
            top = _MARGIN + _TITLE + row * _ENTRY
            page.box(left, top, _SWATCH, _SWATCH, colour, GREY)
            page.text(left + _SWATCH + 8, top + _SWATCH - 3, name, size=_SIZE)
        left += widest((name for name, _ in column), _SIZE) + _SWATCH + 2.5 * _MARGIN
