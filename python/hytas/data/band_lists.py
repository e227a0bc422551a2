"""Lists of a file that describe the bands of its cube: wavelengths, widths, bad bands."""

import math
from collections.abc import Sequence
from typing import Any

from hytas.data.axes import BAND, role_of
from hytas.data.limits import MOST_WAVELENGTHS
from hytas.data.record import BandFacts, Contents, Variable, numbers_of, text_of
from hytas.data.wavelengths import good_bands, is_unit, nanometres, widths

_WAVES, _WIDTHS = ("wavelengths", "wavelength"), ("fwhm", "bandwidths", "bandwidth")
_GOOD = ("good_wavelengths", "good_bands", "bbl")


def list_lengths(contents: Contents, variable: Variable) -> tuple[int, ...]:
    """Return the lengths of lists of wavelengths, which identify the band axis of a cube."""
    if variable.bands is not None and variable.bands.wavelengths is not None:
        return (len(variable.bands.wavelengths),)
    own = [numbers_of(variable.attributes, name) for name in _WAVES]
    lengths = [len(values) for values in own if values is not None]
    return (*lengths, *(_length(each) for each in _lists(contents) if _is_wave(each)))


def band_facts(contents: Contents, variable: Variable, axis: int) -> tuple[BandFacts, list[str]]:
    """Return the facts of a cube's bands, and notes on lists that cannot be used.

    A list belongs to the cube if it shares the dimension of the bands; else if it has one number a
    band. Lists near the cube in the file come first.

    Args:
        axis: of its bands.
    """
    bands = variable.shape[axis]
    notes: list[str] = []
    given = variable.bands
    if given is not None and len(given.wavelengths if given.wavelengths is not None else ()) in (
        0,
        bands,
    ):
        return given, []
    waves = _belonging(contents, variable, axis, [e for e in _lists(contents) if _is_wave(e)])
    values, unit = _values(waves)
    if waves is None:
        values, unit = _attribute(variable, _WAVES, bands)
    if values is None:
        return BandFacts(good=_good(contents, variable, axis, notes)), notes
    wavelengths, reason = nanometres(values, unit)
    if wavelengths is None:
        notes.append(f"its wavelengths are not used: {reason}")
        return BandFacts(good=_good(contents, variable, axis, notes)), notes
    named = [each for each in _lists(contents) if _last(each) in _WIDTHS]
    wide, wide_unit = _values(_belonging(contents, variable, axis, named))
    fwhm = None if wide is None else widths(wide, wavelengths, values, wide_unit)
    return BandFacts(wavelengths, fwhm, _good(contents, variable, axis, notes)), notes


def _good(contents: Contents, variable: Variable, axis: int, notes: list[str]) -> Any:
    named = [each for each in _lists(contents) if _last(each) in _GOOD]
    flags, _ = _values(_belonging(contents, variable, axis, named))
    if flags is None:
        flags, _ = _attribute(variable, _GOOD, variable.shape[axis])
    if flags is None:
        return None
    good, reason = good_bands(flags, variable.shape[axis])
    if good is None:
        notes.append(f"its list of bad bands is not used: {reason}")
    return good if good is None or good.any() else None


def _lists(contents: Contents) -> list[Variable]:
    return [
        each
        for each in (*contents.variables, *contents.further)
        if each.kind == "number"
        and 1 < _length(each) <= MOST_WAVELENGTHS
        and math.prod(each.shape) == _length(each)
    ]


def _belonging(
    contents: Contents, cube: Variable, axis: int, lists: Sequence[Variable]
) -> Variable | None:
    bands, dimension = cube.shape[axis], cube.dims[axis] if cube.dims else ""
    fitting = [each for each in lists if _length(each) == bands]

    def distance(each: Variable) -> tuple[bool, bool, int]:
        shares = bool(dimension) and dimension in each.dims
        near = _group(each.name) == _group(cube.name)
        return not shares, not near, _order(_last(each))

    return min(fitting, key=distance, default=None)


def _order(name: str) -> int:
    return 0 if name in _WAVES else 1


def _values(variable: Variable | None) -> tuple[Any, str | None]:
    if variable is None:
        return None, None
    return variable.values().ravel(), text_of(variable.attributes, "units", "unit")


def _attribute(variable: Variable, names: Sequence[str], bands: int) -> tuple[Any, str | None]:
    unit = text_of(variable.attributes, "wavelength_units", "wavelength_unit")
    for name in names:
        numbers = numbers_of(variable.attributes, name, bands)
        if numbers is not None:
            return numbers, unit
    return None, None


def _is_wave(variable: Variable) -> bool:
    name = _last(variable)
    if any(word in name for word in ("width", "good", "flag", "fwhm", "unit")):
        return False
    own = variable.dims == (variable.name.rsplit("/", 1)[-1],) and role_of(name) == BAND
    if own and is_unit(text_of(variable.attributes, "units", "unit")):
        return True
    return "wave" in name or name in ("wl", "lambda", "lambdas", "band_centers", "centers")


def _length(variable: Variable) -> int:
    return max(variable.shape, default=0)


def _group(name: str) -> str:
    return name.rpartition("/")[0] or name.rpartition(".")[0]


def _last(variable: Variable) -> str:
    return variable.name.replace(".", "/").rsplit("/", 1)[-1].lower()
