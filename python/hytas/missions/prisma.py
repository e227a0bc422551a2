"""PRISMA L1, L2B, L2C and L2D (HDF-EOS5): the cubes of two detectors, made one.

Layout: PRISMA Products Specification Document, issue 2.3 (ASI). Cubes are (line, band, sample),
uint16. Bands run from long to short waves; one that was not downlinked has the centre 0.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.grid import Grid
from hytas.data.location import Location
from hytas.data.record import Contents, numbers_of
from hytas.errors import InputError
from hytas.missions.joined import BANDS_BETWEEN, JoinedPart, join_parts

_CUBE = re.compile(r"(HDFEOS/SWATHS/PRS_(L1|L2B|L2C|L2D)_HCO/)Data Fields/(VNIR|SWIR)_Cube")
_LARGEST = 65535
_PIXEL = 30.0


def matches(contents: Contents) -> bool:
    """Tell a product by the names of its cubes."""
    return any(_CUBE.fullmatch(variable.name) for variable in contents.variables)


def refine(contents: Contents) -> Contents:
    """Return one cube of all bands, ascending, as radiance (L1) or reflectance (L2)."""
    attributes = contents.attributes
    matches = [m for m in (_CUBE.fullmatch(v.name) for v in contents.variables) if m is not None]
    swath, level = matches[0][1], matches[0][2]
    parts = []
    for match in sorted(matches, key=lambda match: match[3], reverse=True):
        detector = match[3].capitalize()
        gain, offset = _scale(attributes, level, detector)
        cube = replace(contents.get(match[0], "data"), dims=BANDS_BETWEEN)
        parts.append(JoinedPart(cube, _waves(attributes, detector), gain, offset))
    # Pixels without a measurement hold 0 in all bands.
    cube, _ = join_parts("VNIR_Cube+SWIR_Cube", parts, empty=0.0)
    size = cube.shape[:2]
    grid = _grid(attributes, size) if level == "L2D" else None
    if grid is None:
        fields = f"{swath}Geolocation Fields/"
        names = f"{fields}Latitude_VNIR", f"{fields}Longitude_VNIR"  # L1 has some of SWIR, too
        if (location := Location.of(contents, *names, size)) is not None:
            grid = Grid(None, None, size[0], size[1], location)
    name = f"PRISMA {level} ({contents.format})"
    cube = replace(cube, grid=grid)
    return replace(contents, format=name, variables=(cube,), further=contents.variables)


def _number(attributes: Mapping[str, Any], name: str) -> float:
    value = numbers_of(attributes, name, 1)
    if value is None or not np.isfinite(value[0]):
        raise InputError(rule=f"a PRISMA product needs the attribute {name}, a number")
    return float(value[0])


def _scale(attributes: Mapping[str, Any], level: str, detector: str) -> tuple[float, float]:
    if level == "L1":
        factor = _number(attributes, f"ScaleFactor_{detector}")
        return 1.0 / factor, -_number(attributes, f"Offset_{detector}")
    low, high = (_number(attributes, f"L2Scale{detector}{end}") for end in ("Min", "Max"))
    if not low < high:
        rule = f"L2Scale{detector}Min is {low:g}, must be below the maximum, {high:g}"
        raise InputError(rule=rule)
    return (high - low) / _LARGEST, low


def _waves(attributes: Mapping[str, Any], detector: str) -> Any:
    name = f"List_Cw_{detector}"
    values = np.ravel(attributes.get(name, ()))
    if not values.size or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        rule = f"a PRISMA product needs the attribute {name}, a wavelength for each band"
        raise InputError(rule=rule)
    flags = np.ravel(attributes.get(f"{name}_Flags", np.ones(values.size)))
    measured = flags != 0 if flags.size == values.size else True
    return np.where(measured, values, 0).astype(np.float64)


def _grid(attributes: Mapping[str, Any], size: tuple[int, ...]) -> Grid | None:
    """Return the grid of the corners, which are centres of pixels; None where they do not fit."""
    try:
        left, top, right, bottom = (
            _number(attributes, f"Product_{corner}")
            for corner in (
                "ULcorner_easting",
                "ULcorner_northing",
                "LRcorner_easting",
                "LRcorner_northing",
            )
        )
        crs = f"EPSG:{int(_number(attributes, 'Epsg_Code'))}"
    except InputError:
        return None
    height, width = size
    for less in (1, 0):  # some versions give the outer edges
        pixel = (right - left) / max(width - less, 1), (top - bottom) / max(height - less, 1)
        if np.allclose(pixel, _PIXEL, rtol=1e-3):
            half = _PIXEL / 2 * less
            return Grid((_PIXEL, 0.0, left - half, 0.0, -_PIXEL, top + half), crs, height, width)
    return None
