"""Values that stand for no data: those a file declares, and those that look like it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.bands import Bands
from hytas.data.contents import Array

USUAL = (32767.0, 65535.0)
"""Marks for no data that are no odd values by themselves, beside the largest of a type."""
MOST_NAMED = 3
MOST_SAMPLED = 10**6


def as_held(nodata: float | None, dtype: np.dtype[Any]) -> float | None:
    """`nodata` as the type holds it, or None where no value equals it; NaN never counts as data."""
    if nodata is None or not np.isfinite(nodata):
        return None
    if dtype.kind == "f":
        # Files write it with fewer or more digits than the type has.
        with np.errstate(over="ignore"):
            held = float(dtype.type(nodata))
        return held if np.isfinite(held) else None
    limits = np.iinfo(dtype)
    return float(nodata) if limits.min <= nodata <= limits.max and nodata % 1 == 0 else None


def empty_pixels(cube: Array, nodata: float | None, bands: Bands) -> npt.NDArray[np.bool_]:
    """(H, W), True where all of `bands` of a cube (H, W, B) are `nodata`."""
    empty = np.zeros(cube.shape[:2], dtype=np.bool_)
    if nodata is not None and bands.size:
        for row, line in enumerate(cube):
            empty[row] = (line[:, bands] == nodata).all(axis=1)
    return empty


def undeclared(
    cube: Array, measured: npt.NDArray[np.bool_], labelled: npt.NDArray[np.bool_], bands: Bands
) -> tuple[str, ...]:
    """A remark on pixels that hold one value in every band, which looks like no measurement.

    Args:
        cube: (H, W, B).
        measured: (H, W), pixels that are finite and not known to be empty.
        labelled: (H, W).
        bands: indices of those to look at.

    The value lies outside what labelled pixels hold, but for a thousandth at either end; and it is
    a usual mark, negative where they are not, or farther out than their range. Zeros of a border
    are none of that, and do no harm.
    """
    flat: dict[float, int] = {}
    sample = []
    rare = max(1, int(labelled.sum()) * len(bands) // MOST_SAMPLED)
    if not bands.size:
        return ()
    for row, line in enumerate(cube):
        values = line[measured[row]][:, bands]
        same = (values == values[:, :1]).all(axis=1)
        for value, count in zip(*np.unique(values[same, 0], return_counts=True), strict=True):
            flat[float(value)] = flat.get(float(value), 0) + int(count)
        sample.append(values[labelled[row][measured[row]] & ~same][::rare].ravel())
    known = np.concatenate(sample).astype(np.float64) if sample else np.zeros(0)
    if not known.size:
        return ()
    low, high = (float(value) for value in np.quantile(known, (0.001, 0.999)))
    odd = {v: n for v, n in flat.items() if _is_odd(v, low, high, cube.dtype)}
    if not odd:
        return ()
    common = sorted(odd, key=lambda value: -odd[value])
    named = " or ".join(f"{value:.9g}" for value in common[:MOST_NAMED])
    return (
        f"{sum(odd.values())} pixels hold {named} in every band, unlike labelled pixels: if that "
        f"stands for no data, say --nodata {common[0]:.9g}",
    )


def _is_odd(value: float, low: float, high: float, dtype: np.dtype[Any]) -> bool:
    if low <= value <= high:
        return False
    most = () if dtype.kind == "f" else (float(np.iinfo(dtype).max),)
    usual = value in (*USUAL, *most) or value < 0 <= low
    return usual or not low - (high - low) <= value <= high + (high - low)
