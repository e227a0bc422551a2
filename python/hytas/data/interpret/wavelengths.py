"""Wavelengths and other facts of bands: units, lists in headers, and comparison of two scenes."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hytas.data.record import BandFacts
from hytas.types import Floats, Mask

# Unit -> nanometres of one; wavenumbers are inverse centimetres.
_UNITS = {
    **dict.fromkeys(("nm", "nanometer", "nanometre", "nano"), 1.0),
    **dict.fromkeys(("um", "µm", "μm", "micrometer", "micrometre", "micron", "micro"), 1e3),
    **dict.fromkeys(("mm", "millimeter", "millimetre"), 1e6),
    **dict.fromkeys(("cm", "centimeter", "centimetre"), 1e7),
    **dict.fromkeys(("m", "meter", "metre"), 1e9),
    **dict.fromkeys(("angstrom", "ångström", "ångstrom", "å", "a", "aa"), 0.1),
}
_WAVENUMBERS = {"1/cm", "cm-1", "cm^-1", "cm**-1", "wavenumber", "reciprocal centimeter"}
_NO_UNIT = {"", "unknown", "index", "none", "1", "n/a"}
SAFE_NM, _SAFE_UM, _SAFE_M = (200.0, 5500.0), (0.2, 20.0), (2e-7, 2e-5)
"""Values in these ranges are wavelengths of optical sensors in that unit, and in no other."""
WIDTHS_NM = (0.05, 2000.0)
"""Widths of bands of optical sensors; others are of another unit than the file says."""
MOST_MIXED = 0.05
"""Share of bands that may lie on the other side of the band before: AVIRIS has three of 224."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_DESCRIPTION = re.compile(
    rf"({_NUMBER.pattern})\s*(nanomet(?:er|re)s?|micromet(?:er|re)s?|microns?|nm|[uµμ]m)\b",
    re.IGNORECASE,
)
_BARE = re.compile(rf"\s*(?:X|WL_?)?({_NUMBER.pattern})\s*", re.IGNORECASE)
_TRUE, _FALSE = {"true", "t", "yes", "y", "good"}, {"false", "f", "no", "n", "bad"}


def nanometres(values: Any, unit: str | None = None) -> tuple[Floats | None, str]:
    """Return wavelengths in nm and a note on a guess; or None and the reason for that.

    Args:
        values: (B,) numbers, or their texts, which may name a unit each.
        unit: as the file names it; None if it names none.
    """
    numbers, own = _numbers(values)
    if numbers is None or not np.isfinite(numbers).all() or numbers.min(initial=1.0) <= 0:
        return None, "positive finite numbers are needed"
    if not numbers.size:
        return None, "the list is empty"
    if numbers.size > 1 and numbers.min() == numbers.max():
        return None, "they are all equal"
    convert, reason = _conversion(own or unit or "", numbers)
    return None if convert is None else convert(numbers), reason


def wavelength_facts(
    bands: int,
    listed: Any,
    unit: str | None = None,
    widths_listed: Any = None,
    widths_unit: str | None = None,
    flags: Any = None,
) -> tuple[BandFacts, list[str]]:
    """Return the facts that lists give about bands, and notes on lists that cannot be used.

    Args:
        listed: wavelengths, as `nanometres` takes them; None without a list.
        widths_listed: as `widths` takes them, or None.
        flags: as `good_bands` takes them, or None.
    """
    notes, wavelengths, fwhm, good = [], None, None, None
    if listed is not None:
        reason = f"{len(listed)} values for {bands} bands"
        if len(listed) == bands:
            wavelengths, reason = nanometres(listed, unit)
        if reason:
            notes.append(f"its wavelengths {'are not used: ' * (wavelengths is None)}{reason}")
        if wavelengths is not None and _are_mixed(wavelengths):
            notes.append(
                "its bands are not in the order of their wavelengths, and stay as they are"
            )
        if wavelengths is not None and widths_listed is not None:
            fwhm = widths(widths_listed, wavelengths, listed, widths_unit)
            if fwhm is None:
                notes.append("its band widths (fwhm) are not used: one number a band is needed")
            elif not WIDTHS_NM[0] <= (usual := float(np.median(fwhm))) <= WIDTHS_NM[1]:
                notes.append(f"its band widths (fwhm) are not used: {usual:g} nm is none")
                fwhm = None
    if flags is not None:
        good, reason = good_bands(flags, bands)
        if good is not None and not good.any():
            good, reason = None, "it marks all bands as bad"
        if good is None:
            notes.append(f"its list of bad bands is not used: {reason}")
    return BandFacts(wavelengths, fwhm, good), notes


def _are_mixed(wavelengths: Floats) -> bool:
    """Return whether bands are in no order; those of two detectors may overlap."""
    down = int((np.diff(wavelengths) < 0).sum())
    return min(down, len(wavelengths) - 1 - down) > MOST_MIXED * len(wavelengths)


def widths(values: Any, wavelengths: Floats, listed: Any, unit: str | None = None) -> Floats | None:
    """Return widths of bands in nm; None without a usable number for each band.

    Args:
        values: (B,) widths, in the unit of the wavelengths if they name no other.
        wavelengths: (B,) in nm.
        listed: (B,) the same as the file has them.
        unit: of the widths, if the file names it.
    """
    numbers, _ = _numbers(values)
    centres, _ = _numbers(listed)
    if numbers is None or centres is None or numbers.shape != centres.shape:
        return None
    if numbers.shape != wavelengths.shape or not np.isfinite(numbers).all() or numbers.min() <= 0:
        return None
    if unit is not None and _plain(unit) in _UNITS:
        return numbers * _UNITS[_plain(unit)]
    # The factor of the unit; of wavenumbers it is |d lambda / d nu| = lambda / nu.
    return numbers * wavelengths / centres


def good_bands(values: Any, bands: int) -> tuple[Mask | None, str]:
    """Return which bands a list of flags calls good, or None and why the list cannot be used.

    Args:
        values: (B,) numbers or truth values, as numbers or texts; a positive number is good.
    """
    flags = np.asarray(values).ravel()
    if flags.size != bands:
        return None, f"{flags.size} values for {bands} bands"
    good = [_flag(flag) for flag in flags.tolist()]
    if None in good:
        return None, "numbers or truth values are needed"
    return np.array(good, np.bool_), ""


def in_descriptions(texts: Sequence[str | None]) -> tuple[list[str] | None, str | None]:
    """Return the wavelengths that descriptions of bands name, such as "410.0 Nanometers".

    Numbers alone, such as those of R's terra, are wavelengths if their unit is sure.

    Returns:
        A text for each band and their unit; None and None if one band has no wavelength.
    """
    searched = [_DESCRIPTION.search(text or "") for text in texts]
    matches = [match for match in searched if match is not None]
    bare = [match[1] for text in texts if (match := _BARE.fullmatch(text or ""))]
    if bare and len(bare) == len(texts) and nanometres(bare)[0] is not None:
        return bare, None
    units = {_UNITS[_plain(match[2])]: match[2] for match in matches}
    if len(matches) < len(texts) or len(units) != 1:
        return None, None
    return [match[1] for match in matches], next(iter(units.values()))


def items_of(text: str) -> list[str]:
    """Return the items of a list in a header: braces or brackets, commas or blanks."""
    inner = text.strip().strip("{}[]()").strip()
    items = [item.strip() for item in inner.split(",")] if "," in inner else inner.split()
    while items and not items[-1]:  # a comma after the last item
        items.pop()
    return items


def band_items(items: Sequence[Mapping[str, str]], *names: str) -> list[str] | None:
    """Return the texts that items of each band give by one of the names, or None if one lacks."""
    lower = [{key.lower(): text for key, text in item.items()} for item in items]
    for name in names:
        items_of_name = [item[name] for item in lower if name in item]
        if items_of_name and len(items_of_name) == len(items):
            return items_of_name
    return None


def farthest_band(own: Floats, other: Floats) -> tuple[int, float] | None:
    """Return the band that lies farthest from its like, and one band spacing, both in nm.

    None if no band (B,) of `own` lies more than the spacing of `other` (B,) away.
    """
    if len(other) < 2:
        return None  # one band has no spacing
    spacing = float(np.median(np.abs(np.diff(other))))
    worst = int(np.argmax(np.abs(own - other)))
    return (worst, spacing) if abs(own[worst] - other[worst]) > spacing else None


def _numbers(values: Any) -> tuple[Floats | None, str]:
    """Return numbers, and the unit that their texts name."""
    array = np.asarray(values).ravel()
    if array.dtype.kind in "iuf":
        return array.astype(np.float64), ""
    units, numbers = set(), []
    for text in array.tolist():
        match = _NUMBER.match(str(text).strip())
        if match is None:
            return None, ""
        numbers.append(float(match[0]))
        units.add(_plain(str(text).strip()[match.end() :]))
    if len(units) > 1 or (units and not units <= {"", *_UNITS}):
        return None, ""
    return np.array(numbers), units.pop() if units else ""


def _conversion(unit: str, values: Floats) -> tuple[Callable[[Floats], Floats] | None, str]:
    name = _plain(unit)
    if name in _WAVENUMBERS:
        return (lambda each: 1e7 / each), ""
    low, high = float(values.min()), float(values.max())
    factor = _UNITS.get(name)
    # Headers often say nanometers of values in micrometers, and the other way round.
    if (factor == 1.0 and high < 100) or (factor == 1e3 and low >= SAFE_NM[0]):
        other, by = ("um", 1e3) if factor == 1.0 else ("nm", 1.0)
        return (lambda each: each * by), f"are read as {other}, and not as {unit}"
    if factor is not None:
        return (lambda each: each * factor), ""
    if name not in _NO_UNIT:
        return None, f"their unit is {unit}: nm, um, mm, cm, m, Angstrom or 1/cm are known"
    if are_counted(values):
        return None, f"they name no unit, and {low:g} to {high:g} may be numbers of bands"
    for (least, most), by in ((SAFE_NM, 1.0), (_SAFE_UM, 1e3), (_SAFE_M, 1e9)):
        if least <= low and high <= most:
            return (lambda each, by=by: each * by), ""
    return None, f"they name no unit, and {low:g} to {high:g} may be several"


def are_counted(values: Any) -> bool:
    """Return whether values count from 0 or 1, as numbers of bands do."""
    return np.array_equal(values, np.arange(len(values)) + (values[0] == 1))


def is_unit(unit: str | None) -> bool:
    """Return whether a text names a unit of wavelengths."""
    return unit is not None and _plain(unit) in {*_UNITS, *_WAVENUMBERS}


def _plain(unit: str) -> str:
    name = " ".join(unit.strip().strip("[]()").lower().split())
    return name[:-1] if name.endswith("s") and len(name) > 2 else name


def _flag(value: Any) -> bool | None:
    if isinstance(value, bytes | str):
        text = (value.decode("latin-1") if isinstance(value, bytes) else value).strip().lower()
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        try:
            value = float(text)
        except ValueError:
            return None
    return None if value != value else bool(value > 0)
