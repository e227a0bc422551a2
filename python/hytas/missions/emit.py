"""EMIT L1B radiance and L2A reflectance (NetCDF-4), in sensor geometry.

Layout: EMIT L2A data product user guide; LP DAAC's EMIT-Data-Resources. Cubes are (downtrack,
crosstrack, bands). The group `location` has latitudes, longitudes and the lookup table to a map
grid (`glt_x`, `glt_y`, from 1), which `geotransform` and `spatial_ref` of the file place.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.grid import Grid
from hytas.data.location import Location, Lookup
from hytas.data.record import BandFacts, Contents, Variable, numbers_of, text_of
from hytas.errors import InputError
from hytas.missions.joined import ROWS_FIRST

_BANDS = "sensor_band_parameters/"
_CUBES = {"reflectance": "EMIT L2A", "radiance": "EMIT L1B"}


def matches(contents: Contents) -> bool:
    """Tell a product by its cube and its list of wavelengths."""
    names = {variable.name for variable in contents.variables}
    return f"{_BANDS}wavelengths" in names and not names.isdisjoint(_CUBES)


def refine(contents: Contents) -> Contents:
    """Return the cube alone, with wavelengths, bands without a retrieval, and location."""
    name = next(name for name in _CUBES if contents.find(name) is not None)
    variable = contents.find(name)
    assert variable is not None
    good = _list(contents, "good_wavelengths", variable)
    bands = BandFacts(
        _list(contents, "wavelengths", variable),
        _list(contents, "fwhm", variable),
        None if good is None or not (good == 1).any() else good == 1,
    )
    grid = None
    height, width = variable.shape[:2]
    location = Location.of(contents, "location/lat", "location/lon", (height, width))
    if location is not None:
        location = replace(location, lookup=_lookup(contents))
        grid = Grid(None, None, height, width, location)
    cube = replace(variable, dims=ROWS_FIRST, bands=bands, grid=grid)
    return replace(
        contents,
        format=f"{_CUBES[name]} ({contents.format})",
        variables=(cube,),
        further=tuple(each for each in contents.variables if each.name != name),
    )


def _list(contents: Contents, name: str, cube: Variable) -> Any:
    variable = contents.find(_BANDS + name)
    if variable is None:
        return None
    if variable.shape != cube.shape[2:] or variable.kind != "number":
        raise InputError(rule=f"{variable} must hold a number for each band of {cube}")
    return np.asarray(variable.values(), np.float64)


def _lookup(contents: Contents) -> Lookup | None:
    columns, rows = contents.find("location/glt_x"), contents.find("location/glt_y")
    numbers = numbers_of(contents.attributes, "geotransform", 6)
    if columns is None or rows is None or numbers is None:
        return None
    c, a, b, f, d, e = numbers.tolist()
    crs = text_of(contents.attributes, "spatial_ref")
    return Lookup(rows, columns, Grid((a, b, c, d, e, f), crs, rows.shape[0], rows.shape[1]))
