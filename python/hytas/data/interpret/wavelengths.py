"""Wavelengths and other facts of bands: units, lists in headers, and comparison of two scenes."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import Finding, note, warning
from hytas.data.record import BandFacts
from hytas.types import Floats, Mask

WIDTHS_NM = (0.05, 2000.0)
"""Widths of bands of optical sensors; others are of another unit than the file says."""
MOST_MIXED = 0.05
"""Share of bands that may lie on the other side of the band before: AVIRIS has three of 224."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_DESCRIPTION = re.compile(
    rf"({_NUMBER.pattern})[\s_]*(nanomet(?:er|re)s?|micromet(?:er|re)s?|microns?|nm|[uµμ]m)\b",
    re.IGNORECASE,
)
_BARE = re.compile(rf"\s*(X|WL_?|Band[ _-]?)?({_NUMBER.pattern})\s*", re.IGNORECASE)
_TRUE, _FALSE = {"true", "t", "yes", "y", "good"}, {"false", "f", "no", "n", "bad"}


@dataclass(frozen=True)
class Unit:
    """A unit of wavelengths; `units.toml` says what its fields mean."""

    name: str
    nanometres: float
    texts: tuple[str, ...]
    inverse: bool = False
    bare: tuple[float, float] | None = None
    misnamed: tuple[float, float] | None = None
    means: str | None = None

    def nanometres_of(self, values: Floats) -> Floats:
        """Return values (B,) of this unit in nm."""
        return self.nanometres / values if self.inverse else values * self.nanometres

    def other(self, values: Floats) -> "Unit | None":
        """Return the unit that values (B,) have which a file gives in this one, if it is another"""
        if self.misnamed is None:
            return None
        low, high = self.misnamed
        return BY_NAME[str(self.means)] if low <= values.min() and values.max() < high else None


_TABLE = tomllib.loads(Path(__file__).with_name("units.toml").read_text(encoding="utf-8"))
NO_UNIT = frozenset(_TABLE["no_unit"])
_ROWS: list[dict[str, Any]] = [
    {key: tuple(one) if isinstance(one, list) else one for key, one in row.items()}
    for row in _TABLE["units"]
]
UNITS = tuple(Unit(**row) for row in _ROWS)
BY_NAME = {unit.name: unit for unit in UNITS}
_BY_TEXT = {text: unit for unit in UNITS for text in unit.texts}


def plain_unit(text: str) -> str:
    """Return the name of a unit in lower case, without brackets and without a plural s."""
    name = " ".join(text.strip().strip("[]()").lower().split())
    return name[:-1] if name.endswith("s") and len(name) > 2 else name


def unit_of(text: str) -> Unit | None:
    """Return the unit that a text names, or None."""
    return _BY_TEXT.get(plain_unit(text))


def meant_unit(values: Floats, text: str) -> tuple[Unit | None, str | None]:
    """Return the unit of wavelengths (B,), or None, and the case of a finding if that is a guess.

    Rules in their order: values that contradict the unit; a named unit; the only unit in which
    values without one are optical wavelengths, unless they are numbers of bands.

    Args:
        text: the unit that the file names.
    """
    low, high, unit = values.min(), values.max(), unit_of(text)
    if unit is not None and (other := unit.other(values)) is not None:
        return other, "misnamed"
    if unit is None and plain_unit(text) in NO_UNIT and not are_counted(values):
        bare = ((one, one.bare) for one in UNITS if one.bare is not None)
        unit = next((one for one, (first, last) in bare if first <= low and high <= last), None)
    return unit, None if unit is not None else "unit-unknown"


def nanometres(values: Any, unit: str | None = None) -> tuple[Floats | None, Finding | None]:
    """Return wavelengths in nm and a finding on a guess; or None and why they are not used.

    Args:
        values: (B,) numbers, or their texts, which may name a unit each.
        unit: as the file names it; None if it names none.
    """
    numbers, own = _numbers(values)
    if numbers is None or not numbers.size or not (np.isfinite(numbers) & (numbers > 0)).all():
        return None, warning("not-used", case="wavelengths", bands=np.size(values))
    if numbers.size > 1 and numbers.min() == numbers.max():
        return None, warning("not-used", case="wavelengths", bands=numbers.size)
    text = own or unit or ""
    meant, case = meant_unit(numbers, text)
    facts = {"low": numbers.min().item(), "high": numbers.max().item(), "unit": text}
    facts |= {} if meant is None else {"meant": meant.name}
    finding = warning("wavelengths-read-as", case=case, **facts) if case else None
    return None if meant is None else meant.nanometres_of(numbers), finding


def wavelength_facts(
    bands: int,
    listed: Any,
    unit: str | None = None,
    widths_listed: Any = None,
    widths_unit: str | None = None,
    flags: Any = None,
) -> tuple[BandFacts, list[Finding]]:
    """Return the facts that lists give about bands, and findings on lists that cannot be used.

    Args:
        listed: wavelengths, as `nanometres` takes them; None without a list.
        widths_listed: as `widths` takes them, or None.
        flags: as `good_bands` takes them, or None.
    """
    findings: list[Finding] = []
    wavelengths, fwhm, good = None, None, None
    if listed is not None:
        finding = None
        if len(listed) == bands:
            wavelengths, finding = nanometres(listed, unit)
        else:
            counts = {"count": len(listed), "bands": bands}
            finding = warning("not-used", "", "other-wavelengths", **counts)
        findings += [] if finding is None else [finding]
        if wavelengths is not None and _are_mixed(wavelengths):
            findings.append(note("wavelengths-unordered"))
        if wavelengths is not None and widths_listed is not None:
            fwhm = widths(widths_listed, wavelengths, listed, widths_unit)
            if fwhm is None or not WIDTHS_NM[0] <= float(np.median(fwhm)) <= WIDTHS_NM[1]:
                findings.append(warning("not-used", case="fwhm", bands=bands))
                fwhm = None
    if flags is not None:
        good = good_bands(flags, bands)
        findings += [warning("not-used", case="bad-bands", bands=bands)] if good is None else []
    return BandFacts(wavelengths, fwhm, good), findings


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
    if numbers is None or centres is None or numbers.shape != wavelengths.shape:
        return None
    if not np.isfinite(numbers).all() or numbers.min() <= 0:
        return None
    named = None if unit is None else unit_of(unit)
    if named is not None and not named.inverse:
        return named.nanometres_of(numbers)
    # The factor of the unit; of wavenumbers it is |d lambda / d nu| = lambda / nu.
    return numbers * wavelengths / centres


def good_bands(values: Any, bands: int) -> Mask | None:
    """Return which bands a list of flags calls good, or None if the list cannot be used.

    Args:
        values: (B,) numbers or truth values, as numbers or texts; a positive number is good.
    """
    flags = np.asarray(values).ravel()
    good = [_flag(flag) for flag in flags.tolist()]
    if flags.size != bands or None in good or True not in good:
        return None
    return np.array(good, np.bool_)


def in_descriptions(texts: Sequence[str | None]) -> tuple[list[str] | None, str | None]:
    """Return the wavelengths that descriptions of bands name, such as "410.0 Nanometers".

    Numbers alone, such as those of R's terra or in Band_503, are wavelengths if their unit is sure.
    Numbers of bands follow each other, but for a few gaps.

    Returns:
        A text for each band and their unit; None and None if one band has no wavelength.
    """
    searched = [_DESCRIPTION.search(text or "") for text in texts]
    matches = [match for match in searched if match is not None]
    named = [match for text in texts if (match := _BARE.fullmatch(text or ""))]
    if named and len(named) == len(texts):
        bare = [match[2] for match in named]
        are_numbers = all((match[1] or "").lower().startswith("band") for match in named)
        steps = np.diff(np.array(bare, np.float64))
        if not (are_numbers and (steps == 1).mean() > 0.5) and nanometres(bare)[0] is not None:
            return bare, None
    units = {unit_of(match[2]): match[2] for match in matches}
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
        units.add(plain_unit(str(text).strip()[match.end() :]))
    if len(units) > 1 or any(unit and unit_of(unit) is None for unit in units):
        return None, ""
    return np.array(numbers), units.pop() if units else ""


def are_counted(values: Any) -> bool:
    """Return whether values count from 0 or 1, as numbers of bands do."""
    return np.array_equal(values, np.arange(len(values)) + (values[0] == 1))


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
