"""Classify a whole scene, tile by tile, in bounded memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hytas.data import Rows, check_patch_size, holds_data, mirror
from hytas.deploy.model import Array, DeployedModel
from hytas.errors import InputError

TILE_BYTES = 24 * 2**20
TILE_PIXELS = 4096
"""Bytes of a tile. It takes seconds, so progress is seen, and a kill loses little."""
BLOCK_ROWS = 256
"""Rows of a finished map at a time."""


Progress = Callable[[int, int], None]
"""Called with the number of finished rows and of all rows."""


@dataclass(frozen=True)
class ClassMap:
    """A classified scene.

    Attributes:
        labels: (H, W) int32, class ids of the label file; 0 for a pixel without data.
        confidence: (H, W) float32, probability of that class; 0 for a pixel without data.
    """

    labels: npt.NDArray[np.int32]
    confidence: npt.NDArray[np.float32]


class MapRows(Protocol):
    """A class map whose rows can be read: a `ClassMap`, or a journal's, which stays on disk."""

    @property
    def labels(self) -> Rows:
        """(H, W) int32."""

    @property
    def confidence(self) -> Rows:
        """(H, W) float32."""


def row_blocks(values: Rows, rows: int = BLOCK_ROWS) -> Iterator[tuple[int, Array]]:
    """Yield the first row and the values (h, W) of each block of `rows` rows."""
    for top in range(0, values.shape[0], rows):
        yield top, values[top : top + rows]


@dataclass(frozen=True)
class Strip:
    """Consecutive rows of a class map, from row `top` on."""

    top: int
    labels: npt.NDArray[np.int32]
    confidence: npt.NDArray[np.float32]


def classify_scene(
    model: DeployedModel,
    cube: Rows,
    *,
    nodata: float | None = None,
    tile_rows: int | None = None,
    progress: Progress | None = None,
) -> ClassMap:
    """Classify every pixel of a cube.

    Args:
        model: of the sensor that recorded the cube.
        cube: (H, W, bands); read tile by tile.
        nodata: the no-data value; None uses the model's, if it has one.
        tile_rows: rows at a time; None uses as many as fit `TILE_BYTES`. The map does not depend
            on it, to the last bit.
        progress: called after each tile.

    Raises:
        InputError: the band count differs, the scene is smaller than a patch, the model's element
            type cannot hold a value, or a tile has no row.
    """
    height, width = cube.shape[:2]
    result = ClassMap(np.zeros((height, width), np.int32), np.zeros((height, width), np.float32))
    for strip in classify_strips(model, cube, nodata=nodata, tile_rows=tile_rows):
        rows = slice(strip.top, strip.top + len(strip.labels))
        result.labels[rows], result.confidence[rows] = strip.labels, strip.confidence
        if progress is not None:
            progress(rows.stop, height)
    return result


def classify_strips(
    model: DeployedModel,
    cube: Rows,
    *,
    nodata: float | None = None,
    tile_rows: int | None = None,
    first_row: int = 0,
) -> Iterator[Strip]:
    """Classify a cube from `first_row` on, one tile of full rows after another.

    Arguments and errors are those of `classify_scene`.
    """
    height, width, bands = cube.shape
    model.check_scene(bands)
    check_patch_size(model.card.patch_size, height, width)
    if tile_rows is not None and tile_rows < 1:
        raise InputError(f"tile rows: {tile_rows} must be 1 or more, or None")
    rows = tile_rows or _tile_rows(width, width * bands * cube.dtype.itemsize)
    for top in range(first_row, height, rows):
        bottom = min(top + rows, height)
        tile = read_tile(cube, top, bottom, model.card.margin)
        yield classify_tile(model, tile, top, nodata)


def _tile_rows(width: int, row_bytes: int) -> int:
    few_margins = max(TILE_PIXELS // width, 8)
    return max(1, min(few_margins, TILE_BYTES // row_bytes))


def read_tile(cube: Rows, top: int, bottom: int, margin: int) -> Array:
    """Return rows `top` to `bottom` with a margin, mirrored beyond the scene's border.

    Returns:
        (bottom - top + 2 margin, W + 2 margin, bands), in the cube's dtype.
    """
    height, width = cube.shape[:2]
    inside = slice(max(0, top - margin), min(height, bottom + margin))
    block = np.asarray(cube[inside])  # one contiguous read for every interleave
    rows = mirror(np.arange(top - margin, bottom + margin), height) - inside.start
    columns = mirror(np.arange(-margin, width + margin), width)
    return block[rows[:, None], columns]


def classify_tile(model: DeployedModel, tile: Array, top: int, nodata: float | None) -> Strip:
    """Classify a tile that `read_tile` read."""
    margin, known = model.card.margin, model.card.nodata
    nodata = known if nodata is None else nodata
    height, width = tile.shape[0] - 2 * margin, tile.shape[1] - 2 * margin
    inner = tile[margin : margin + height, margin : margin + width]
    valid = holds_data(inner, nodata, model.card.kept_bands)
    if not valid.any():
        empty = np.zeros((height, width), np.int32)
        return Strip(top, empty, empty.astype(np.float32))
    labels, confidence = _RUNS[model.card.graph](model, _in_terms(model, tile, top, nodata), valid)
    # A scene graph classifies every pixel; pixels without data are set to 0 afterwards.
    return Strip(top, np.where(valid, labels, 0), np.where(valid, confidence, np.float32(0)))


def _in_terms(model: DeployedModel, tile: Array, top: int, nodata: float | None) -> Array:
    """Return the tile in the model's type, with the model's no-data value."""
    known, origin = model.card.nodata, (top - model.card.margin, -model.card.margin)
    if nodata is None or known == nodata:
        return model.fit_dtype(tile, origin)
    missing = tile == nodata
    if not missing.any():
        return model.fit_dtype(tile, origin)
    tile = model.fit_dtype(np.where(missing, tile.dtype.type(0), tile), origin)
    if known is None:
        return np.where(missing, np.asarray(model.card.empty_values, tile.dtype), tile)
    tile[missing] = known
    return tile


def _run_patches(
    model: DeployedModel, tile: Array, valid: npt.NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Classify the pixels of a tile patch by patch.

    A micro-batch never crosses a row. So the same pixels always share a batch, and the result does
    not depend on the height of the tile.
    """
    ids, side = np.asarray(model.card.class_ids, dtype=np.int32), model.card.patch_size
    labels, confidence = np.zeros(valid.shape, np.int32), np.zeros(valid.shape, np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(tile, (side, side), axis=(0, 1))
    for row, valid_row in enumerate(valid):
        patches = windows[row].transpose(0, 2, 3, 1)  # (W, P, P, bands), still a view
        columns = np.flatnonzero(valid_row)
        for at in range(0, len(columns), model.micro_batch):
            batch = columns[at : at + model.micro_batch]
            probabilities = model.run(patches[batch])
            best = probabilities.argmax(axis=1)
            labels[row, batch] = ids[best]
            confidence[row, batch] = probabilities[np.arange(len(batch)), best]
    return labels, confidence


def _run_tile(
    model: DeployedModel, tile: Array, valid: npt.NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Classify a tile with a scene graph, only rows with data; rows are independent."""
    labels, confidence = np.zeros(valid.shape, np.int32), np.zeros(valid.shape, np.float32)
    edges = np.diff(valid.any(axis=1), prepend=False, append=False)
    for top, bottom in np.flatnonzero(edges).reshape(-1, 2):
        piece = tile[top : bottom + 2 * model.card.margin]
        labels[top:bottom], confidence[top:bottom] = model.run_tile(piece)
    return labels, confidence


_RUNS = {"patch": _run_patches, "scene": _run_tile}
