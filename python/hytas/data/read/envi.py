"""Headers of ENVI: all facts besides the pixels, which GDAL reads.

https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hytas.data.findings import Finding, refusal, warning
from hytas.data.interpret.wavelengths import items_of, wavelength_facts
from hytas.data.limits import by
from hytas.data.record import BandFacts, Raw

# "data type": complex numbers are refused later, by their kind.
_DTYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 6: "c8", 9: "c16"}
_DTYPES |= {12: "u2", 13: "u4", 14: "i8", 15: "u8"}
INTERLEAVES = {"bsq": ("band", "y", "x"), "bil": ("y", "band", "x"), "bip": ("y", "x", "band")}
"""The order of bands, rows and columns in the file."""
MOST_HEADER = 2**24
"""Bytes of a header, at most; a list of 10,000 wavelengths takes a hundredth of this."""
DATA_SUFFIXES = (
    *(".img", ".dat", ".raw", ".bsq", ".bil", ".bip", ".bin", ".lan", ".envi"),
    *(".rfl", ".rdn"),
)
_FIRST = b"ENVI"
_LATIN = "no UTF-8"
"""Field of headers that are read as Latin-1; no header can have it."""


@dataclass(frozen=True)
class HeaderFacts:
    """The facts of header fields about bands and classes.

    Attributes:
        class_names, class_colours: by label.
    """

    bands: BandFacts = field(default_factory=BandFacts)
    nodata: float | None = None
    class_names: Mapping[int, str] = field(default_factory=dict)
    class_colours: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def matches(path: Path) -> bool:
    """Return whether a file is an ENVI header, or has one next to it."""
    return is_header(path) or header_of(path) is not None


def is_header(path: Path) -> bool:
    """Return whether a file is an ENVI header, by its first word."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16).lstrip(b"\xef\xbb\xbf").startswith(_FIRST)


def header_of(path: Path) -> Path | None:
    """Return the ENVI header of a data file, or None; the one of two that GDAL takes."""
    if path.suffix.lower() == ".hdr":
        return None
    names = (f"{path.stem}.hdr", f"{path.stem}.HDR", f"{path.name}.hdr", f"{path.name}.HDR")
    headers = (path.with_name(name) for name in names)
    return next((header for header in headers if is_header(header)), None)


def data_of(header: Path) -> Path:
    """Return the data file of a header: of those with its name the one with the size it says."""
    stem = header.with_suffix("").name
    files = [path for path in sorted(header.parent.iterdir()) if stem in (path.name, path.stem)]
    files = [path for path in files if path.is_file() and path.suffix.lower() != ".hdr"]
    size = _layout(fields_of(header)).end if len(files) > 1 else None
    fitting = [path for path in files if path.stat().st_size == size]
    if len(fitting) > 1:
        raise refusal("header-of-several", "", names=[path.name for path in fitting])
    if not files:
        raise refusal("header-alone", "", name=f"{stem} or {stem}.img")
    return (fitting or sorted(files, key=lambda path: path.suffix.lower() not in DATA_SUFFIXES))[0]


def refuse_library(header: Path) -> None:
    """Refuse the header of a spectral library."""
    if "library" in fields_of(header).get("file type", "").lower():
        raise refusal("spectral-library", "")


def fields_of(path: Path) -> dict[str, str]:
    """Return the fields of a header as written; a value in braces keeps them, and its lines."""
    if path.stat().st_size > MOST_HEADER:
        raise refusal("header-too-long", "", most=MOST_HEADER)
    content, encoding = path.read_bytes(), {}
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text, encoding = content.decode("latin-1"), {_LATIN: "yes"}
    lines = text.splitlines()
    if not lines or not lines[0].strip().startswith("ENVI"):
        raise refusal("header-of-other-kind", "")
    return dict(_fields(iter(lines[1:]))) | encoding


def _fields(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or line.startswith(";"):
            continue
        name, value = " ".join(name.lower().split()), value.strip()
        if value.startswith("{"):
            parts = [value]
            while "}" not in parts[-1]:
                more = next(lines, None)
                if more is None:
                    raise refusal("header-brace-open", "", field=name)
                parts.append("" if more.startswith(";") else more.strip())
            value = "\n".join(filter(None, parts))
            value = value[: value.rindex("}") + 1]
        yield name, value


def dark_frames(fields: Mapping[str, str]) -> int:
    """Return the number of lines at the end of a capture that its camera recorded in the dark."""
    start, lines = (_integer(fields, name, 0, 0) for name in ("autodarkstartline", "lines"))
    return lines - start if 0 < start < lines else 0


class _Layout(NamedTuple):
    """Where the values of an image lie; `end` is the size of the file."""

    shape: tuple[int, ...]
    dtype: "np.dtype[np.generic]"
    offset: int

    @property
    def end(self) -> int:
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def raw_of(header: Path, data: Path) -> Raw | None:
    """Return where the values of an image lie; None if the file is compressed."""
    fields = fields_of(header)
    for name in ("major frame offsets", "minor frame offsets"):
        if any(item.strip("0.") for item in items_of(fields.get(name, ""))):
            raise refusal("header-with-gaps", "", field=name, text=fields[name])
    shape, dtype, offset = layout = _layout(fields)
    if fields.get("file compression", "0").strip() not in ("", "0"):
        return None
    if (size := data.stat().st_size) != layout.end:
        facts = {"name": data.name, "header": header.name, "bytes": size, "needed": layout.end}
        how = f"offset {offset} + {by(shape)} {dtype}"
        raise refusal("envi-of-other-size", "", **facts, how=how)
    return Raw(str(data), dtype.str, offset, shape, (0, 1, 2))


def _layout(fields: Mapping[str, str]) -> _Layout:
    sizes = {
        "y": _integer(fields, "lines", 0, 1),
        "x": _integer(fields, "samples", 0, 1),
        "band": _integer(fields, "bands", 1, 1),
    }
    code, order = _integer(fields, "data type", 0, 1), _integer(fields, "byte order", 0, 0)
    for name, value, known in (("data type", code, _DTYPES), ("byte order", order, (0, 1))):
        if value not in known:
            raise refusal("header-field-unknown", "", field=name, text=value, known=sorted(known))
    layout = INTERLEAVES.get(fields.get("interleave", "bsq").lower())
    if layout is None:
        facts = {"field": "interleave", "text": fields["interleave"], "known": [*INTERLEAVES]}
        raise refusal("header-field-unknown", "", **facts)
    dtype = np.dtype((">" if order else "<") + _DTYPES[code])
    offset = _integer(fields, "header offset", 0, 0)
    return _Layout(tuple(sizes[name] for name in layout), dtype, offset)


def header_facts(fields: Mapping[str, str], bands: int) -> HeaderFacts:
    """Return the facts of the fields about bands and classes."""
    facts, findings = _band_facts(fields, bands)
    names = _class_names(fields, findings)
    colours = _class_colours(fields.get("class lookup", ""))
    return HeaderFacts(facts, _nodata(fields, findings), names, colours, tuple(findings))


def _band_facts(fields: Mapping[str, str], bands: int) -> tuple[BandFacts, list[Finding]]:
    def items(*names: str) -> list[str] | None:
        listed = items_of(_first(fields, *names) or "")
        # A map often has the list of the cube that it comes from.
        return listed if listed and (bands > 1 or len(listed) == bands) else None

    waves, unit = items("wavelength", "wavelengths"), _first(fields, "wavelength units")
    flags = items("bbl", "bad band multiplier", "bad bands list")
    return wavelength_facts(bands, waves, unit, items("fwhm"), flags=flags)


def is_list_of_numbers(text: str) -> bool:
    """Return whether a text lists several numbers."""
    items = items_of(text)
    return len(items) > 1 and all(item.replace(".", "", 1).isdecimal() for item in items)


def _first(fields: Mapping[str, str], *names: str) -> str | None:
    return next((fields[name] for name in names if fields.get(name, "").strip(" {}[]")), None)


def _class_names(fields: Mapping[str, str], findings: list[Finding]) -> dict[int, str]:
    text = fields.get("class names", "")
    if not text.startswith("{"):
        return {}
    if _LATIN in fields and not text.isascii():
        findings.append(warning("texts-not-utf-8"))
    inner = text[1:-1].strip().rstrip(",")
    items = [" ".join(item.split()) for item in inner.split(",")]
    count = fields.get("classes", "").strip()
    if not count.isdecimal() or int(count) == len(items):
        return dict(enumerate(items))
    # A name may hold a comma. Each name may have a line of its own; or the rest of a name begins
    # with a small letter.
    lines = [line.strip().rstrip(",") for line in inner.splitlines()]
    for names in (lines, _joined(items)):
        if len(names) == int(count):
            return dict(enumerate(names))
    findings.append(warning("class-names-count", count=len(items), classes=int(count)))
    return {}


def _joined(items: Sequence[str]) -> list[str]:
    """Return names, each with the items behind it that begin with a small letter."""
    names: list[str] = []
    for item in items:
        if names and item[:1].islower():
            names[-1] += f", {item}"
        else:
            names.append(item)
    return names


def _class_colours(text: str) -> dict[int, tuple[int, int, int]]:
    items = items_of(text)
    if len(items) % 3 or not all(item.isascii() and item.isdigit() for item in items):
        return {}
    levels = [int(item[:6]) for item in items]
    if any(level > 255 for level in levels):
        return {}
    return dict(enumerate(zip(levels[::3], levels[1::3], levels[2::3], strict=True)))


def _nodata(fields: Mapping[str, str], findings: list[Finding]) -> float | None:
    text = _first(fields, "data ignore value")
    if text is None:
        return None
    plain = text.strip("{} ")
    try:
        return math.nan if "#" in plain else float(plain)  # Windows writes NaN with #
    except ValueError:
        findings.append(warning("nodata-not-used", value=text))
        return None


def _integer(fields: Mapping[str, str], name: str, default: int, lowest: int) -> int:
    value = fields.get(name, str(default))
    if name not in fields and default < lowest:
        raise refusal("header-field-missing", "", field=name)
    try:
        number = float(value.partition(";")[0])
    except ValueError:
        number = math.nan
    if not lowest <= number < 2**53 or number % 1:
        raise refusal("header-field-no-integer", "", field=name, text=value, least=lowest)
    return int(number)
