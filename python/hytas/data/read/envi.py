"""Headers of ENVI: all facts besides the pixels, which GDAL reads.

https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import Finding, refusal, warning
from hytas.data.interpret.wavelengths import items_of
from hytas.data.limits import by
from hytas.data.record import Raw
from hytas.errors import InputError

# "data type": complex numbers are refused later, by their kind.
_DTYPES = {"1": "u1", "2": "i2", "3": "i4", "4": "f4", "5": "f8", "6": "c8", "9": "c16"}
_DTYPES |= {"12": "u2", "13": "u4", "14": "i8", "15": "u8"}
INTERLEAVES = {"bsq": ("band", "y", "x"), "bil": ("y", "band", "x"), "bip": ("y", "x", "band")}
"""The order of bands, rows and columns in the file."""
DATA_SUFFIXES = (
    *(".img", ".dat", ".raw", ".bsq", ".bil", ".bip", ".bin", ".lan", ".envi"),
    *(".rfl", ".rdn"),
)
_FIRST = b"ENVI"
# GDAL has these fields as well, but without line ends, with comments, and without Latin-1.
_FIELD = re.compile(r"^([^={}\n]+)=[ \t]*(\{[^}]*\}|[^\n]*)", re.MULTILINE)
_LATIN = "no UTF-8"
"""Field of headers that are read as Latin-1; no header can have it."""


def matches(path: Path) -> bool:
    """Return whether a file is an ENVI header, or has one next to it."""
    return is_header(path) or header_of(path) is not None


def is_header(path: Path) -> bool:
    """Return whether a file is an ENVI header, by its first word."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_FIRST)) == _FIRST


def header_of(path: Path) -> Path | None:
    """Return the ENVI header of a data file, or None; the one of two that GDAL takes."""
    if path.suffix.lower() == ".hdr":
        return None
    names = (f"{path.stem}.hdr", f"{path.stem}.HDR", f"{path.name}.hdr", f"{path.name}.HDR")
    headers = (path.with_name(name) for name in names)
    return next((header for header in headers if is_header(header)), None)


def data_of(header: Path) -> Path:
    """Return the data file of a header: of those with its name the one with the size it says."""
    stem, fields = header.with_suffix("").name, fields_of(header)
    files = [path for path in sorted(header.parent.iterdir()) if stem in (path.name, path.stem)]
    files = [path for path in files if path.is_file() and path.suffix.lower() != ".hdr"]
    if not files:
        raise refusal("file-missing", "", case="data", stem=stem)
    if len(files) > 1:
        sizes = [_whole(fields, name, "1") for name in ("samples", "lines", "bands")]
        end = _whole(fields, "header offset") + math.prod(sizes) * _dtype(fields).itemsize
        fitting = [path for path in files if path.stat().st_size == end]
        if len(fitting) > 1:
            names = [path.name for path in fitting]
            raise refusal("several", "", case="files", names=names)
        files = fitting or sorted(files, key=lambda one: one.suffix.lower() not in DATA_SUFFIXES)
    return files[0]


def fields_of(path: Path) -> dict[str, str]:
    """Return the fields of a header as written; a value in braces keeps them, and its lines."""
    content, encoding = path.read_bytes(), {}
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text, encoding = content.decode("latin-1"), {_LATIN: "yes"}
    text = re.sub(r"^;.*\n?", "", "\n".join(text.splitlines()), flags=re.MULTILINE)
    found = (
        (" ".join(name.lower().split()), value.strip()) for name, value in _FIELD.findall(text)
    )
    return dict(found) | encoding


def dark_frames(fields: Mapping[str, str]) -> int:
    """Return the number of lines at the end of a capture that its camera recorded in the dark."""
    texts = [fields.get(name, "") for name in ("autodarkstartline", "lines")]
    numbers = (re.fullmatch(r"\s*(\d{1,15})(\.0*)?\s*", text) for text in texts)
    start, lines = (0 if number is None else int(number[1]) for number in numbers)
    return lines - start if 0 < start < lines else 0


def interleave_of(fields: Mapping[str, str]) -> str:
    """Return a name of `INTERLEAVES`."""
    return _known(fields, "interleave", {name: name for name in INTERLEAVES}, "bsq")


def raw_of(
    fields: Mapping[str, str], shape: tuple[int, ...], data: Path
) -> tuple[Raw | None, list[Finding]]:
    """Return where the values of an image lie, and findings; None if the file is compressed.

    Args:
        shape: bands, rows, columns.
    """
    for name in ("major frame offsets", "minor frame offsets"):
        if any(item.strip("0.") for item in items_of(fields.get(name, ""))):
            raise _wrong(name, fields[name], "no-frames")
    sizes = dict(zip(("band", "y", "x"), shape, strict=True))
    stored = tuple(sizes[name] for name in INTERLEAVES[interleave_of(fields)])
    offset, dtype = _whole(fields, "header offset"), _dtype(fields)
    if fields.get("file compression", "0").strip() not in ("", "0"):
        return None, []
    size, needed = data.stat().st_size, offset + math.prod(stored) * dtype.itemsize
    facts: dict[str, Any] = {"name": data.name, "bytes": size, "needed": needed, "offset": offset}
    facts |= {"size": by(stored), "type": str(dtype)}
    if size < needed:
        raise refusal("envi-of-other-size", "", **facts)
    findings = [] if size == needed else [warning("envi-of-other-size", **facts)]
    if "interleave" not in fields and shape[0] > 1:
        facts = {"sizes": by(shape), "order": ["bands", "height", "width"]}
        findings.append(warning("axes-guessed", case="no-interleave", **facts))
    return Raw(str(data), dtype.str, offset, stored, (0, 1, 2)), findings


def _dtype(fields: Mapping[str, str]) -> "np.dtype[np.generic]":
    order = _known(fields, "byte order", {"0": "<", "1": ">"}, "0")
    return np.dtype(order + _known(fields, "data type", _DTYPES, "nothing"))


def _wrong(field: str, text: str, case: str, **facts: str) -> InputError:
    return refusal("value-wrong", "", case=case, field=field, text=text, **facts)


def _known(fields: Mapping[str, str], name: str, known: Mapping[str, str], usual: str) -> str:
    text = fields.get(name, usual).partition(";")[0].strip().lower().removesuffix(".0")
    if text not in known:
        raise _wrong(name, text, "choice", choices=", ".join(known))
    return known[text]


def _whole(fields: Mapping[str, str], name: str, usual: str = "0") -> int:
    text = fields.get(name, usual).partition(";")[0]
    if not re.fullmatch(r"\s*\d{1,15}(\.0*)?\s*", text):
        raise _wrong(name, text, "whole-number")
    return int(float(text))


def classes_of(
    fields: Mapping[str, str], findings: list[Finding]
) -> tuple[dict[int, str], dict[int, tuple[int, int, int]]]:
    """Return names and colours of the classes by label; findings are added."""
    return _class_names(fields, findings), _class_colours(fields.get("class lookup", ""))


def is_list_of_numbers(text: str) -> bool:
    """Return whether a text lists several numbers."""
    items = items_of(text)
    return len(items) > 1 and all(item.replace(".", "", 1).isdecimal() for item in items)


def first_of(fields: Mapping[str, str], *names: str) -> str | None:
    """Return the first of the fields that is not empty, or None."""
    return next((fields[name] for name in names if fields.get(name, "").strip(" {}[]")), None)


def _class_names(fields: Mapping[str, str], findings: list[Finding]) -> dict[int, str]:
    text = fields.get("class names", "")
    if not text.startswith("{"):
        return {}
    if _LATIN in fields and not text.isascii():
        findings.append(warning("texts-not-utf-8"))
    inner, count = text.strip("{}").strip().rstrip(","), fields.get("classes", "").strip()
    # A name may hold a comma: each has a line of its own, or its rest begins with a small letter.
    for parts in (inner.split(","), inner.splitlines(), re.split(r",(?!\s*[a-z])", inner)):
        names = [" ".join(part.split()).rstrip(",") for part in parts]
        if not count.isdecimal() or int(count) == len(names):
            return dict(enumerate(names))
    counts: dict[str, Any] = {"count": len(inner.split(",")), "classes": count}
    findings.append(warning("not-used", case="class-names-of-file", **counts))
    return {}


def _class_colours(text: str) -> dict[int, tuple[int, int, int]]:
    items = items_of(text)
    if len(items) % 3 or not all(item.isascii() and item.isdigit() for item in items):
        return {}
    levels = [int(item[:6]) for item in items]
    if any(level > 255 for level in levels):
        return {}
    return dict(enumerate(zip(levels[::3], levels[1::3], levels[2::3], strict=True)))


def ignored_value(fields: Mapping[str, str], findings: list[Finding]) -> float | None:
    """Return the no-data value, or None; a finding is added."""
    text = first_of(fields, "data ignore value")
    if text is None:
        return None
    plain = text.strip("{} ")
    try:
        return math.nan if "#" in plain else float(plain)  # Windows writes NaN with #
    except ValueError:
        findings.append(warning("not-used", case="nodata", value=text))
        return None
