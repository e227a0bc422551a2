"""The classified scene next to the ground truth, with a legend."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.files import legible
from hytas.pictures.figures import GROUND, SOFT, figure, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend as Key

_PANEL = 700
"""Pixels of the longer side of a small map; a pixel of the scene is a square of whole pixels."""
_LARGEST_SIDE = 1400
_LEGEND_ROWS = 18
_MARGIN, _TITLE, _SIZE = 14, 26, 15
_NO_DATA = (255, 255, 255)
_Ids = npt.NDArray[np.int32]


class Legend(NamedTuple):
    """The classes of a map, one entry each.

    Attributes:
        colours: (red, green, blue), each 0..255.
    """

    ids: Sequence[int]
    names: Sequence[str]
    colours: Sequence[tuple[int, int, int]]


def colour_map(ids: _Ids, legend: Legend) -> npt.NDArray[np.uint8]:
    """Return class ids (H, W) as colours (H, W, 3); ids that the legend lacks are white, like 0."""
    order = np.argsort(legend.ids)
    legend_ids, colours = np.asarray(legend.ids)[order], np.asarray(legend.colours, np.uint8)[order]
    slot = np.minimum(np.searchsorted(legend_ids, ids), len(legend_ids) - 1)
    named = legend_ids[slot] == ids
    return np.where(named[..., None], colours[slot], np.array(_NO_DATA, np.uint8))


def map_png(ids: _Ids, legend: Legend) -> bytes:
    """Return class ids (H, W) as a PNG of as many pixels; ids that the legend lacks are clear."""
    named = np.isin(ids, np.asarray(legend.ids))
    colours = colour_map(ids, legend)
    return picture_png(np.dstack([colours, np.where(named, 255, 0).astype(np.uint8)]))


def picture_png(picture: npt.NDArray[np.uint8]) -> bytes:
    """Return a picture (H, W, 3 or 4) as a PNG of as many pixels."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(picture).save(content, format="png", optimize=True)
    return content.getvalue()


def draw_map(
    path: str | Path,
    labels: Any,
    legend: Legend,
    *,
    truth: _Ids | None = None,
    title: str = "",
    south_up: bool = False,
) -> Path:
    """Draw a class map with the classes' names, next to the ground truth if there is one.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        labels: (H, W) class ids, an array or what gives full rows of one; 0 without data.
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
    # Two maps stand next to each other; wide ones lie above one another.
    columns, rows = (1, len(maps)) if width > 1.5 * height else (len(maps), 1)
    across = max(zoom * width, *(9 * len(name) for name, _ in maps)) + _MARGIN
    down = zoom * height + _TITLE + _MARGIN
    with figure(1, 1, layout=None) as drawing:
        key = _add_legend(drawing, legend, any((values == 0).any() for _, values in maps))
        size = key.get_window_extent()
        beside, below = size.width + 2 * _MARGIN, size.height + 2 * _MARGIN
        # Sides in whole pixels, so that each pixel of the scene is a square of whole pixels.
        right = math.ceil(_MARGIN + columns * across + beside)
        bottom = math.ceil(max(_MARGIN + rows * down, _TITLE + below))
        drawing.set_size_inches(right / 72, bottom / 72)
        key.set_bbox_to_anchor((1 - beside / right, 1 - (_MARGIN + _TITLE) / bottom))
        for index, (name, values) in enumerate(maps):
            x = _MARGIN + index % columns * across
            y = bottom - _MARGIN - index // columns * down - _TITLE - zoom * height
            box = (x / right, y / bottom, zoom * width / right, zoom * height / bottom)
            axes = drawing.add_axes(box, xticks=[], yticks=[])
            axes.spines[:].set(visible=True, color=SOFT, linewidth=2)  # half of it is covered
            picture = axes.imshow(colour_map(values, legend), interpolation="none", aspect="auto")
            picture.set_zorder(3)
            axes.set_title(name, loc="left", fontsize=_SIZE)
        return write(drawing, path, dpi=72)


def _add_legend(drawing: "Figure", legend: Legend, unlabelled: bool) -> "Key":
    from matplotlib.patches import Patch

    patches = [
        Patch(facecolor="#" + bytes(colour).hex(), edgecolor=SOFT) for colour in legend.colours
    ]
    if unlabelled:
        patches.append(Patch(facecolor=GROUND, edgecolor=SOFT))
    return drawing.legend(
        patches,
        [*(legible(name) or " " for name in legend.names), "none"][: len(patches)],
        loc="upper left",
        ncols=-(-len(patches) // _LEGEND_ROWS),
        fontsize=_SIZE,
        handlelength=1,
        handleheight=1,
        borderpad=0,
        borderaxespad=0,
    )
