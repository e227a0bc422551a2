"""Lists of a file that describe the bands of its cube: wavelengths, widths, bad bands."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from hytas.data import wavelengths
from hytas.data.axes import BAND, role_of
from hytas.data.limits import MOST_WAVELENGTHS
from hytas.data.record import BandFacts, Contents, Variable, numbers_of, text_of
from hytas.data.wavelengths import is_unit

_WAVES, _WIDTHS = ("wavelengths", "wavelength"), ("fwhm", "bandwidths", "bandwidth")
_GOOD = ("good_wavelengths", "good_bands", "bbl")
_BAD = ("bad_bands", "badbands", "bad_band_list", "water_bands", "noisy_bands")


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
    """
    bands, given = variable.shape[axis], variable.bands
    if given is not None and (given.wavelengths is None or len(given.wavelengths) == bands):
        return given, []
    lists = _lists(contents)

    def values(fits: Callable[[Variable], bool], *names: str) -> tuple[Any, str | None]:
        """Return the numbers and the unit of a list of the file, or of an attribute."""
        own = _belonging(variable, axis, [each for each in lists if fits(each)])
        if own is not None:
            return own.values().ravel(), text_of(own.attributes, "units", "unit")
        attributes = (numbers_of(variable.attributes, name, bands) for name in names)
        numbers = next((each for each in attributes if each is not None), None)
        return numbers, text_of(variable.attributes, "wavelength_units", "wavelength_unit")

    waves = values(_is_wave, *_WAVES)
    facts, notes = wavelengths.band_facts(
        bands,
        *waves,
        *values(lambda each: _last(each) in _WIDTHS),
        values(lambda each: _last(each) in _GOOD, *_GOOD)[0],
    )
    others = [each for each in lists if _is_wave(each) and waves[0] is None]
    notes += [f"{each} is not used: the cube has {bands} bands" for each in others]
    bad = [each for each in lists if _last(each) in _BAD]
    notes += [f"{each} is not used: set bands to the numbers to keep, from 1" for each in bad]
    return facts, notes


def _lists(contents: Contents) -> list[Variable]:
    return [
        each
        for each in (*contents.variables, *contents.further)
        if each.kind == "number"
        and 1 < _length(each) <= MOST_WAVELENGTHS
        and math.prod(each.shape) == _length(each)
    ]


def _belonging(cube: Variable, axis: int, lists: Sequence[Variable]) -> Variable | None:
    bands, dimension = cube.shape[axis], cube.dims[axis] if cube.dims else ""
    fitting = [each for each in lists if _length(each) == bands]

    def distance(each: Variable) -> tuple[bool, bool, bool]:
        shares = bool(dimension) and dimension in each.dims
        near = _group(each.name) == _group(cube.name)
        return not shares, not near, _last(each) not in _WAVES

    return min(fitting, key=distance, default=None)


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
