"""ENVI: a text header beside a raw binary cube (BSQ, BIL or BIP), always memory-mapped."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.contents import Array, Contents, Variable, header_nanometres, kind_of, widths_in_nm
from hytas.data.formats.raw import LAYOUTS, read_window
from hytas.data.geo import Geo
from hytas.data.limits import shown
from hytas.errors import InputError

# https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html, "data type"
_DTYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 6: "c8", 9: "c16"}
_DTYPES |= {12: "u2", 13: "u4", 14: "i8", 15: "u8"}
# The axes (lines, samples, bands) as stored.
_INTERLEAVES = {"bsq": "bls", "bil": "lbs", "bip": "lsb"}
MOST_HEADER = 2**24
"""Bytes of a header, at most; a list of 10,000 wavelengths takes a hundredth of this."""
DATA_SUFFIXES = ("", ".img", ".dat", ".raw", ".bsq", ".bil", ".bip", ".bin", ".lan", ".envi")


def matches(head: bytes, path: Path) -> bool:
    """Return whether the file is a header, by its first word, or has a header beside it."""
    return head.lstrip(b"\xef\xbb\xbf").startswith(b"ENVI") or _header_beside(path) is not None


def read(path: Path) -> Contents:
    """Describe an ENVI image, given its header or its data file.

    Raises:
        InputError: the data file or a field is missing, or the size does not fit the header.
    """
    header_path = _header_beside(path) or path
    fields = _fields(header_path)
    header = {name: _split(text) for name, text in fields.items()}
    data_path = path if path != header_path else _data_beside(header_path)
    lines, samples, bands, offset = (
        _integer(header, name, header_path, default, lowest)
        for name, default, lowest in (
            ("lines", 0, 1),
            ("samples", 0, 1),
            ("bands", 1, 1),
            ("header offset", 0, 0),
        )
    )
    dtype = _dtype(header, header_path)
    interleave = str(header.get("interleave", "bsq")).lower()
    if interleave not in _INTERLEAVES:
        raise InputError(f"{header_path}: interleave is {interleave!r}; must be bsq, bil or bip")
    sizes = {"l": lines, "s": samples, "b": bands}
    layout = _INTERLEAVES[interleave]
    stored = tuple(sizes[axis] for axis in layout)
    _check_size(data_path, header_path, offset, sizes, dtype)

    def read_pixels() -> Array:
        memory = np.memmap(data_path, dtype=dtype, mode="r", offset=offset, shape=stored)
        cube = memory.transpose(LAYOUTS[layout])
        return cube[:, :, 0] if bands == 1 else cube

    def window(rows: slice, columns: slice) -> Array:
        with data_path.open("rb") as file:
            size = (lines, samples, bands)
            pixels = read_window(file, dtype, offset, size, layout, rows, columns)
            return pixels[:, :, 0] if bands == 1 else pixels

    shape = (lines, samples) if bands == 1 else (lines, samples, bands)
    name = data_path.stem
    meta = _meta(header, bands, header_path) | _place(fields)
    meta |= {"interleave": interleave, "header": str(header_path)}
    mark, geo = meta.pop("nodata", None), meta.pop("geo", None)
    element = str(dtype.newbyteorder("="))
    variable = Variable(name, shape, element, kind_of(dtype), read_pixels, window, mark, geo)
    return Contents(data_path, f"ENVI {interleave.upper()}", (variable,), meta)


def parse_header(path: Path) -> dict[str, Any]:
    """Return the fields of a header, names in lower case; a braced value is a list of texts.

    Raises:
        InputError: the file is not an ENVI header, or a brace is never closed.
    """
    return {name: _split(text) for name, text in _fields(path).items()}


def _split(text: str) -> str | list[str]:
    return [part.strip() for part in text[1:-1].split(",")] if text.startswith("{") else text


def _fields(path: Path) -> dict[str, str]:
    """Return the fields as written; a value in braces keeps them, and is on one line."""
    if path.stat().st_size > MOST_HEADER:
        raise InputError(f"{path}: an ENVI header has at most {MOST_HEADER} bytes")
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = text.splitlines()
    if not lines or not lines[0].strip().startswith("ENVI"):
        raise InputError(f"{path} is not an ENVI header: its first line must be 'ENVI'")
    fields: dict[str, str] = {}
    rest = iter(lines[1:])
    for line in rest:
        name, equals, value = line.partition("=")
        if not equals or line.startswith(";"):
            continue
        name, value = " ".join(name.lower().split()), value.strip()
        if value.startswith("{"):
            parts = [value]
            while "}" not in parts[-1]:
                more = next(rest, None)
                if more is None:
                    raise InputError(f"{path}: the brace of {shown(name)!r} is never closed")
                parts.append("" if more.startswith(";") else more.strip())
            value = " ".join(filter(None, parts))
            value = value[: value.rindex("}") + 1]
        fields[name] = value
    return fields


def _header_beside(path: Path) -> Path | None:
    if path.suffix.lower() in (
        ".hdr",
        ".mat",
    ):  # a .mat file is MATLAB's, even with a header beside it
        return None
    candidates = (
        path.with_name(path.name + ".hdr"),
        path.with_suffix(".hdr"),
        path.with_name(path.name + ".HDR"),
        path.with_suffix(".HDR"),
    )
    return next((c for c in candidates if c.is_file() and _is_header(c)), None)


def _is_header(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16).lstrip(b"\xef\xbb\xbf").startswith(b"ENVI")


def _data_beside(header: Path) -> Path:
    stem = header.with_suffix("")
    for suffix in DATA_SUFFIXES:
        for name in (stem.name + suffix, stem.name + suffix.upper()):
            if (header.parent / name).is_file():
                return header.parent / name
    wanted = ", ".join(stem.name + suffix for suffix in DATA_SUFFIXES[:4])
    raise InputError(f"{header} is an ENVI header without its data file: looked for {wanted} ...")


def _integer(header: dict[str, Any], name: str, path: Path, default: int, lowest: int) -> int:
    value = header.get(name, str(default))
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = lowest - 1
    if number < lowest:
        raise InputError(f"{path}: {name!r} is {value}; must be an integer of at least {lowest}")
    return number


def _dtype(header: dict[str, Any], path: Path) -> np.dtype[Any]:
    code = _integer(header, "data type", path, 0, 1)
    if code not in _DTYPES:
        raise InputError(f"{path}: 'data type' is {code}; must be one of {sorted(_DTYPES)}")
    order = _integer(header, "byte order", path, 0, 0)
    if order not in (0, 1):
        raise InputError(f"{path}: 'byte order' is {order}; must be 0 (little) or 1 (big endian)")
    return np.dtype((">" if order else "<") + _DTYPES[code])


def _check_size(
    data: Path, header: Path, offset: int, sizes: dict[str, int], dtype: np.dtype[Any]
) -> None:
    wanted = offset + math.prod(sizes.values()) * dtype.itemsize
    size = data.stat().st_size
    if size != wanted:
        wrong = "is truncated" if size < wanted else "is too long"
        raise InputError(
            f"{data} {wrong} or does not belong to {header.name}: it holds {size} bytes, the "
            f"header needs {wanted} (offset {offset} + {sizes['l']} lines x {sizes['s']} samples x "
            f"{sizes['b']} bands x {dtype.itemsize} bytes){_remedy(size - offset, sizes, dtype)}"
        )


def _remedy(size: int, sizes: dict[str, int], dtype: np.dtype[Any]) -> str:
    """Suggest the one field that would make the header fit the file, if there is one."""
    values = math.prod(sizes.values())
    for code, text in _DTYPES.items():
        if values * np.dtype(text).itemsize == size and code != 1:
            return f"; it would fit 'data type = {code}' ({np.dtype(text)})"
    for axis, name in (("b", "bands"), ("l", "lines")):
        others = values // sizes[axis] * dtype.itemsize
        if size > 0 and size % others == 0:
            return f"; it would fit '{name} = {size // others}'"
    longer = size > values * dtype.itemsize
    return "; correct the header, or cut the file to its size" if longer else ""


def _meta(header: dict[str, Any], bands: int, path: Path) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if "wavelength" in header:
        listed, units = header["wavelength"], str(header.get("wavelength units", ""))
        listed = listed if isinstance(listed, list) else [listed]
        found, reason = header_nanometres(listed, bands, units)
        if found is not None:
            meta["wavelengths"] = found
            widths = widths_in_nm(header.get("fwhm"), np.array(listed), bands)
            meta |= {} if widths is None else {"fwhm": widths}
        elif bands > 1:  # a map often has the list of the cube that it comes from
            meta["notes"] = (f"{path}: its list of wavelengths is not used: {reason}",)
    if isinstance(header.get("class names"), list):
        meta["class_names"] = dict(enumerate(header["class names"]))
    colours = _colours(header.get("class lookup"))
    if colours:
        meta["class_colours"] = colours
    flags = header.get("bbl")
    if isinstance(flags, list) and len(flags) == bands:
        meta["bad_bands"] = tuple(i for i, flag in enumerate(flags) if flag.strip() in ("0", "0.0"))
    if "data ignore value" in header:
        mark = header["data ignore value"]
        try:
            meta["nodata"] = float(mark)
        except (TypeError, ValueError):
            raise InputError(f"{path}: 'data ignore value' is {mark}; a number is needed") from None
    return meta


def _colours(listed: Any) -> dict[int, tuple[int, int, int]]:
    """Return red, green and blue of each class number; nothing if the list has another form."""
    if not isinstance(listed, list) or len(listed) % 3:
        return {}
    if not all(text.isascii() and text.isdigit() and int(text) < 256 for text in listed):
        return {}
    levels = [int(text) for text in listed]
    threes = zip(levels[::3], levels[1::3], levels[2::3], strict=True)
    return dict(enumerate(threes))


def _place(fields: dict[str, str]) -> dict[str, Any]:
    """Return the position on the earth with the header's own text, so that maps keep it."""
    names = ("map info", "coordinate system string", "projection info")
    geo = Geo.from_envi(
        {name: fields[name].removeprefix("{").removesuffix("}") for name in names if name in fields}
    )
    return {} if geo is None else {"geo": geo}
