"""NEON AOP surface reflectance and at-sensor radiance (HDF5): DP1 flight lines and DP3 tiles.

Layout: NEON imaging spectrometer HDF5 documentation (NEON.DOC.004365). `SITE/Reflectance` has
`Reflectance_Data` (line, sample, band), int16, and the groups of its metadata. Since 2021
`SITE/Radiance` has `RadianceIntegerPart`, uint8, and `RadianceDecimalPart`, uint16, of which
`Scale_Factor` is 1.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.grid import Grid
from hytas.data.record import (
    UNSCALED,
    BandFacts,
    Contents,
    Key,
    Variable,
    number,
    numbers_of,
    text_of,
)
from hytas.errors import InputError
from hytas.missions.joined import NO_DATA, ROWS_FIRST, JoinedPart, join_parts
from hytas.types import Array, Floats, Mask

_CUBE = re.compile(r"(\w+/(Reflectance|Radiance)/)(?:Reflectance_Data|RadianceIntegerPart)")
_LISTS, _SYSTEM = "Metadata/Spectral_Data/", "Metadata/Coordinate_System/"


def matches(contents: Contents) -> bool:
    """Tell a product by the name of its cube."""
    return any(_CUBE.fullmatch(variable.name) for variable in contents.variables)


def refine(contents: Contents) -> Contents:
    """Return the cube as reflectance or radiance, with wavelengths, bad bands and place.

    Bands of water vapour are bad.
    """
    name = next(m for v in contents.variables if (m := _CUBE.fullmatch(v.name)) is not None)
    image, group, quantity = contents.get(name[0], "data"), name[1], name[2].lower()
    is_split = quantity == "radiance"
    scaled = contents.get(f"{group}RadianceDecimalPart", "data") if is_split else image
    waves = number(contents.find(f"{group}{_LISTS}Wavelength"))
    scale = numbers_of(scaled.attributes, "Scale_Factor", 1)
    if waves is None or scale is None or min(waves.min(), scale[0]) <= 0:
        rule = "a NEON product needs the list Wavelength and the attribute Scale_Factor, positive"
        raise InputError(rule=rule)
    part = JoinedPart(replace(image, dims=ROWS_FIRST), waves, 1 / float(scale[0]))
    if is_split:
        part = JoinedPart(_radiance(image, scaled, float(scale[0])), waves)
    cube, order = join_parts(part.variable.name, [part])
    fwhm = number(contents.find(f"{group}{_LISTS}FWHM"))
    widths = fwhm if fwhm is not None and fwhm.shape == waves.shape else None
    bands = BandFacts(waves, widths, _good(contents.attributes, group, waves)).ordered(order)
    grid = _grid(contents.attributes, f"{group}{_SYSTEM}", cube.shape[:2])
    return replace(
        contents,
        format=f"NEON {quantity} ({contents.format})",
        variables=(replace(cube, bands=bands, grid=grid),),
        further=tuple(each for each in contents.variables if each not in (image, scaled)),
        findings=tuple(one for one in contents.findings if one != UNSCALED),
    )


def _radiance(whole: Variable, fraction: Variable, scale: float) -> Variable:
    """Return the sum of integer and decimal part; a decimal part of 1 or more is no data."""

    def values(key: Key) -> Array:
        units, parts = whole.part(key), fraction.part(key)
        result = units.astype(np.float32) + parts.astype(np.float32) / scale
        result[(units == whole.nodata) | (parts >= scale)] = NO_DATA
        return result

    return Variable.of_type(
        whole.name.removesuffix("IntegerPart"),
        whole.shape,
        np.dtype(np.float32),
        values,
        dims=ROWS_FIRST,
        nodata=NO_DATA,
    )


def _good(attributes: Mapping[str, Any], group: str, waves: Floats) -> Mask | None:
    """Return which bands (B,) lie outside the windows of water vapour; None if none are named."""
    windows = (numbers_of(attributes, f"{group}Band_Window_{n}_Nanometers", 2) for n in (1, 2))
    bad = [(low <= waves) & (waves <= high) for low, high in (w for w in windows if w is not None)]
    return ~np.logical_or.reduce(bad) if bad else None


def _grid(attributes: Mapping[str, Any], group: str, size: tuple[int, ...]) -> Grid | None:
    """Return the grid that the map info names, as ENVI does; None where it is not understood."""
    items = [text.strip() for text in (text_of(attributes, f"{group}Map_Info") or "").split(",")]
    code = text_of(attributes, f"{group}EPSG Code", f"{group}EPSG_Code") or ""
    try:
        column, row, x, y, width, height = map(float, items[1:7])
        turned = any(float(item.rpartition("=")[2]) for item in items[11:])
    except ValueError:
        return None
    if turned or not code.isdecimal():
        return None
    left, top = x - (column - 1) * width, y + (row - 1) * height
    return Grid((width, 0.0, left, 0.0, -height, top), f"EPSG:{code}", size[0], size[1])
