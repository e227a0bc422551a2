"""Classify a whole scene, tile by tile, in bounded memory."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import Preprocessing, Rows
from hytas.data.data_array import cube_of, is_data_array
from hytas.data.mapped import OwnScaling
from hytas.data.patches import check_patch_size
from hytas.data.scene import refuse_mask
from hytas.deploy.card import unknown_of
from hytas.deploy.model import DeployedModel
from hytas.deploy.smoothing import SMOOTHINGS, LineState, Smoothing, guided_rows
from hytas.deploy.tiles import (
    PROBABILITIES,
    classify_tile,
    most_probable,
    read_tile,
    tile_probabilities,
)
from hytas.deploy.unknown import IsUnknown, check_share
from hytas.deploy.value_range import range_doubt, wavelength_doubt
from hytas.errors import InputError
from hytas.types import Array, Progress

TILE_BYTES = 24 * 2**20
"""Bytes of a tile. It takes seconds, so progress is seen, and a kill loses little."""
TILE_PIXELS = 4096
BLOCK_ROWS = 256
"""Rows of a finished map at a time."""
PROBABILITY_ROWS = 16
"""Rows whose probabilities are computed at a time."""


@dataclass(frozen=True)
class ClassMap:
    """A classified scene.

    Attributes:
        labels: (H, W) int32, class ids of the label file; 0 for a pixel without data, or of
            unknown ground.
        confidence: (H, W) float32, probability of that class; 0 where the label is.

    Both are arrays, `xarray.DataArray`s if the cube was one, or rows of a journal.
    """

    labels: Any
    confidence: Any


def row_blocks(values: Rows) -> Iterator[tuple[int, Array]]:
    """Yield the first row and the values (h, W) of each block of `BLOCK_ROWS` rows."""
    for top in range(0, values.shape[0], BLOCK_ROWS):
        yield top, values[top : top + BLOCK_ROWS]


@dataclass(frozen=True)
class Strip:
    """Consecutive rows of a class map, from row `top` on."""

    top: int
    labels: npt.NDArray[np.int32]
    confidence: npt.NDArray[np.float32]


def classify_scene(
    model: DeployedModel,
    cube: Any,
    *,
    nodata: float | None = None,
    wavelengths: npt.NDArray[np.float64] | None = None,
    strict: bool = False,
    progress: Progress | None = None,
    **how: Any,
) -> ClassMap:
    """Classify every pixel of a cube.

    Warns if the values are far from those that the model was trained on.

    Args:
        model: of the sensor that recorded the cube.
        cube: (H, W, bands), an array or what gives rows of one, read tile by tile; or an
            `xarray.DataArray` with the dimensions y, x and band in any order. Of that, no-data
            value and wavelengths are taken, too, and the map has `DataArray`s on its pixels.
        nodata: the no-data value; None uses the model's, if it has one.
        wavelengths: (bands) band centres of the cube in nm, to compare with the model's.
        strict: refuse such values, and a cube without wavelengths if the model has them.
        progress: called after each tile with the rows done and all rows.
        how: `tile_rows`, `smooth` and `unknown` of `classify_strips`.

    Raises:
        InputError: the band count or the wavelengths differ, the scene is smaller than a patch, the
            model's element type cannot hold a value, a tile has no row, the model cannot be
            smoothed so, or has no score for unknown ground; and as `strict` says.
    """
    given = cube_of(cube) if is_data_array(cube) else None
    if given is not None:
        cube = given
        nodata = given.nodata if nodata is None else nodata
        wavelengths = given.wavelengths if wavelengths is None else wavelengths
    refuse_mask("cube", cube)
    if len(getattr(cube, "shape", ())) != 3:
        hint = "hytas.data.open_cube opens a file"
        raise InputError("cube", type(cube).__name__, "must be an array (H, W, bands)", hint)
    model.check_scene(cube.shape[2], wavelengths, size=cube.shape[:2])
    doubt = range_doubt(model, cube, nodata)
    if strict and (refused := wavelength_doubt(model, wavelengths) or doubt):
        raise InputError("cube", rule=f"it has {refused}")
    if doubt:
        warnings.warn(f"the cube has {doubt}", stacklevel=2)
    whole = classify_whole(model, cube, nodata=nodata, progress=progress, **how)
    if given is None:
        return whole
    return _on_pixels(given, whole, model)


def _on_pixels(cube: Any, whole: ClassMap, model: DeployedModel) -> ClassMap:
    """Return a map as `DataArray`s on the pixels of a cube, with the classes as CF wants them."""
    meanings = " ".join("_".join(name.split()) for name in model.card.class_names)
    facts = {"flag_values": list(model.card.class_ids), "flag_meanings": meanings}
    labels = cube.of_pixels(whole.labels, "classes", {"_FillValue": 0, **facts})
    confidence = cube.of_pixels(whole.confidence, "confidence", {"_FillValue": 0.0})
    return ClassMap(labels, confidence)


def classify_whole(
    model: DeployedModel,
    cube: Rows,
    *,
    progress: Progress | None = None,
    **how: Any,
) -> ClassMap:
    """Classify every pixel of a cube, without a look at its value range.

    Args:
        progress: as for `classify_scene`.
        how: arguments of `classify_strips`.
    """
    height, width = cube.shape[:2]
    result = ClassMap(np.zeros((height, width), np.int32), np.zeros((height, width), np.float32))
    for strip in classify_strips(model, cube, **how):
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
    smooth: str | None = None,
    unknown: float | None = None,
    first_row: int = 0,
    scaled: bool = False,
) -> Iterator[Strip]:
    """Classify a cube from `first_row` on, one tile of full rows after another.

    Smoothing reads 2 r rows around a strip, so reading begins 2 r rows before
    `first_row`. Arguments that are not listed, and errors, are those of `classify_scene`.

    Args:
        tile_rows: rows at a time; None uses as many as fit `TILE_BYTES`. The map does not depend
            on it, to the last bit.
        smooth: "guided" or "none"; None follows the model's card.
        unknown: the share of held-out pixels, 0.001 to 0.5, whose score is higher than that of all
            pixels with a class: the others are of no class of the model and get class 0. None
            gives every pixel with data a class.
        scaled: whether the cube was scaled by itself already, where the model needs that.
    """
    height, width, bands = cube.shape
    smoothing, is_unknown = chosen_smoothing(model, smooth), unknown_ground(model, unknown)
    model.check_scene(bands)
    check_patch_size(model.card.patch_size, height, width)
    if model.card.scale_by == "scene" and not scaled:
        model_nodata = model.card.nodata if nodata is None else nodata
        cube, nodata = OwnScaling.fit(cube, model_nodata).of(cube), None
    if tile_rows is not None and tile_rows < 1:
        raise InputError("tile_rows", tile_rows, "must be 1 or more, or None")
    rows = tile_rows or _tile_rows(width, width * bands * cube.dtype.itemsize)
    if smoothing is not None and model.card.graph != "smooth-scene":
        smoothed = smoothed_rows(model, smoothing, cube, nodata, rows, first_row, is_unknown)
        for top in range(first_row, height, rows):
            yield Strip(top, *most_probable(model, np.stack(list(islice(smoothed, rows)))))
        return
    around = 0 if smoothing is None else 2 * smoothing.radius
    for top in range(first_row, height, rows):
        bottom = min(top + rows, height)
        above = max(0, top - around)
        tile = read_tile(cube, above, min(bottom + around, height), model.card.margin)
        labels, confidence = classify_tile(model, tile, above, nodata, is_unknown)
        inner = slice(top - above, bottom - above)
        yield Strip(top, labels[inner], confidence[inner])


def chosen_smoothing(model: DeployedModel, smooth: str | None) -> Smoothing | None:
    """Return how a model's maps are smoothed; None for not at all.

    Args:
        model: whose card decides if `smooth` is None.
        smooth: "guided", "none", or None for the method of the card.
    """
    if smooth is not None and smooth not in SMOOTHINGS:
        raise InputError("smooth", smooth, f"must be one of {', '.join(SMOOTHINGS)}")
    own = model.smoothing
    if model.card.graph == "smooth-scene":
        if smooth == "none":
            rule = f"{model.path} smooths inside its graph"
            hint = "take another file of the model, such as model.onnx"
            raise InputError("smooth", smooth, rule, hint)
        return own
    method = smooth or ("none" if own is None else own.method)
    if method == "guided" and own is None:
        rule = f"{model.path} holds no guide to smooth by; only none is possible"
        raise InputError("smooth", smooth, rule)
    return own if method == "guided" else None


def unknown_ground(model: DeployedModel, share: float | None) -> IsUnknown | None:
    """Return the function from probabilities (n, C) to which pixels (n,) are of no class.

    Args:
        share: of held-out pixels that would be unknown, too; None for no such function.
    """
    if share is None:
        return None
    score, limit = unknown_of(model.card), check_share(share)
    if score is None or model.card.graph not in PROBABILITIES:
        raise InputError("unknown", share, f"{model.path} holds no score for unknown ground")
    limit = score.threshold(limit)
    return lambda probabilities: score.scores(probabilities) > limit


def _tile_rows(width: int, row_bytes: int) -> int:
    few_margins = max(TILE_PIXELS // width, 8)
    return max(1, min(few_margins, TILE_BYTES // row_bytes))


def smoothed_rows(
    model: DeployedModel,
    smoothing: Smoothing,
    cube: Rows,
    nodata: float | None,
    rows: int,
    first_row: int = 0,
    is_unknown: IsUnknown | None = None,
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield smoothed probabilities (W, C) of each row from `first_row` on; 0 without data.

    Pixels of unknown ground are left out of the filter as those without data are. Arguments are
    those of `classify_scene`; `rows` are classified at a time.
    """
    height, start = cube.shape[0], max(0, first_row - 2 * smoothing.radius)
    margin, scaling = model.card.margin, Preprocessing.from_dict(model.card.preprocessing)

    def given() -> Iterator[LineState]:
        for top in range(start, height, rows):
            tile = read_tile(cube, top, min(top + rows, height), margin)
            chances, valid, tile = tile_probabilities(model, tile, top, nodata, is_unknown)
            for row, valid_row in enumerate(valid):
                pixels = tile[margin + row, margin : margin + len(valid_row)]
                # Always whole rows: products of another shape may differ in their last bit.
                yield LineState(chances[row], smoothing.guide(scaling.apply(pixels)), valid_row)

    smoothed = guided_rows(given(), smoothing.radius, smoothing.eps, smoothing.temperature)
    return islice(smoothed, first_row - start, None)


def probability_rows(
    model: DeployedModel,
    cube: Rows,
    *,
    nodata: float | None = None,
    smooth: str | None = None,
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield probabilities (W, C) of each row, smoothed if the card says so; 0 without data.

    Arguments are those of `classify_scene`.
    """
    rows = PROBABILITY_ROWS
    smoothing = chosen_smoothing(model, smooth)
    if smoothing is not None:
        yield from smoothed_rows(model, smoothing, cube, nodata, rows)
        return
    height = cube.shape[0]
    for top in range(0, height, rows):
        tile = read_tile(cube, top, min(top + rows, height), model.card.margin)
        yield from tile_probabilities(model, tile, top, nodata)[0]
