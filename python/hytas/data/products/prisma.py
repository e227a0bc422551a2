"""PRISMA L1, L2B, L2C and L2D (HDF-EOS5): the cubes of two detectors, made one.

Layout: PRISMA Products Specification Document, issue 2.3 (ASI). Cubes are (line, band, sample),
uint16. Bands run from long to short waves; one that was not downlinked has the centre 0.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.contents import Contents
from hytas.data.formats.hdf5 import open_variable
from hytas.data.geo import Geo
from hytas.data.location import Location
from hytas.data.products.joined import Part, join
from hytas.errors import InputError

_CUBE = re.compile(r"(HDFEOS/SWATHS/PRS_(L1|L2B|L2C|L2D)_HCO/)Data Fields/(VNIR|SWIR)_Cube")
_LARGEST = 65535
_PIXEL = 30.0


def matches(contents: Contents) -> bool:
    """Tell a product by the names of its cubes."""
    return any(_CUBE.fullmatch(variable.name) for variable in contents.variables)


def refine(contents: Contents) -> Contents:
    """Return one cube of all bands, ascending, as radiance (L1) or reflectance (L2).

    Raises:
        InputError: an attribute with wavelengths or scale is missing or does not fit.
    """
    attributes = contents.meta["attributes"]
    found = [m for m in (_CUBE.fullmatch(v.name) for v in contents.variables) if m is not None]
    swath, level = found[0][1], found[0][2]
    parts = []
    for match in sorted(found, key=lambda match: match[3], reverse=True):
        cube = open_variable(contents.path, match[0], 1)
        detector = match[3].capitalize()
        gain, offset = _scale(attributes, level, detector)
        parts.append(Part(cube, _waves(attributes, detector), gain, offset))
    # Where no band was measured, all of them hold 0.
    cube, waves = join("VNIR_Cube+SWIR_Cube", parts, empty=0.0)
    meta: dict[str, Any] = {"wavelengths": waves}
    if level == "L2D":
        cube = replace(cube, geo=_geo(attributes, cube.shape))
    location = _location(contents, swath, cube.shape)
    if location is not None and cube.geo is None:
        meta["location"] = location
    return replace(
        contents,
        format=f"PRISMA {level} ({contents.format})",
        variables=(cube,),
        meta={**contents.meta, **meta},
        further=contents.variables,
    )


def _number(attributes: Mapping[str, Any], name: str) -> float:
    value = np.ravel(attributes.get(name, ()))
    if value.size != 1 or value.dtype.kind not in "iuf" or not np.isfinite(value[0]):
        raise InputError(f"a PRISMA product needs the attribute {name}, a number")
    return float(value[0])


def _scale(attributes: Mapping[str, Any], level: str, detector: str) -> tuple[float, float]:
    if level == "L1":
        factor = _number(attributes, f"ScaleFactor_{detector}")
        if factor <= 0:
            raise InputError(f"ScaleFactor_{detector} is {factor:g}, must be positive")
        return 1.0 / factor, -_number(attributes, f"Offset_{detector}")
    low, high = (_number(attributes, f"L2Scale{detector}{end}") for end in ("Min", "Max"))
    if not low < high:
        raise InputError(f"L2Scale{detector}Min is {low:g}, must be below the maximum, {high:g}")
    return (high - low) / _LARGEST, low


def _waves(attributes: Mapping[str, Any], detector: str) -> Any:
    name = f"List_Cw_{detector}"
    values = np.ravel(attributes.get(name, ()))
    if not values.size or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InputError(f"a PRISMA product needs the attribute {name}, a wavelength for each band")
    flags = np.ravel(attributes.get(f"{name}_Flags", np.ones(values.size)))
    measured = flags != 0 if flags.size == values.size else True
    return np.where(measured, values, 0).astype(np.float64)


def _geo(attributes: Mapping[str, Any], shape: tuple[int, ...]) -> Geo | None:
    """From the corners, which are centres of pixels; None where they do not fit the size."""
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
        epsg = int(_number(attributes, "Epsg_Code"))
    except InputError:
        return None
    height, width = shape[:2]
    for less in (1, 0):  # some versions give the outer edges
        size = (right - left) / max(width - less, 1), (top - bottom) / max(height - less, 1)
        if np.allclose(size, _PIXEL, rtol=1e-3):
            half = _PIXEL / 2 * less
            return Geo((_PIXEL, 0.0, left - half, 0.0, -_PIXEL, top + half), epsg)
    return None


def _location(contents: Contents, swath: str, shape: tuple[int, ...]) -> Location | None:
    found = {variable.name: variable for variable in contents.variables}
    names = f"{swath}Geolocation Fields/Latitude", f"{swath}Geolocation Fields/Longitude"
    each = (Location.of(found, names[0] + end, names[1] + end, shape) for end in ("_VNIR", ""))
    return next((location for location in each if location is not None), None)
