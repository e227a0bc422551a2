"""PACE OCI: surface or water-leaving reflectance (L2) and calibrated reflectance (L1B).

Layout: NASA's "File structure at three processing levels for OCI" (oceandata-notebooks). L2 cubes
are (line, pixel, band) with `wavelength_3d`; L1B has a cube (band, scan, pixel) a detector.
"""

from dataclasses import replace

from hytas.data.record import Contents, number
from hytas.errors import InputError
from hytas.missions.joined import BANDS_FIRST, ROWS_FIRST, JoinedPart, join_parts

_BANDS = "sensor_band_parameters/"
_L2 = ("geophysical_data/rhos", "geophysical_data/Rrs")
_L1B = {
    "observation_data/rhot_blue": "blue_wavelength",
    "observation_data/rhot_red": "red_wavelength",
    "observation_data/rhot_SWIR": "SWIR_wavelength",
}


def matches(contents: Contents) -> bool:
    """Tell a product by its cubes and their lists of wavelengths."""
    is_l2 = _l2(contents) is not None and contents.find(f"{_BANDS}wavelength_3d") is not None
    return is_l2 or all(contents.find(name) is not None for name in _L1B)


def refine(contents: Contents) -> Contents:
    """Return one cube of all bands, ascending, as reflectance."""
    one = _l2(contents)
    if one is not None and contents.find(f"{_BANDS}wavelength_3d") is not None:
        cubes, dims, level = {one: "wavelength_3d"}, ROWS_FIRST, "L2"
    else:
        cubes, dims, level = _L1B, BANDS_FIRST, "L1B"
    parts = [_part(contents, name, dims, waves) for name, waves in cubes.items()]
    cube, _ = join_parts("+".join(name.rsplit("/", 1)[-1] for name in cubes), parts)
    name = f"PACE OCI {level} ({contents.format})"
    return replace(contents, format=name, variables=(cube,), further=contents.variables)


def _l2(contents: Contents) -> str | None:
    for name in _L2:
        variable = contents.find(name)
        if variable is not None and len(variable.shape) == 3:
            return name
    return None


def _part(contents: Contents, name: str, dims: tuple[str, ...], waves: str) -> JoinedPart:
    cube, wavelengths = contents.find(name), number(contents.find(_BANDS + waves))
    assert cube is not None  # it is a product by this cube
    if wavelengths is None:
        raise InputError(rule=f"a PACE product needs {_BANDS}{waves}, a wavelength for each band")
    return JoinedPart(replace(cube, dims=dims), wavelengths)
