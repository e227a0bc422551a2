"""Values that stand for no data: those a file declares, and those that look like it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.bands import Bands
from hytas.data.contents import Array

MOST_NAMED = 3


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
    if nodata is not None:
        for row, line in enumerate(cube):
            empty[row] = (line[:, bands] == nodata).all(axis=1)
    return empty


def undeclared(
    cube: Array, measured: npt.NDArray[np.bool_], labelled: npt.NDArray[np.bool_], bands: Bands
) -> tuple[str, ...]:
    """A remark on pixels that hold one value in every band, far from what labelled ones hold.

    Args:
        cube: (H, W, B).
        measured: (H, W), pixels that are finite and not known to be empty.
        labelled: (H, W).
        bands: indices of those to look at.

    Far is more than the range of the labelled spectra beyond it: zeros of a border hardly ever are,
    and do no harm; -9999 or 1e20 are.
    """
    flat: dict[float, int] = {}
    low, high = np.inf, -np.inf
    for row, line in enumerate(cube):
        values = line[measured[row]][:, bands]
        if not values.size:
            continue
        least, most = values.min(axis=1).astype(np.float64), values.max(axis=1).astype(np.float64)
        same = least == most
        for value, count in zip(*np.unique(least[same], return_counts=True), strict=True):
            flat[float(value)] = flat.get(float(value), 0) + int(count)
        spectra = labelled[row][measured[row]] & ~same
        low = min(low, least[spectra].min(initial=np.inf))
        high = max(high, most[spectra].max(initial=-np.inf))
    far = {v: n for v, n in flat.items() if v < low - (high - low) or v > high + (high - low)}
    if not far or low > high:
        return ()
    common = sorted(far, key=lambda value: -far[value])
    named = " or ".join(f"{value:.9g}" for value in common[:MOST_NAMED])
    return (
        f"{sum(far.values())} pixels hold {named} in every band, far from what labelled pixels "
        f"hold: if that stands for no data, say --nodata {common[0]:.9g}",
    )
