"""One cube of the cubes of a product's detectors: scaled, and sorted by wavelength."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hytas.data.findings import refusal
from hytas.data.grid import Grid
from hytas.data.record import BandFacts, Key, Variable
from hytas.errors import InputError
from hytas.types import Array, Floats

NO_DATA = -9999.0
ROWS_FIRST, BANDS_FIRST, BANDS_BETWEEN = ("y", "x", "band"), ("band", "y", "x"), ("y", "band", "x")
"""Names of the dimensions of cubes, as missions store them."""


@dataclass(frozen=True)
class JoinedPart:
    """The cube of one detector.

    Attributes:
        variable: as stored, with the dimensions y, x and band in any order.
        wavelengths: (b,) in nm; a band of 0 was not measured, and is left out.
        gain, offset: numbers, or one a band: a value stands for gain x stored + offset.
    """

    variable: Variable
    wavelengths: Floats
    gain: Floats | float = 1.0
    offset: Floats | float = 0.0

    @property
    def axes(self) -> tuple[int, ...]:
        """Return the axes of rows, columns and bands."""
        return tuple(self.variable.dims.index(name) for name in ROWS_FIRST)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return height, width and bands."""
        return tuple(self.variable.shape[axis] for axis in self.axes)

    def window(self, rows: slice, columns: slice) -> Array:
        """Return stored values (h, w, b)."""
        key = [slice(0, size) for size in self.variable.shape]
        row, column, _ = self.axes
        key[row], key[column] = rows, columns
        return self.variable.part(tuple(key)).transpose(self.axes)


def join_parts(
    name: str,
    parts: Sequence[JoinedPart],
    grid: Grid | None = None,
    empty: float | None = None,
    nodata: float = NO_DATA,
) -> tuple[Variable, npt.NDArray[np.int64]]:
    """Return the cube of all bands as float32 (H, W, B), and the order of its bands.

    Args:
        parts: of like height and width.
        empty: the stored value that stands for no data where all bands of a pixel hold it.

    Returns:
        The cube, its bands ascending by wavelength; and for each of them its number among the
        measured bands of all parts.
    """
    for part in parts:
        _check(part, parts[0])
    height, width, _ = parts[0].shape
    kept = [np.flatnonzero(part.wavelengths > 0) for part in parts]
    waves = np.concatenate([p.wavelengths[k] for p, k in zip(parts, kept, strict=True)])
    order = np.argsort(waves, kind="stable")
    place = np.argsort(order)
    ends = np.cumsum([0, *(len(k) for k in kept)])
    places = [place[a:b] for a, b in pairwise(ends)]

    def values(key: Key) -> Array:
        rows, columns, bands = key
        result = np.empty((rows.stop - rows.start, columns.stop - columns.start, len(waves)), "f4")
        nothing = np.full(result.shape[:2], empty is not None)
        for part, measured, to in zip(parts, kept, places, strict=True):
            stored = part.window(rows, columns)[:, :, measured]
            if empty is not None:
                nothing &= (stored == empty).all(axis=2)
            result[:, :, to] = _scaled(part, measured, stored, nodata)
        result[nothing] = nodata
        return result[:, :, bands]

    shape = (height, width, len(waves))
    cube = Variable.of_type(
        name,
        shape,
        np.dtype(np.float32),
        values,
        dims=ROWS_FIRST,
        bands=BandFacts(waves[order]),
        nodata=nodata,
        grid=grid,
    )
    return cube, order


def _check(part: JoinedPart, first: JoinedPart) -> None:
    variable = part.variable
    if len(variable.shape) != 3 or variable.kind != "number":
        raise InputError(rule=f"{variable} is no numeric cube")
    if part.shape[:2] != first.shape[:2]:
        raise InputError(rule=f"{variable} and {first.variable.name} differ in height or width")
    if part.wavelengths.shape != part.shape[2:]:
        counts = {"own": f"{variable}", "size": part.wavelengths.size}
        raise refusal("sizes-differ", "", case="list", **counts)


def _scaled(part: JoinedPart, bands: npt.NDArray[np.int64], stored: Array, nodata: float) -> Array:
    gain, offset = (
        np.broadcast_to(np.asarray(each, np.float32), part.wavelengths.shape)[bands]
        for each in (part.gain, part.offset)
    )
    values = stored.astype(np.float32) * gain + offset
    own = part.variable.nodata
    if own is not None:
        values[np.isnan(stored) if np.isnan(own) else stored == own] = nodata
    return np.asarray(values)
