"""Which columns of a table are bands, and at which wavelengths."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.interpret.axes import BAND, role_of
from hytas.data.interpret.wavelengths import (
    BY_NAME,
    UNITS,
    are_counted,
    nanometres,
    plain_unit,
    unit_of,
)
from hytas.errors import InputError
from hytas.types import Floats

_UNIT = "|".join(re.escape(text) for unit in UNITS for text in unit.texts if len(text) > 1)
_NUMBERED = re.compile(
    r"((?:.*?[^\d.,])??\.?)(\d+(?:[.,]\d+)?(?:e[-+]\d+)?)"
    rf"(?:[ _]?[(\[]?({_UNIT})[)\]]?)?([_. ][a-z]+)?",
    re.IGNORECASE,
)
"""Stem, number, unit and ending, such as those of X450.5, 899 cm-1 and scan.452_ref."""
_OF_MATLAB = re.compile(r"^(x\d+)_(\d+)$")
_SIGN = re.compile(r"(.*?)[_ ]*(?:[-\N{MINUS SIGN}]|(?<=^x)\.)")
"""Stem of negative numbers: that of the others and a sign; R writes X.5 for -5."""
_WAVES = ("", "x", "wl")
"""Stems of names that are wavelengths in any unit."""
_BANDS = re.compile(r"(?<![a-z])(b|bands?|ch|channels?)\W*$")
_SHIFT = "shift"
"""Ends of stems of band numbers, and a word for numbers such as those of Raman spectra."""
_OF_HEADER = re.compile(
    rf"(?:(?<![a-z])(?P<unit>{_UNIT})s?[)\]]?|[(\[](?P<letter>\w)[)\]])$", re.IGNORECASE
)
"""The unit of a column, such as that of Wavelength (nm), Wavelength/nm, or cm-1."""
_OF_SAMPLES = re.compile(
    r"(?<![a-z])(lat(itude)?|lon(g|gitude)?|lng|easting|northing|elevation|altitude|gps|utm|utc"
    r"|(date|time)(stamp)?|datetime|year|month|day|doy|hour)(?![a-z])"
)
"""Words in names of columns that say where and when a sample was taken, in lower case."""
_WAVENUMBERS = (400.0, 4500.0)
"""Numbers in this range may be 1/cm of the middle infrared, where no unit is named."""
_SILICON = 1100.0
"""Where cameras of silicon end, in nm; their wavelengths are in no doubt."""
_FEW_ROWS = 10
"""So many whole numbers may be measurements, even if they count."""
SAMPLE = "sample"
"""Column of the names of spectra in a table that was transposed."""


class Numbered(NamedTuple):
    """Two columns or more whose names differ by numbers; `numbers` are by name."""

    stem: str
    unit: str
    numbers: dict[str, float]

    @property
    def values(self) -> list[float]:
        return list(self.numbers.values())

    @property
    def wavelengths(self) -> Floats | None:
        """Return the numbers in nm, or None if they are no wavelengths."""
        return nanometres(self.values, self.unit)[0] if self.reading is None else None

    @property
    def may_be_nanometres(self) -> bool:
        low, high = BY_NAME["nm"].bare or (0.0, 0.0)
        return not self.unit and low <= min(self.values) and max(self.values) <= high

    @property
    def reading(self) -> str | None:
        """Return the case of numbers that are no wavelengths, by the first rule that fits."""
        return next((name for name, fits in _READINGS if fits(self)), None)

    def finding(self) -> list[Finding]:
        """Return a finding on numbers that may be read in another way."""
        low, high = min(self.values), max(self.values)
        is_doubtful = _WAVENUMBERS[0] <= low and _SILICON < high <= _WAVENUMBERS[1]
        case = self.reading
        if case is None and is_doubtful and self.may_be_nanometres:
            case = "nanometres"
        facts: dict[str, Any] = {"low": low, "high": high}
        return [] if case is None else [note("wavelengths-read-as", case=case, **facts)]


_READINGS: tuple[tuple[str, Callable[[Numbered], bool]], ...] = (
    (
        "shift",
        lambda kind: (
            _SHIFT in kind.stem
            or (min(kind.values) <= 0 < max(kind.values) and not are_counted(kind.values))
        ),
    ),
    (
        "band-numbers",
        lambda kind: (
            kind.may_be_nanometres
            and _BANDS.search(kind.stem) is not None
            and all(number % 1 == 0 for number in kind.values)
        ),
    ),
)


class TableBands(NamedTuple):
    """The columns of a table that are bands, and their wavelengths in nm or None."""

    names: list[str]
    wavelengths: Floats | None
    findings: list[Finding]


def numbered_kinds(names: Iterable[str]) -> list[Numbered]:
    """Return the kinds of numbered names, such as b1 and b2."""
    names = list(names)
    kinds: dict[tuple[str, str, str], dict[str, float]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(_OF_MATLAB.sub(r"\1.\2", name))
        if match is not None:
            stem, ending = match[1].lower().strip("_ "), (match[4] or "").lower()
            unit = plain_unit(match[3] or "")
            named = unit_of(stem)
            unit = stem if not unit and named is not None and named.inverse else unit
            kind = kinds.setdefault((stem, unit, ending), {})
            kind[name] = float(match[2].replace(",", "."))
    for stem, unit, ending in [*kinds]:
        signed = _SIGN.fullmatch(stem)
        positive = ("" if signed is None else signed[1], unit, ending)
        if signed is not None and positive in kinds:
            negative = kinds.pop((stem, unit, ending))
            both = {name: -number for name, number in negative.items()} | kinds[positive]
            kinds[positive] = {name: both[name] for name in names if name in both}
    several = {key: numbers for key, numbers in kinds.items() if len(numbers) > 1}
    without_ending = {key: numbers for key, numbers in several.items() if not key[2]}
    chosen = without_ending or (several if len(several) == 1 else {})
    return [Numbered(stem, unit, numbers) for (stem, unit, _), numbers in chosen.items()]


def waves_in(names: Iterable[str]) -> Numbered | None:
    """Return the names that are wavelengths: 450.5, X450, 450 nm, scan.452_ref, or R450.

    A stem of its own counts if it is the only one and all its numbers can be nanometres.
    """
    kinds = numbered_kinds(names)
    named = [kind for kind in kinds if kind.unit and kind.wavelengths is not None]
    if len(named) == 1:
        return named[0]
    for kind in sorted((kind for kind in kinds if kind.stem in _WAVES), key=lambda k: k.stem):
        if len(kinds) == 1 or kind.wavelengths is not None:
            return kind
    if len(kinds) == 1 and kinds[0].may_be_nanometres and kinds[0].reading is None:
        return kinds[0]
    return None


def bands_of(numeric: Sequence[str], given: str | None = None) -> TableBands:
    """Return which columns of numbers are bands.

    Args:
        given: the user's names, with commas between them, or the first and the last as FIRST:LAST.
    """
    if given is not None:
        numeric = _given(numeric, given)
    waves = waves_in(numeric)
    if waves is not None and (given is None or len(waves.numbers) == len(numeric)):
        return _with_wavelengths(waves)
    if given is not None:
        return TableBands([*numeric], None, [])
    kinds = numbered_kinds(numeric)
    numbered = {name for kind in kinds for name in kind.numbers}
    others = [name for name in numeric if not is_of_sample(name)]
    names = [name for name in numeric if name in numbered] or (others if len(others) > 1 else [])
    names = names or [*numeric]
    guess = warning("bands-guessed", case="no-names", columns=names)
    findings = kinds[0].finding() if len(kinds) == 1 else [guess]
    return TableBands(names, None, findings)


def _given(numeric: Sequence[str], given: str) -> list[str]:
    first, colon, last = (part.strip() for part in given.partition(":"))
    wanted = [first, last] if colon else [name.strip() for name in given.split(",")]
    missing = [name for name in wanted if name not in numeric]
    if missing:
        raise InputError("band_columns", given, f"{missing[0]!r} is no column of numbers")
    if colon:
        return list(numeric[numeric.index(first) : numeric.index(last) + 1])
    return wanted


def _with_wavelengths(kind: Numbered) -> TableBands:
    findings = kind.finding()
    wavelengths, reason = (
        (None, None) if kind.reading is not None else nanometres(kind.values, kind.unit)
    )
    if reason is not None and not are_counted(kind.values):
        findings.append(reason)
    return TableBands(list(kind.numbers), wavelengths, findings)


def is_of_sample(name: str) -> bool:
    """Return whether a name says where or when a sample was taken."""
    return _OF_SAMPLES.search(name.lower()) is not None


def numeric_of(frame: Any, names: Iterable[str]) -> list[str]:
    """Return the columns of numbers, except of those that number the rows."""
    numeric = [name for name in names if frame[name].dtype.kind in "iufb"]
    return [name for name in numeric if not _are_numbers_of_rows(frame[name])]


def _are_numbers_of_rows(column: Any) -> bool:
    if column.dtype.kind not in "iu" or column.hasnans or len(column) < _FEW_ROWS:
        return False
    return are_counted(np.sort(column.to_numpy()))


def upright(frame: Any) -> tuple[Any, list[Finding]]:
    """Return a table with a spectrum in each row, and a finding if each column was one.

    Such a table begins with a column of wavelengths, band numbers or shifts, such as
    "Wavelength (nm)". Rows whose first value is no number describe the spectra.
    """
    import pandas

    name, *samples = frame.columns
    waves = pandas.to_numeric(frame[name], errors="coerce")
    steps = np.diff(waves.dropna().to_numpy(np.float64))
    named = _name_of_bands(str(name))
    if named is None or not samples or not len(steps) or waves_in(samples):
        return frame, []
    if not ((steps > 0).all() or (steps < 0).all()) or waves.isna().sum() > len(steps):
        return frame, []
    turned = frame[samples].T.reset_index(drop=True)
    turned.columns = [
        str(text).strip() if number != number else named.format(f"{number:.10g}")
        for text, number in zip(frame[name], waves, strict=True)
    ]
    for column in turned.columns:
        numbers = pandas.to_numeric(turned[column], errors="coerce")
        if numbers.notna().sum() == turned[column].notna().sum():
            turned[column] = numbers
    # pandas numbers columns of one name: corn, corn.1
    plain = [re.sub(r"\.\d+$", "", sample) for sample in samples]
    names = [own if own in samples else sample for own, sample in zip(plain, samples, strict=True)]
    turned.insert(0, SAMPLE, names)
    return turned, [note("table-transposed", column=str(name), sample=SAMPLE)]


def _name_of_bands(header: str) -> str | None:
    """Return the name of a band, with {} for its number, by the header of the numbers of bands.

    None if the header names no such numbers.
    """
    match = _OF_HEADER.search(header)
    unit = None if match is None else unit_of(match["unit"] or match["letter"])
    head = header.lower() if match is None else header[: match.start()].lower().strip(" _/([")
    if _SHIFT in head:
        return f"{_SHIFT} {{}}"
    if role_of(head or header) != BAND and not (unit is not None and unit.inverse):
        return None
    if unit is not None:
        return f"{{}} {unit.name}"
    return "band {}" if _BANDS.search(head) else "{}"


def refuse_texts(argument: str, path: Any, frame: Any) -> None:
    """Refuse a table most of whose wavelengths hold texts, such as 1.200,11."""
    import pandas

    waves = waves_in(frame.columns)
    named = frame[list(waves.numbers)] if waves else frame[[]]
    texts = [name for name in named.columns if named[name].dtype.kind not in "iufb"]
    if len(named.columns) > 1 and texts and len(named.columns) - len(texts) < max(2, len(texts)):
        values = named[texts[0]].dropna()
        odd = values[pandas.to_numeric(values, errors="coerce").isna()]
        facts = {"column": texts[0], "text": repr(next(iter(odd), ""))}
        raise refusal("value-wrong", argument, path, "column", **facts)
