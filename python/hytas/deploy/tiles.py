"""Classify a tile: rows of a scene, with a margin around them."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hytas.data import Rows, valid_mask
from hytas.data.patches import mirror
from hytas.deploy.model import DeployedModel
from hytas.deploy.unknown import IsUnknown
from hytas.types import Array, Mask

_Labels = npt.NDArray[np.int32]
Confidence = npt.NDArray[np.float32]
TOGETHER = 8
"""Micro-batches of a row that a thread classifies before it takes the next ones."""


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


def classify_tile(
    model: DeployedModel,
    tile: Array,
    top: int,
    nodata: float | None,
    is_unknown: IsUnknown | None = None,
) -> tuple[_Labels, Confidence]:
    """Return class ids and confidence (H, W) of a tile; 0 without data, or of unknown ground.

    Args:
        top: its first row in the scene, without the margin.
        nodata: the no-data value; None uses the model's.
    """
    if is_unknown is not None or model.card.graph == "patch":
        return most_probable(model, tile_probabilities(model, tile, top, nodata, is_unknown)[0])
    valid = _valid(model, tile, nodata)
    if not valid.any():
        empty = np.zeros(valid.shape, np.int32)
        return empty, empty.astype(np.float32)
    tile = _in_terms(model, tile, top, nodata)
    if model.card.graph == "smooth-scene":
        labels, confidence = model.run_tile_smoothed(tile, valid)
    else:
        labels, confidence = _run_tile(model, tile, valid)
    # A scene graph classifies every pixel; pixels without data are set to 0 afterwards.
    return np.where(valid, labels, 0), np.where(valid, confidence, np.float32(0))


def most_probable(model: DeployedModel, probabilities: Array) -> tuple[_Labels, Confidence]:
    """Return the class ids and their probabilities (H, W); 0 where all are 0."""
    ids, confidence = np.asarray(model.card.class_ids, np.int32), probabilities.max(axis=2)
    labels = np.where(confidence == 0, np.int32(0), ids[probabilities.argmax(axis=2)])
    return labels, confidence


def tile_probabilities(
    model: DeployedModel,
    tile: Array,
    top: int,
    nodata: float | None,
    is_unknown: IsUnknown | None = None,
) -> tuple[npt.NDArray[np.float32], Mask, Array]:
    """Return probabilities (H, W, C) of a tile, its valid mask, and the tile in the model's terms.

    Pixels of unknown ground count as pixels without data. Arguments are those of `classify_tile`.
    """
    valid = _valid(model, tile, nodata)
    probabilities = np.zeros((*valid.shape, len(model.card.class_ids)), np.float32)
    if valid.any():
        tile = _in_terms(model, tile, top, nodata)
        PROBABILITIES[model.card.graph](model, tile, valid, probabilities)
    if is_unknown is not None:
        valid[valid] = ~is_unknown(probabilities[valid])
        probabilities[~valid] = 0
    return probabilities, valid, tile


def _valid(model: DeployedModel, tile: Array, nodata: float | None) -> Mask:
    """Return the valid mask (H, W) of a tile without its margin."""
    margin, model_nodata = model.card.margin, model.card.nodata
    inner = tile[margin : tile.shape[0] - margin, margin : tile.shape[1] - margin]
    return valid_mask(inner, model_nodata if nodata is None else nodata, model.card.kept_bands)


def _in_terms(model: DeployedModel, tile: Array, top: int, nodata: float | None) -> Array:
    """Return the tile in the model's type, with the model's no-data value."""
    model_nodata, origin = model.card.nodata, (top - model.card.margin, -model.card.margin)
    if nodata is None or model_nodata == nodata:
        return model.fit_dtype(tile, origin)
    missing = tile == nodata
    if not missing.any():
        return model.fit_dtype(tile, origin)
    tile = model.fit_dtype(np.where(missing, tile.dtype.type(0), tile), origin)
    if model_nodata is None:
        return np.where(missing, np.asarray(model.card.empty_values, tile.dtype), tile)
    tile[missing] = model_nodata
    return tile


def _patch_probabilities(model: DeployedModel, tile: Array, valid: Mask, into: Array) -> None:
    for row, batch, probabilities in _batches(model, tile, valid):
        into[row, batch] = probabilities


def _batches(model: DeployedModel, tile: Array, valid: Mask) -> Iterator[tuple[int, Array, Array]]:
    """Yield row, columns (n,) and probabilities (n, C) of each micro-batch.

    A micro-batch never crosses a row. So the same pixels always share a batch, and the result does
    not depend on the height of the tile.
    """
    side, step = model.card.patch_size, model.micro_batch
    windows = np.lib.stride_tricks.sliding_window_view(tile, (side, side), axis=(0, 1))

    def classify(part: tuple[int, Array]) -> list[tuple[int, Array, Array]]:
        row, columns = part
        patches = windows[row].transpose(0, 2, 3, 1)  # (W, P, P, bands), still a view
        batches = [columns[at : at + step] for at in range(0, len(columns), step)]
        return [(row, batch, model.run(patches[batch])) for batch in batches]

    each = step * TOGETHER
    parts = (
        (row, columns[at : at + each])
        for row, columns in enumerate(map(np.flatnonzero, valid))
        for at in range(0, len(columns), each)
    )
    for batch_results in model.in_parallel(classify, parts):
        yield from batch_results


def _run_tile(model: DeployedModel, tile: Array, valid: Mask) -> tuple[Array, Array]:
    """Classify a tile with a scene graph, only rows with data; rows are independent."""
    labels, confidence = np.zeros(valid.shape, np.int32), np.zeros(valid.shape, np.float32)
    for top, bottom in _filled_runs(valid):
        piece = tile[top : bottom + 2 * model.card.margin]
        labels[top:bottom], confidence[top:bottom] = model.run_tile(piece)
    return labels, confidence


def _tile_probabilities(model: DeployedModel, tile: Array, valid: Mask, into: Array) -> None:
    for top, bottom in _filled_runs(valid):
        piece = tile[top : bottom + 2 * model.card.margin]
        into[top:bottom] = model.run_tile_outputs(piece)


def _filled_runs(valid: Mask) -> Array:
    """(n, 2), the first row and the one behind the last of each run of rows that hold data."""
    edges = np.diff(valid.any(axis=1), prepend=False, append=False)
    return np.flatnonzero(edges).reshape(-1, 2)


PROBABILITIES = {"patch": _patch_probabilities, "scene": _tile_probabilities}
"""Kind of graph -> the function that writes the probabilities of a tile."""
