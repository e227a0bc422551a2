"""No-data values: the one that a file declares, and values that look like one."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hytas.data.bands import Bands, finite
from hytas.data.record import Rows
from hytas.errors import InputError
from hytas.types import Array, Mask

USUAL = (32767.0, 65535.0)
"""Common no-data values, besides the largest value of a type."""
MARKS = (-9999.0, -32768.0)
"""No-data values that no sensor measures, not even in a single band."""
MOST_NAMED = 3
MOST_SAMPLED = 10**6
MOST_ROWS = 16
LEAST_ZEROS = 0.001
"""Share of pixels of zeros from which they may be no data; fewer may be dark."""


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


def not_storable(nodata: float | None, dtype: str) -> tuple[str, ...]:
    """Return a note if this type of a raster cannot hold the no-data value of its file."""
    if nodata is None or not np.isfinite(nodata) or np.dtype(dtype).kind not in "iuf":
        return ()
    if as_stored(nodata, np.dtype(dtype)) is not None:
        return ()
    return (f"its no-data value {nodata:g} is not used: {dtype} cannot hold it",)


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


def undeclared(
    cube: Array, measured: Mask, labelled: Mask, bands: Bands, nodata: float | None = None
) -> tuple[str, ...]:
    """Return notes on values that look like a no-data value, in most bands of a pixel or in some.

    In most bands, the value must lie outside the range of the labelled pixels, without their lowest
    and highest thousandth. In addition it must be a usual no-data value, be negative while labelled
    pixels are not, or be farther away than the width of that range. Zeros give a note if they are
    not few, and most values of labelled pixels are above 0: a map shows them as a class. In some
    bands the value must be one of `MARKS`.

    Args:
        cube: (H, W, B).
        measured: (H, W), pixels that are finite and not known to be empty.
        labelled: (H, W).
        bands: indices of the bands to check.
        nodata: the no-data value that is known.
    """
    every = max(1, int(labelled.sum()) * len(bands) // MOST_SAMPLED)
    lines = (
        (line[seen][:, bands], has_label[seen])
        for line, seen, has_label in zip(cube, measured, labelled, strict=True)
    )
    return _remark(lines, every, "pixels", "labelled pixels", "labelled pixels", nodata)


def undeclared_in_rows(
    cube: Rows, nodata: float | None, bands: Bands, seen: str = "pixels"
) -> tuple[str, ...]:
    """Return the note of `undeclared` for a cube without labels, compared with its other pixels.

    Args:
        cube: (H, W, B); a few rows are read, with the first and the last.
        bands: indices of the bands to check.
        seen: what the pixels are called in the note.
    """
    height, width = cube.shape[:2]
    rows = np.unique(np.linspace(0, height - 1, MOST_ROWS).astype(int))
    every = max(1, len(rows) * width * len(bands) // MOST_SAMPLED)

    def lines() -> Iterator[tuple[Array, Mask]]:
        for row in rows:
            values = cube[row : row + 1][0][:, bands]
            values = values[finite(values).all(axis=1)]
            values = values if nodata is None else values[(values != nodata).any(axis=1)]
            yield values, np.ones(len(values), np.bool_)

    seen = f"{seen} in {len(rows)} of {height} rows" if len(rows) < height else seen
    return _remark(lines(), every, seen, "the others", seen, nodata)


def _remark(
    lines: Iterable[tuple[Array, Mask]],
    every: int,
    seen: str,
    others: str,
    sampled: str,
    nodata: float | None,
) -> tuple[str, ...]:
    """Return notes on odd values in most bands, or in some, of the pixels (N, B) of `lines`.

    The masks (N,) select the pixels to compare with; every `every`-th value of these is used.
    """
    filled: dict[float, int] = {}
    sample, pixels = [], 0
    for values, has_label in lines:
        if not values.size:
            continue
        pixels += len(values)
        fill = _fill_of(values)
        same = (values == fill[:, None]).sum(axis=1) * 2 > values.shape[1]
        for value, count in zip(*np.unique(fill[same], return_counts=True), strict=True):
            filled[float(value)] = filled.get(float(value), 0) + int(count)
        sample.append(values[has_label & ~same].ravel()[::every])
    compared = np.concatenate(sample) if sample else np.zeros(0)
    if not compared.size:
        return ()
    low, high = (float(q) for q in np.quantile(compared.astype(np.float64), (0.001, 0.999)))
    odd = {v: n for v, n in filled.items() if _is_odd(v, low, high, compared.dtype)}
    if filled.get(0.0, 0) >= LEAST_ZEROS * pixels and np.median(compared) > 0:
        odd[0.0] = filled[0.0]
    marks = [mark for mark in MARKS if mark not in (nodata, *odd) and (compared == mark).any()]
    in_some = tuple(
        f"{100 * (compared == mark).mean():.3g}% of the values of {sampled} are {mark:g}: if that "
        f"is a no-data value, set nodata to {mark:g}"
        for mark in marks
    )
    if not odd:
        return in_some
    common = sorted(odd, key=lambda value: -odd[value])
    named = " or ".join(f"{value:.9g}" for value in common[:MOST_NAMED])
    return (
        f"{sum(odd.values())} {seen} hold {named} in most bands, unlike {others}: if that "
        f"is a no-data value, set nodata to {common[0]:.9g}",
        *in_some,
    )


def _fill_of(values: Array) -> Array:
    """Return (N,), the value that most bands of a pixel (N, B) hold, if there is one.

    It is the median of a few bands, so that not all bands have to be sorted.
    """
    few = np.unique(np.linspace(0, values.shape[1] - 1, 5).astype(int))
    return np.asarray(np.sort(values[:, few], axis=1)[:, len(few) // 2])


def _is_odd(value: float, low: float, high: float, dtype: np.dtype[Any]) -> bool:
    if low <= value <= high:
        return False
    most = () if dtype.kind == "f" else (float(np.iinfo(dtype).max),)
    usual = value in (*USUAL, *most) or value < 0 <= low
    return usual or not low - (high - low) <= value <= high + (high - low)
