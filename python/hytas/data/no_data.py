"""The no-data value of a cube, and the pixels that hold data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hytas.data.bands import Bands, finite
from hytas.data.findings import Finding, warning
from hytas.errors import InputError
from hytas.types import Array, Mask


def as_stored(nodata: float | None, dtype: np.dtype[Any]) -> float | None:
    """Return `nodata` as the type stores it, or None if it cannot occur; NaN is never data."""
    if nodata is None or not np.isfinite(nodata):
        return None
    if dtype.kind == "f":
        # Files write the value with fewer or more digits than the type has.
        with np.errstate(over="ignore"):
            stored = float(dtype.type(nodata))
        return stored if np.isfinite(stored) else None
    limits = np.iinfo(dtype)
    return float(nodata) if limits.min <= nodata <= limits.max and nodata % 1 == 0 else None


def not_storable(nodata: float | None, dtype: str) -> tuple[Finding, ...]:
    """Return a finding if this type of a raster cannot hold the no-data value of its file."""
    if nodata is None or not np.isfinite(nodata) or np.dtype(dtype).kind not in "iuf":
        return ()
    can_hold = as_stored(nodata, np.dtype(dtype)) is not None
    return () if can_hold else (warning("nodata-not-used", value=f"{nodata:g}"),)


def check_nodata(nodata: float, dtype: np.dtype[Any]) -> float:
    """Return the user's no-data value.

    Raises:
        InputError: a cube of this type cannot hold it.
    """
    if not isinstance(nodata, int | float | np.number):
        raise InputError("nodata", nodata, "must be a number")
    if np.isfinite(nodata) and as_stored(nodata, dtype) is None:
        raise InputError("nodata", nodata, f"must be a value of the cube's type, {dtype}")
    return nodata


def valid_mask(cube: Array, nodata: float | None, bands: Sequence[int] | Bands) -> Mask:
    """Return (H, W), False where each of `bands` of a cube (H, W, B) is `nodata` or not finite.

    With an empty list of bands all pixels hold data.
    """
    measured = np.ones(cube.shape[:2], dtype=np.bool_)
    chosen = np.asarray(bands, dtype=np.int64)
    if not chosen.size or (nodata is None and cube.dtype.kind != "f"):
        return measured
    whole = len(chosen) == cube.shape[2]  # a selection of bands is a copy
    for row, line in enumerate(cube):
        values = line if whole else line[:, chosen]
        valid = finite(values)
        if nodata is not None:
            valid &= values != nodata
        measured[row] = valid.any(axis=1)
    return measured
