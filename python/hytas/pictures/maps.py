"""The classified scene beside the ground truth, with a legend."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hytas.files import legible
from hytas.pictures.style import GREY, INK, page

_PANEL_INCHES = 4.6
_LEGEND_ROWS = 18
_LARGEST_SIDE = 1400
_NO_DATA = (255, 255, 255)
Ids = npt.NDArray[np.int32]


class Legend(NamedTuple):
    """The classes of a map, one entry each.

    Attributes:
        ids: the numbers in the map.
        names: to print.
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
    known_ids, colours = np.asarray(legend.ids)[order], np.asarray(legend.colours, np.uint8)[order]
    slot = np.minimum(np.searchsorted(known_ids, ids), len(known_ids) - 1)
    known = known_ids[slot] == ids
    return np.where(known[..., None], colours[slot], np.array(_NO_DATA, np.uint8))


def map_png(ids: Ids, legend: Legend) -> bytes:
    """Return class ids (H, W) as a PNG of as many pixels; ids that the legend lacks are clear."""
    from matplotlib.image import imsave

    known = np.isin(ids, np.asarray(legend.ids))
    colours = colour_map(ids, legend)
    picture = np.dstack([colours, np.where(known, 255, 0).astype(np.uint8)])
    content = io.BytesIO()
    imsave(content, picture, format="png")
    return content.getvalue()


def picture_png(picture: npt.NDArray[np.uint8]) -> bytes:
    """Return a picture (H, W, 3) as a PNG of as many pixels."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(picture).save(content, format="png", optimize=True)
    return content.getvalue()


def draw_map(
    path: str | Path,
    labels: Rows,
    legend: Legend,
    *,
    truth: Ids | None = None,
    title: str = "",
) -> Path:
    """Draw a class map with the classes' names, beside the ground truth if there is one.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        labels: (H, W) class ids; 0 where there is no data.
        legend: ids, names and colours of the classes.
        truth: (H, W) class ids, 0 unlabelled.
        title: above the class map.

    Raises:
        OSError: the file cannot be written.
    """
    # More pixels than the page has dots cost memory and show nothing.
    step = -(-max(labels.shape) // _LARGEST_SIDE)
    maps = [(title or "classified", labels[::step][:, ::step])]
    if truth is not None:
        maps.append(("ground truth", truth[::step, ::step]))
    height, width = labels.shape
    panel = _panel_size(height, width)
    beside = _legend_width(legend)
    # Tall scenes stand side by side, wide ones lie above one another.
    rows, columns = (1, len(maps)) if height >= width else (len(maps), 1)
    size = (columns * panel[0] + beside + 0.3, max(rows * (panel[1] + 0.35), 1.6))
    with page(path, *size, names=legend.names, trim=True) as figure:
        grid = figure.add_gridspec(rows, columns + 1, width_ratios=[panel[0]] * columns + [beside])
        for index, (name, values) in enumerate(maps):
            axes = figure.add_subplot(grid[index // columns, index % columns])
            _draw_panel(axes, name, colour_map(values, legend))
        unlabelled = any((values == 0).any() for _, values in maps)
        _draw_legend(figure.add_subplot(grid[:, columns]), legend, unlabelled)
    return Path(path)


def _panel_size(height: int, width: int) -> tuple[float, float]:
    """Inches for one map: its longer side is fixed, its shorter one follows, within reason."""
    longer = max(height, width)
    return (
        max(_PANEL_INCHES * width / longer, 1.2),
        max(_PANEL_INCHES * height / longer, 1.2),
    )


def _legend_width(legend: Legend) -> float:
    columns = -(-len(legend.ids) // _LEGEND_ROWS)
    return columns * (0.55 + 0.075 * max(len(name) for name in legend.names))


def _draw_panel(axes: Any, name: str, colours: npt.NDArray[np.uint8]) -> None:
    axes.imshow(colours, interpolation="nearest")
    axes.set_title(name, fontsize=10, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(GREY)


def _hex(colour: Sequence[int]) -> str:
    return "#" + bytes(colour).hex()


def _draw_legend(axes: Any, legend: Legend, unlabelled: bool) -> None:
    from matplotlib.patches import Patch

    axes.set_axis_off()
    patches = [
        Patch(facecolor=_hex(colour), edgecolor="#888888", linewidth=0.5, label=legible(name))
        for name, colour in zip(legend.names, legend.colours, strict=True)
    ]
    if unlabelled:
        patches.append(Patch(facecolor="white", edgecolor="#888888", linewidth=0.5, label="none"))
    axes.legend(
        handles=patches,
        loc="center left",
        ncols=-(-len(patches) // (_LEGEND_ROWS + 1)),
        frameon=False,
        fontsize=8,
        labelcolor=INK,
        borderaxespad=0.0,
        handlelength=1.2,
        handleheight=1.0,
    )
