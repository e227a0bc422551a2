"""Choose the bands of a cube to use."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.findings import refusal
from hytas.errors import InputError
from hytas.types import Array, Floats, Mask

Bands = npt.NDArray[np.int64]
_WAVES = re.compile(r"(\d+\.?\d*)(?: ?nm)? ?- ?(\d+\.?\d*) ?nm", re.IGNORECASE)


def select_bands(
    bands: str | None, bad_bands: Sequence[int], count: int, wavelengths: Floats | None = None
) -> Bands:
    """Return the bands to start from: a selection, or all bands except the bad ones.

    Args:
        bands: a selection that `parse_bands` reads, with its errors; None is no selection.
        bad_bands: indices from 0.

    Returns:
        Indices from 0, ascending.
    """
    if bands is not None:
        return parse_bands(bands, count, wavelengths, bad_bands)
    return np.setdiff1d(np.arange(count), np.asarray(bad_bands, dtype=np.int64))


def wavelength_text(wavelengths: Sequence[float] | Floats | None) -> str | None:
    """Return the first and the last wavelength for people, if there are some."""
    if wavelengths is None or not len(wavelengths):
        return None
    return f"{min(wavelengths):.1f} to {max(wavelengths):.1f} nm"


def finite(values: Array) -> Mask:
    """Return True where `values` are finite in float32, the type of the networks."""
    if values.dtype.kind != "f":
        return np.ones(values.shape, dtype=np.bool_)
    return np.asarray(np.abs(values) <= np.finfo(np.float32).max)


def measured_bands(cube: Array, labelled: Mask, nodata: float | None) -> Bands:
    """Return the bands with a value in at least one labelled pixel; all if there is no such band.

    Args:
        cube: (H, W, B).
        labelled: (H, W).

    Returns:
        Indices from 0, ascending. For a cube of integers these are all bands.
    """
    measured = np.full(cube.shape[2], cube.dtype.kind != "f")
    for row in np.flatnonzero(labelled.any(axis=1)):
        if measured.all():
            break
        pixels = cube[row][labelled[row]]
        values = finite(pixels) if nodata is None else finite(pixels) & (pixels != nodata)
        measured |= values.any(axis=0)
    return np.flatnonzero(measured if measured.any() else ~measured)


def format_bands(bands: Bands) -> str:
    """Return ascending indices as a selection that `parse_bands` reads, such as "1-103,110"."""
    runs = np.split(bands, np.flatnonzero(np.diff(bands) > 1) + 1)
    ends = [(int(run[0]) + 1, int(run[-1]) + 1) for run in runs if run.size]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def parse_bands(
    text: str,
    count: int,
    wavelengths: Floats | None = None,
    bad_bands: Sequence[int] = (),
) -> Bands:
    """Read a selection such as "1-103,110-148" or "400-1340nm,1460-1790nm".

    Numbers of bands count from 1. Ranges have both ends; those of wavelengths leave out bad bands.

    Args:
        wavelengths: (count,) in nm; None if the scene names none.
        bad_bands: indices from 0.

    Returns:
        Indices from 0, ascending.

    Raises:
        InputError: a part is not a number or a range, is outside 1..count, runs backwards, or
            holds no band.
    """
    if not isinstance(text, str):
        raise InputError("bands", text, "must be a text, such as 1-103,110-148 or 400-900nm")
    parts = [each.strip() for each in text.split(",")]
    in_nm = [part for part in parts if part.lower().endswith("nm")]
    waves = np.zeros(0) if wavelengths is None else wavelengths
    ends = wavelength_text(waves)
    facts: dict[str, Any] = {"count": count, "case": "" if ends else "no-wavelengths"}
    facts |= {"waves": ends} if ends else {}
    kept: list[int] = []
    for part in (each for each in parts if each not in in_nm):
        first, dash, last = part.partition("-")
        ends_of_range = first, last if dash else first
        start, stop = (int(one) if one.strip().isdecimal() else 0 for one in ends_of_range)
        if not 1 <= start <= stop <= count:
            raise refusal("bands-unreadable", "bands", text, part=part, **facts)
        kept.extend(range(start - 1, stop))
    for part in in_nm:
        match = _WAVES.fullmatch(part)
        if match is None or float(match[1]) > float(match[2]):
            raise refusal("bands-unreadable", "bands", text, part=part, **facts)
        within = np.flatnonzero((waves >= float(match[1])) & (waves <= float(match[2])))
        if not within.size:
            raise refusal("bands-unreadable", "bands", text, part=part, **facts)
        kept += np.setdiff1d(within, bad_bands).tolist()
    if not kept:
        raise refusal("bands-unreadable", "bands", text, part=text, **facts)
    return np.unique(np.array(kept, np.int64))
