"""The no-data value of a cube: declared, scaled, or not declared; and the pixels that hold data."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hytas.data.bands import Bands, finite
from hytas.data.findings import Finding, warning
from hytas.data.record import Rows
from hytas.errors import InputError
from hytas.types import Array, Mask

USUAL = (32767.0, 65535.0)
"""Common no-data values, besides the largest value of a type."""
MARKS = (-9999.0, -32768.0)
"""No-data values that no sensor measures, not even in a single band."""
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


def not_storable(nodata: float | None, dtype: str) -> tuple[Finding, ...]:
    """Return a finding if this type of a raster cannot hold the no-data value of its file."""
    if nodata is None or not np.isfinite(nodata) or np.dtype(dtype).kind not in "iuf":
        return ()
    can_hold = as_stored(nodata, np.dtype(dtype)) is not None
    return () if can_hold else (warning("not-used", case="nodata", value=f"{nodata:g}"),)


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

    def hold_data(values: Array) -> Mask:
        valid = finite(values) if nodata is None else finite(values) & (values != nodata)
        return np.asarray(valid.any(axis=1))

    is_sure = not len(bands) or (nodata is None and cube.dtype.kind != "f")
    return np.ones(cube.shape[:2], np.bool_) if is_sure else _by_rows(cube, bands, hold_data)


def valid_pixels(cube: Array, nodata: float | None = None, bands: Bands | None = None) -> Mask:
    """Return (H, W), False where a band is not finite in float32, or every band is `nodata`.

    Args:
        cube: (H, W, B).
        bands: indices of the bands to check; None means all.
    """
    chosen = np.arange(cube.shape[2]) if bands is None else bands
    valid = valid_mask(cube, nodata, chosen)
    if cube.dtype.kind == "f":
        valid &= _by_rows(cube, chosen, lambda values: np.asarray(finite(values).all(axis=1)))
    return valid


def _by_rows(cube: Array, bands: Sequence[int] | Bands, test: Callable[[Array], Mask]) -> Mask:
    """Return (H, W), the results of a test of the values (W, b) of each row in some bands."""
    whole = len(bands) == cube.shape[2]  # a selection of bands is a copy
    results = np.ones(cube.shape[:2], np.bool_)
    for row, line in enumerate(cube):
        results[row] = test(line if whole else line[:, bands])
    return results


def declared(
    nodata: float | None, factor: float, dtype: str, sampled: Sequence[Array]
) -> tuple[float | None, tuple[Finding, ...]]:
    """Return the no-data value of a cube as its values are stored, and a finding on a guess.

    Some files scale it as their values, or only declare it so.

    Args:
        nodata: as the file declares it.
        factor: of the values.
        sampled: pixels (n, B) of some rows.
    """
    if nodata is None or factor in (0.0, 1.0) or not np.isfinite(nodata):
        return nodata, ()
    fill = {value for pixels in sampled if pixels.size for value in _filled(pixels)[0].tolist()}
    scaled = (nodata, *(round(one, 6) for one in (nodata * factor, nodata / factor)))
    stored = [as_stored(one, np.dtype(dtype)) for one in scaled]
    value = next((one for one in stored if one is not None and one in fill), nodata)
    if value == nodata:
        return nodata, ()
    return value, (warning("nodata-scaled", nodata=nodata, factor=factor, value=value),)


def undeclared(
    cube: Array, measured: Mask, labelled: Mask, bands: Bands, nodata: float | None = None
) -> tuple[Finding, ...]:
    """Return findings on values that look like no data, in most bands of a pixel or in some.

    Args:
        cube: (H, W, B).
        measured: (H, W), pixels that are finite and not known to be empty.
        labelled: (H, W), pixels to compare with.
        bands: indices of the bands to check.
        nodata: the no-data value that is known.
    """
    every = max(1, int(labelled.sum()) * len(bands) // MOST_SAMPLED)
    counts: Counter[float] = Counter()
    sample, pixels = [], 0
    for line, seen, has_label in zip(cube, measured, labelled, strict=True):
        values = line[seen][:, bands]
        if values.size:
            pixels += len(values)
            fill, same = _filled(values)
            counts.update(fill.tolist())
            sample.append(values[has_label[seen] & ~same].ravel()[::every])
    compared = np.concatenate(sample) if sample else np.zeros(0)
    if not compared.size:
        return ()
    ends = np.quantile(compared.astype(np.float64), (0.001, 0.5, 0.999)).tolist()
    dtype: np.dtype[Any] = compared.dtype
    most = np.inf if dtype.kind == "f" else float(np.iinfo(dtype).max)
    odd = [value for value, n in counts.items() if _is_odd(value, n / pixels, ends, most)]
    ordered = sorted(odd, key=lambda value: -counts[value])
    findings = []
    if odd:
        count = sum(counts[value] for value in odd)
        facts: dict[str, Any] = {"values": ordered[:3], "nodata": ordered[0]}
        facts |= {"count": count, "of": pixels, "what": "pixels"}
        findings = [warning("nodata-undeclared", **facts)]
    marks = [mark for mark in MARKS if mark not in (nodata, *odd) and (compared == mark).any()]
    for mark in marks:
        facts = {"count": int((compared == mark).sum()), "of": compared.size, "what": "values"}
        findings.append(warning("nodata-undeclared", **facts, values=[mark], nodata=mark))
    return tuple(findings)


def undeclared_in_rows(cube: Rows, nodata: float | None, bands: Bands) -> tuple[Finding, ...]:
    """Return the findings of `undeclared` for a few rows of a cube (H, W, B) without labels."""
    rows = np.unique(np.linspace(0, cube.shape[0] - 1, MOST_ROWS).astype(int)).tolist()
    sample = np.concatenate([cube[row : row + 1] for row in rows])
    measured = valid_pixels(sample, nodata, bands)
    return undeclared(sample, measured, measured, bands, nodata)


def _is_odd(value: float, share: float, ends: Sequence[float], most: float) -> bool:
    """Return whether the value of most bands of a share of all pixels looks like no data.

    Args:
        ends: of the other pixels: the lowest values, the median and the highest ones.
        most: the largest value of an integer type, or infinity.
    """
    low, median, high = ends
    if value == 0 < median and share >= LEAST_ZEROS:
        return True
    if low <= value <= high:
        return False
    is_far = not 2 * low - high <= value <= 2 * high - low
    return value in (*USUAL, most) or value < 0 <= low or is_far


def _filled(values: Array) -> tuple[Array, Mask]:
    """Return the values that most bands of pixels (N, B) hold, and for which pixels (N,).

    The median of a few bands is such a value, so that not all bands have to be sorted.
    """
    few = np.unique(np.linspace(0, values.shape[1] - 1, 5).astype(int))
    common = np.sort(values[:, few], axis=1)[:, len(few) // 2]
    same = np.asarray((values == common[:, None]).sum(axis=1) * 2 > values.shape[1])
    return common[same], same
