"""Lists of a file that describe the bands of its cube: wavelengths, widths, bad bands."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hytas.data.findings import Finding, warning
from hytas.data.interpret import wavelengths
from hytas.data.interpret.axes import BAND, role_of
from hytas.data.interpret.wavelengths import unit_of
from hytas.data.limits import MOST_WAVELENGTHS
from hytas.data.record import BandFacts, Contents, Variable, text_of

_WAVES, _WIDTHS = ("wavelengths", "wavelength"), ("fwhm", "bandwidths", "bandwidth")
_STANDARD = (
    *("radiation_wavelength", "sensor_band_central_radiation_wavelength"),
    "sensor_band_central_radiation_wavenumber",
)
"""Names of the CF conventions; the variable may have any."""
_GOOD = ("good_wavelengths", "good_bands", "bbl")
_BAD = ("bad_bands", "badbands", "bad_band_list", "water_bands", "noisy_bands")


def list_lengths(contents: Contents, variable: Variable) -> tuple[int, ...]:
    """Return the lengths of lists of wavelengths, which identify the band axis of a cube."""
    if variable.bands is not None and variable.bands.wavelengths is not None:
        return (len(variable.bands.wavelengths),)
    own = [
        len(listed)
        for attributes in _attributes(contents, variable)
        for listed in _listed(attributes, _WAVES)
    ]
    return (*own, *(_length(each) for each in _lists(contents) if _is_wave(each)))


def band_facts(
    contents: Contents, variable: Variable, axis: int
) -> tuple[BandFacts, list[Finding]]:
    """Return the facts of a cube's bands, and findings on lists that cannot be used.

    A list belongs to the cube if it shares the dimension of the bands; else if it has one item a
    band. Lists near the cube in the file come first, and attributes last.
    """
    bands, given = variable.shape[axis], variable.bands
    if given is not None and (given.wavelengths is None or len(given.wavelengths) == bands):
        return given, []
    lists = _lists(contents)

    def values(fits: Callable[[Variable], bool], *names: str) -> tuple[Any, str | None]:
        """Return the items and the unit of a list of the file, or of an attribute."""
        own = _belonging(variable, axis, [each for each in lists if fits(each)])
        if own is not None:
            return own.values().ravel(), text_of(own.attributes, "units", "unit")
        for attributes in _attributes(contents, variable):
            for listed in _listed(attributes, names):
                if len(listed) == bands:
                    return listed, text_of(attributes, "wavelength_units", "wavelength_unit")
        return None, None

    waves = values(_is_wave, *_WAVES)
    if waves[0] is None:
        texts = values(lambda each: each.kind == "text", "long_name")[0]
        waves = wavelengths.in_descriptions([] if texts is None else [str(text) for text in texts])
    centres = values(_is_coordinate)
    if waves[0] is None and wavelengths.nanometres(*centres)[0] is not None:
        waves = centres
    facts, findings = wavelengths.wavelength_facts(
        bands,
        *waves,
        *values(lambda each: each.last_name in _WIDTHS),
        values(lambda each: each.last_name in _GOOD, *_GOOD)[0],
    )
    named = [each for each in (*contents.variables, *contents.further) if _is_wave(each)]
    for each in named if waves[0] is None else ():
        if each in lists or (bands in each.shape and len(each.shape) < 3):
            wrong: dict[str, Any] = {"names": [str(each)], "bands": bands}
            findings.append(warning("not-used", case="list-of-other-length", **wrong))
    bad = [each for each in lists if each.last_name in _BAD]
    findings += [warning("not-used", case="list-of-bad-bands", names=[str(each)]) for each in bad]
    return facts, findings


def _attributes(contents: Contents, cube: Variable) -> Iterator[Mapping[str, Any]]:
    """Yield the attributes of a cube, and those of its group and its file, in lower case."""
    yield {name.lower(): value for name, value in cube.attributes.items()}
    of_file = {key.rpartition("/")[::2]: value for key, value in contents.attributes.items()}
    for group in dict.fromkeys((_group(cube.name), "")):
        yield {name.lower(): value for (own, name), value in of_file.items() if own == group}


def _listed(attributes: Mapping[str, Any], names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield the items of the attributes of these names, as numbers or as texts."""
    for value in (attributes[name] for name in names if name in attributes):
        yield wavelengths.items_of(value) if isinstance(value, str) else np.ravel(value).tolist()


def _lists(contents: Contents) -> list[Variable]:
    return [
        each
        for each in (*contents.variables, *contents.further)
        if (each.kind == "number" or (each.kind == "text" and len(each.shape) == 1))
        and 1 < _length(each) <= MOST_WAVELENGTHS
        and math.prod(each.shape) == _length(each)
    ]


def _belonging(cube: Variable, axis: int, lists: Sequence[Variable]) -> Variable | None:
    bands, dimension = cube.shape[axis], cube.dims[axis] if cube.dims else ""
    fitting = [each for each in lists if _length(each) == bands]

    def distance(each: Variable) -> tuple[bool, ...]:
        shares = bool(dimension) and dimension in each.dims
        near = _group(each.name) == _group(cube.name)
        return each.kind != "number", not shares, not near, each.last_name not in _WAVES

    return min(fitting, key=distance, default=None)


def _is_wave(variable: Variable) -> bool:
    name = variable.last_name
    if variable.attributes.get("standard_name") in _STANDARD:
        return True
    if any(word in name for word in ("width", "good", "flag", "fwhm", "unit")):
        return False
    if (
        _is_of_bands(variable)
        and unit_of(text_of(variable.attributes, "units", "unit") or "") is not None
    ):
        return True
    return "wave" in name or name in ("wl", "lambda", "lambdas", "band_centers", "centers")


def _is_of_bands(variable: Variable) -> bool:
    """Return whether a list is the coordinate of a dimension that holds bands (CF)."""
    own = variable.name.rsplit("/", 1)[-1]
    return variable.dims == (own,) and role_of(own) == BAND


def _is_coordinate(variable: Variable) -> bool:
    """Return whether a list may be wavelengths of a coordinate; numbers of bands are whole."""
    return _is_of_bands(variable) and variable.dtype.startswith("float")


def _length(variable: Variable) -> int:
    return max(variable.shape, default=0)


def _group(name: str) -> str:
    return name.rpartition("/")[0] or name.rpartition(".")[0]
