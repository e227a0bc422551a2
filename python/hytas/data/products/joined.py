"""One cube of the cubes of a product's detectors: scaled, and sorted by wavelength."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hytas.data.contents import Array, Variable, Window
from hytas.data.geo import Geo
from hytas.data.limits import bytes_of
from hytas.errors import InputError

Floats = npt.NDArray[np.float64]
NO_DATA = -9999.0
BLOCK_ROWS = 64
"""Rows that are scaled at a time."""


@dataclass(frozen=True)
class Part:
    """The cube of one detector.

    Attributes:
        variable: (H, W, b), as stored.
        wavelengths: (b,) in nm; a band of 0 was not measured, and is left out.
        gain, offset: numbers, or one a band: a value stands for gain x stored + offset.
    """

    variable: Variable
    wavelengths: Floats
    gain: Floats | float = 1.0
    offset: Floats | float = 0.0


def join(
    name: str,
    parts: Sequence[Part],
    geo: Geo | None = None,
    empty: float | None = None,
    nodata: float = NO_DATA,
) -> tuple[Variable, Floats]:
    """Return the cube of all bands as float32 (H, W, B), and its wavelengths (B,), ascending.

    Args:
        name: of the cube.
        parts: of like height and width.
        geo: where it lies.
        empty: the stored value that stands for no data where all bands of a pixel hold it.
        nodata: what stands for no data in the cube that is returned.

    Raises:
        InputError: parts of different sizes, or wavelengths that are not one a band.
    """
    height, width = parts[0].variable.shape[:2]
    for part in parts:
        _check(part, (height, width), parts[0].variable.name)
    kept = [np.flatnonzero(part.wavelengths > 0) for part in parts]
    waves = np.concatenate([p.wavelengths[k] for p, k in zip(parts, kept, strict=True)])
    order = np.argsort(waves, kind="stable")
    place = np.argsort(order)
    ends = np.cumsum([0, *(len(k) for k in kept)])
    places = [place[a:b] for a, b in pairwise(ends)]

    def window(rows: slice, columns: slice) -> Array:
        size = len(range(height)[rows]), len(range(width)[columns])
        result = np.empty((*size, len(waves)), np.float32)
        nothing = np.full(size, empty is not None)
        for part, bands, to in zip(parts, kept, places, strict=True):
            stored = _window(part.variable, rows, columns)[:, :, bands]
            if empty is not None:
                nothing &= (stored == empty).all(axis=2)
            result[:, :, to] = _scaled(part, bands, stored, nodata)
        result[nothing] = nodata
        return result

    shape = (height, width, len(waves))
    cube = Variable(
        name,
        shape,
        "float32",
        "number",
        lambda: _by_rows(window, shape),
        window,
        nodata,
        geo,
        bytes_of(shape, 4),
        sum(part.variable.stored for part in parts),
    )
    return cube, waves[order]


def _by_rows(window: Window, shape: tuple[int, int, int]) -> Array:
    """The whole cube, scaled a few rows at a time."""
    result = np.empty(shape, np.float32)
    for top in range(0, shape[0], BLOCK_ROWS):
        rows = slice(top, min(top + BLOCK_ROWS, shape[0]))
        result[rows] = window(rows, slice(0, shape[1]))
    return result


def _check(part: Part, size: tuple[int, int], first: str) -> None:
    shape = part.variable.shape
    if len(shape) != 3 or part.variable.kind != "number":
        raise InputError(f"{part.variable} is no numeric cube")
    if shape[:2] != size:
        raise InputError(f"{part.variable} and {first} differ in height or width")
    if part.wavelengths.shape != shape[2:]:
        raise InputError(
            f"{part.variable} has {shape[2]} bands and {part.wavelengths.size} wavelengths: one a "
            "band needed"
        )


def _window(variable: Variable, rows: slice, columns: slice) -> Array:
    if variable.window is None:
        return variable.values()[rows, columns]
    variable.check_size()
    return variable.window(rows, columns)


def _scaled(part: Part, bands: npt.NDArray[np.int64], stored: Array, nodata: float) -> Array:
    gain, offset = (
        np.broadcast_to(np.asarray(each, np.float32), part.wavelengths.shape)[bands]
        for each in (part.gain, part.offset)
    )
    values = stored.astype(np.float32) * gain + offset
    mark = part.variable.nodata
    if mark is not None:
        values[np.isnan(stored) if np.isnan(mark) else stored == mark] = nodata
    return np.asarray(values)
