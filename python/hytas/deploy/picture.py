"""The classified scene beside the ground truth, with a legend."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import Rows
from hytas.deploy.lettering import legible, lettering
from hytas.files import atomic_write
from hytas.model_card import ModelCard

_PANEL_INCHES = 4.6
_LEGEND_ROWS = 18
_LARGEST_SIDE = 1400
_INK, _NO_DATA = "#222222", (255, 255, 255)


def colour_map(labels: npt.NDArray[np.int32], card: ModelCard) -> npt.NDArray[np.uint8]:
    """Class ids (H, W) as colours (H, W, 3); ids that the model does not know are white, like 0."""
    order = np.argsort(card.class_ids)
    ids, colours = np.asarray(card.class_ids)[order], np.asarray(card.palette, np.uint8)[order]
    slot = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
    known = ids[slot] == labels
    return np.where(known[..., None], colours[slot], np.array(_NO_DATA, np.uint8))


def draw_map(
    path: str | Path,
    labels: Rows,
    card: ModelCard,
    *,
    truth: npt.NDArray[np.int32] | None = None,
    title: str = "",
) -> Path:
    """Draw a class map, beside the ground truth if there is one, with the classes' names.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        labels: (H, W) class ids; 0 where there is no data.
        card: of the model: names, ids, colours.
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
    with lettering(card.class_names), atomic_write(path) as temporary:
        figure = _figure(maps, labels.shape[0], labels.shape[1], card)
        figure.savefig(temporary, dpi=150, bbox_inches="tight", pad_inches=0.1)
    return Path(path)


def _figure(
    maps: Sequence[tuple[str, npt.NDArray[np.int32]]], height: int, width: int, card: ModelCard
) -> Any:
    """The maps, of a scene of that size, and the legend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    upright = height >= width
    panel = _panel_size(height, width)
    legend_columns = -(-len(card.class_ids) // _LEGEND_ROWS)
    # Tall scenes stand side by side, wide ones lie above one another.
    rows, columns = (1, len(maps)) if upright or len(maps) == 1 else (len(maps), 1)
    legend = _legend_width(card) * legend_columns
    size = (columns * panel[0] + legend + 0.3, max(rows * (panel[1] + 0.35), 1.6))
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[panel[0]] * columns + [legend])
    for index, (name, values) in enumerate(maps):
        _draw_panel(figure.add_subplot(grid[index // columns, index % columns]), name, values, card)
    _draw_legend(figure.add_subplot(grid[:, columns]), card, [values for _, values in maps])
    return figure


def _panel_size(height: int, width: int) -> tuple[float, float]:
    """Inches for one map: its longer side is fixed, its shorter one follows, within reason."""
    longer = max(height, width)
    return (
        max(_PANEL_INCHES * width / longer, 1.2),
        max(_PANEL_INCHES * height / longer, 1.2),
    )


def _legend_width(card: ModelCard) -> float:
    return 0.55 + 0.075 * max(len(name) for name in card.class_names)


def _draw_panel(axes: Any, name: str, values: npt.NDArray[np.int32], card: ModelCard) -> None:
    axes.imshow(colour_map(values, card), interpolation="nearest")
    axes.set_title(name, fontsize=10, color=_INK)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#bbbbbb")


def _hex(colour: Sequence[int]) -> str:
    return "#" + bytes(colour).hex()


def _draw_legend(axes: Any, card: ModelCard, maps: Sequence[npt.NDArray[np.int32]]) -> None:
    from matplotlib.patches import Patch

    axes.set_axis_off()
    patches = [
        Patch(facecolor=_hex(colour), edgecolor="#888888", linewidth=0.5, label=legible(name))
        for name, colour in zip(card.class_names, card.palette, strict=True)
    ]
    if any((values == 0).any() for values in maps):
        patches.append(Patch(facecolor="white", edgecolor="#888888", linewidth=0.5, label="none"))
    axes.legend(
        handles=patches,
        loc="center left",
        ncols=-(-len(patches) // (_LEGEND_ROWS + 1)),
        frameon=False,
        fontsize=8,
        labelcolor=_INK,
        borderaxespad=0.0,
        handlelength=1.2,
        handleheight=1.0,
    )
