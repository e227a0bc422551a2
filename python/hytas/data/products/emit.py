"""EMIT L1B radiance and L2A reflectance (NetCDF-4), in sensor geometry.

Layout: EMIT L2A data product user guide; LP DAAC's EMIT-Data-Resources. Cubes are (downtrack,
crosstrack, bands). The group `location` has latitudes, longitudes and the lookup table to a map
grid (`glt_x`, `glt_y`, from 1), which `geotransform` and `spatial_ref` of the file place.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.contents import Contents, Variable
from hytas.data.formats.hdf5 import open_variable
from hytas.data.geo import Geo
from hytas.data.location import Location, Lookup
from hytas.errors import InputError

_BANDS = "sensor_band_parameters/"
_CUBES = {"reflectance": "EMIT L2A", "radiance": "EMIT L1B"}


def matches(contents: Contents) -> bool:
    """Tell a product by its cube and its list of wavelengths."""
    names = {variable.name for variable in contents.variables}
    return f"{_BANDS}wavelengths" in names and not names.isdisjoint(_CUBES)


def refine(contents: Contents) -> Contents:
    """Return the cube alone, with wavelengths, bands without a retrieval, and location.

    Raises:
        InputError: wavelengths or flags that are not one a band.
    """
    found = {variable.name: variable for variable in contents.variables}
    name = next(name for name in _CUBES if name in found)
    cube = open_variable(contents.path, name, 2)
    meta: dict[str, Any] = {"wavelengths": _list(found, "wavelengths", cube)}
    if f"{_BANDS}fwhm" in found:
        meta["fwhm"] = _list(found, "fwhm", cube)
    if f"{_BANDS}good_wavelengths" in found:
        good = _list(found, "good_wavelengths", cube)
        meta["bad_bands"] = tuple(int(band) for band in np.flatnonzero(good != 1))
    location = Location.of(found, "location/lat", "location/lon", cube.shape)
    if location is not None:
        meta["location"] = replace(location, lookup=_lookup(found, contents.meta["attributes"]))
    further = tuple(each for each in contents.variables if each.name != name)
    return replace(
        contents,
        format=f"{_CUBES[name]} ({contents.format})",
        variables=(cube,),
        meta={**contents.meta, **meta},
        further=further,
    )


def _list(found: Mapping[str, Variable], name: str, cube: Variable) -> Any:
    variable = found[_BANDS + name]
    if variable.shape != cube.shape[2:] or variable.kind != "number":
        raise InputError(f"{variable} must hold a number for each band of {cube}")
    return np.asarray(variable.values(), np.float64)


def _lookup(found: Mapping[str, Variable], attributes: Mapping[str, Any]) -> Lookup | None:
    columns, rows = found.get("location/glt_x"), found.get("location/glt_y")
    numbers = np.ravel(attributes.get("geotransform", ()))
    if columns is None or rows is None or numbers.size != 6 or numbers.dtype.kind not in "iuf":
        return None
    if len(rows.shape) != 2 or rows.shape != columns.shape:
        return None
    c, a, b, f, d, e = (float(number) for number in numbers)
    wkt = attributes.get("spatial_ref")
    text = wkt if isinstance(wkt, str) else None
    known = Geo.from_envi({"coordinate system string": text}) if text else None
    return Lookup(rows, columns, Geo((a, b, c, d, e, f), known.epsg if known else None, text))
