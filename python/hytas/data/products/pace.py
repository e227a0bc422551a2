"""PACE OCI: surface or water-leaving reflectance (L2) and calibrated reflectance (L1B).

Layout: NASA's "File structure at three processing levels for OCI" (oceandata-notebooks). L2 cubes
are (line, pixel, band) with `wavelength_3d`; L1B has a cube (band, scan, pixel) a detector.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.contents import Contents, Variable
from hytas.data.formats.hdf5 import dataset_attributes, open_variable
from hytas.data.location import Location
from hytas.data.products.joined import Part, join
from hytas.errors import InputError

_BANDS = "sensor_band_parameters/"
_L2 = ("geophysical_data/rhos", "geophysical_data/Rrs")
_L1B = {
    "observation_data/rhot_blue": "blue_wavelength",
    "observation_data/rhot_red": "red_wavelength",
    "observation_data/rhot_SWIR": "SWIR_wavelength",
}
_PLACES = ("navigation_data/", "geolocation_data/")


def matches(contents: Contents) -> bool:
    """Tell a product by its cubes and their lists of wavelengths."""
    found = {variable.name: variable for variable in contents.variables}
    l2 = any(len(found[name].shape) == 3 for name in _L2 if name in found)
    return (l2 and f"{_BANDS}wavelength_3d" in found) or set(_L1B) <= set(found)


def refine(contents: Contents) -> Contents:
    """Return one cube of all bands, ascending, as reflectance, and its location.

    Raises:
        InputError: wavelengths that are not one a band.
    """
    found = {variable.name: variable for variable in contents.variables}
    one = next((name for name in _L2 if name in found and len(found[name].shape) == 3), None)
    if one is not None and f"{_BANDS}wavelength_3d" in found:
        cubes, axis, level = {one: "wavelength_3d"}, 2, "L2"
    else:
        cubes, axis, level = _L1B, 0, "L1B"
    parts = [
        _part(contents, name, axis, _waves(found, waves), level) for name, waves in cubes.items()
    ]
    cube, waves = join("+".join(name.rsplit("/", 1)[-1] for name in cubes), parts)
    meta: dict[str, Any] = {"wavelengths": waves}
    location = _location(found, cube.shape)
    if location is not None:
        meta["location"] = location
    return replace(
        contents,
        format=f"PACE OCI {level} ({contents.format})",
        variables=(cube,),
        meta={**contents.meta, **meta},
        further=contents.variables,
    )


def _waves(found: Mapping[str, Variable], name: str) -> Any:
    variable = found.get(_BANDS + name)
    if variable is None or len(variable.shape) != 1 or variable.kind != "number":
        raise InputError(f"a PACE product needs {_BANDS}{name}, a wavelength for each band")
    return np.asarray(variable.values(), np.float64)


def _part(contents: Contents, name: str, axis: int, waves: Any, level: str) -> Part:
    cube = open_variable(contents.path, name, axis)
    attributes = dataset_attributes(contents.path, name)
    gain, offset = (
        float(np.ravel(attributes.get(key, default))[0])
        for key, default in (("scale_factor", 1.0), ("add_offset", 0.0))
    )
    return Part(cube, waves, gain, offset)


def _location(found: Mapping[str, Variable], shape: tuple[int, ...]) -> Location | None:
    each = (Location.of(found, f"{g}latitude", f"{g}longitude", shape) for g in _PLACES)
    return next((location for location in each if location is not None), None)
