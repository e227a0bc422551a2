"""Which columns of a table are bands, and at which wavelengths."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hytas.data.findings import Finding, note, warning
from hytas.data.interpret.axes import BAND, role_of
from hytas.data.interpret.rules import GUESS, MeaningRule, first
from hytas.data.interpret.units import BY_NAME, UNITS, plain_unit
from hytas.data.interpret.wavelengths import are_counted, nanometres
from hytas.types import Floats

_UNIT = "|".join(re.escape(text) for unit in UNITS for text in unit.texts if len(text) > 1)
_NUMBERED = re.compile(
    r"((?:.*?[^\d.,])??\.?)(\d+(?:[.,]\d+)?(?:e[-+]\d+)?)"
    rf"(?:[ _]?[(\[]?({_UNIT})[)\]]?)?([_. ][a-z]+)?",
    re.IGNORECASE,
)
"""Stem, number, unit and ending, such as those of X450.5, 899 cm-1 and scan.452_ref."""
_OF_MATLAB = re.compile(r"^(x\d+)_(\d+)$")
_SIGNS = {"-": "", "x.": "x"}
"""Stem of negative numbers -> that of the others; R writes X.5 for -5."""
_WAVES = ("", "x", "wl")
"""Stems of names that are wavelengths in any unit."""
_OF_SAMPLES = re.compile(
    r"lat(itude)?|lon(g|gitude)?|lng|easting|northing|elevation|altitude|(date|time)(stamp|_?utc)?"
    r"|datetime|year|month|day|doy|hour"
)
"""Names of columns that say where and when a sample was taken, in lower case."""
_WAVENUMBERS = (400.0, 4500.0)
"""Numbers in this range may be 1/cm of the middle infrared, where no unit is named."""
_SILICON = 1100.0
"""Where cameras of silicon end, in nm; their wavelengths are in no doubt."""
_FEW_ROWS = 10
"""So many whole numbers may be measurements, even if they count."""


class Numbered(NamedTuple):
    """Columns with numbered names of one kind.

    Attributes:
        numbers: by name.
        unit: that all of the names give, or "".
    """

    numbers: dict[str, float]
    unit: str

    @property
    def wavelengths(self) -> Floats | None:
        """Return the numbers in nm, or None if they are no wavelengths."""
        return nanometres(list(self.numbers.values()), self.unit)[0]


class TableBands(NamedTuple):
    """The columns of a table that are bands, and their wavelengths in nm or None."""

    names: list[str]
    wavelengths: Floats | None
    findings: list[Finding]


def by_stem(names: Iterable[str]) -> dict[str, Numbered]:
    """Return kinds of two numbered names or more by stem, such as "b" of b1 and b2."""
    kinds: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for name in names:
        with_point = _OF_MATLAB.sub(r"\1.\2", name)
        if (match := _NUMBERED.fullmatch(with_point)) is None:
            continue
        stem, ending = match[1].lower().strip("_ "), (match[4] or "").lower()
        number = float(match[2].replace(",", "."))
        own = kinds.setdefault((stem, ending), {})
        own[name] = number, plain_unit(match[3] or "")
    for negative, stem in _SIGNS.items():
        if (negative, "") in kinds and (stem, "") in kinds:
            below = {name: (-n, unit) for name, (n, unit) in kinds.pop((negative, "")).items()}
            order = [name for name in names if name in {**below, **kinds[stem, ""]}]
            both = {**below, **kinds[stem, ""]}
            kinds[stem, ""] = {name: both[name] for name in order}
    several = {key: own for key, own in kinds.items() if len(own) > 1}
    plain = {key: own for key, own in several.items() if not key[1]}
    chosen = plain or (several if len(several) == 1 else {})
    return {stem + ending: _numbered(own) for (stem, ending), own in chosen.items()}


def _numbered(own: dict[str, tuple[float, str]]) -> Numbered:
    units = {unit for _, unit in own.values()}
    numbers = {name: number for name, (number, _) in own.items()}
    return Numbered(numbers, units.pop() if len(units) == 1 else "")


def waves_in(names: Iterable[str]) -> Numbered:
    """Return the names that are wavelengths: 450.5, X450, 450 nm, scan.452_ref, or R450.

    A stem of its own counts if it is the only one and all its numbers can be nanometres.
    """
    stems = by_stem(names)
    matched = first(WAVE_RULES, stems)
    return Numbered({}, "") if matched is None else matched[0]


def _usual(stems: dict[str, Numbered]) -> Numbered | None:
    for stem in _WAVES:
        own = stems.get(stem)
        if own is not None and (len(stems) == 1 or own.wavelengths is not None):
            return own
    return None


def _with_unit(stems: dict[str, Numbered]) -> Numbered | None:
    named = [own for own in stems.values() if own.unit and own.wavelengths is not None]
    return named[0] if len(named) == 1 else None


def _only_safe(stems: dict[str, Numbered]) -> Numbered | None:
    low, high = BY_NAME["nm"].bare or (0.0, 0.0)
    if len(stems) != 1:
        return None
    own = next(iter(stems.values()))
    return own if all(low <= number <= high for number in own.numbers.values()) else None


WAVE_RULES: tuple[MeaningRule[dict[str, Numbered], Numbered], ...] = (
    MeaningRule("the names give a unit", _with_unit),
    MeaningRule("a usual stem", _usual),
    MeaningRule("the only stem, and all numbers are optical wavelengths in nm", _only_safe, GUESS),
)


def bands_of(numeric: Sequence[str]) -> TableBands:
    """Return which columns of numbers are bands."""
    matched = first(BAND_RULES, numeric)
    assert matched is not None  # the last rule applies always
    return matched[0]


def _waves(numeric: Sequence[str]) -> TableBands | None:
    own = waves_in(numeric)
    if not own.numbers:
        return None
    names, numbers = list(own.numbers), list(own.numbers.values())
    if min(numbers) <= 0 < max(numbers) and not are_counted(numbers):
        return TableBands(
            names, None, [note("columns-through-0", low=min(numbers), high=max(numbers))]
        )
    wavelengths, reason = nanometres(numbers, own.unit)
    findings: list[Finding] = []
    if wavelengths is None and not are_counted(numbers) and reason is not None:
        findings = [warning("columns-no-wavelengths", reason=reason.code), reason]
    low, high = _WAVENUMBERS
    is_doubtful = low <= min(numbers) and _SILICON < max(numbers) <= high
    if wavelengths is not None and not own.unit and is_doubtful:
        findings.append(note("wavelengths-or-wavenumbers", low=min(numbers), high=max(numbers)))
    return TableBands(names, wavelengths, findings)


def _numbered_bands(numeric: Sequence[str]) -> TableBands | None:
    stems = by_stem(numeric)
    numbered = {name for own in stems.values() for name in own.numbers}
    bands = [name for name in numeric if name in numbered]
    findings = [warning("columns-of-several-kinds", kinds=len(stems))] if len(stems) > 1 else []
    return TableBands(bands, None, findings) if bands else None


BAND_RULES: tuple[MeaningRule[Sequence[str], TableBands], ...] = (
    MeaningRule("wavelengths", _waves),
    MeaningRule("numbered names", _numbered_bands),
    MeaningRule(
        "all but those of places and times",
        lambda numeric: (
            TableBands(bands, None, [])
            if len(bands := [name for name in numeric if not is_of_sample(name)]) > 1
            else None
        ),
        GUESS,
    ),
    MeaningRule("all", lambda numeric: TableBands([*numeric], None, []), GUESS),
)


def is_of_sample(name: str) -> bool:
    """Return whether a name says where or when a sample was taken."""
    return _OF_SAMPLES.fullmatch(name.strip().lower()) is not None


def is_transposed(frame: Any) -> bool:
    """Return whether each row of a table is a band: its first column holds the wavelengths."""
    name, *others = frame.columns
    if role_of(str(name)) != BAND or frame[name].dtype.kind not in "iuf" or len(frame) < 2:
        return False
    if len(others) < 1 or waves_in(others).numbers or frame[name].nunique() < len(frame):
        return False
    steps = np.diff(frame[name].to_numpy(np.float64))
    are_numbers = all(frame[other].dtype.kind in "iuf" for other in others)
    return are_numbers and bool((steps > 0).all() or (steps < 0).all())


def numeric_of(frame: Any, names: Iterable[str]) -> list[str]:
    """Return the columns of numbers, except of those that number the rows."""
    numeric = [name for name in names if frame[name].dtype.kind in "iufb"]
    return [name for name in numeric if not _are_numbers_of_rows(frame[name])]


def _are_numbers_of_rows(column: Any) -> bool:
    if column.dtype.kind not in "iu" or column.hasnans or len(column) < _FEW_ROWS:
        return False
    return are_counted(np.sort(column.to_numpy()))


def texts_of(frame: Any) -> list[str]:
    """Return the columns that are not of numbers."""
    return [name for name in frame.columns if frame[name].dtype.kind not in "iufb"]


def without_codes(frame: Any, numeric: Sequence[str], by: Iterable[str | None]) -> list[str]:
    """Return the columns of numbers without those that are codes of classes or groups.

    Args:
        by: the columns of classes and groups; those that the table lacks do not matter.
    """
    numbered = {name for own in by_stem(numeric).values() for name in own.numbers}
    kinds = [frame[name] for name in by if name in frame.columns]
    return [
        name
        for name in numeric
        if name in numbered or not any(_are_codes(frame[name], kind) for kind in kinds)
    ]


def _are_codes(column: Any, labels: Any) -> bool:
    """Return whether a column has one whole number for each class, and each number one class."""
    if (column.dropna().astype(float) % 1 != 0).any():
        return False
    classes = labels.nunique()
    pairs = len(column.to_frame("code").assign(label=labels).dropna().drop_duplicates())
    return len(column) >= _FEW_ROWS and column.nunique() == classes == pairs > 1
