"""NumPy's files: .npy, and .npz, a zip archive of them."""

import zipfile
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from hytas.data.findings import refusal
from hytas.data.limits import bytes_of
from hytas.data.record import Contents, Key, Raw, Variable
from hytas.types import Array


def read_npy(path: Path) -> Contents:
    """Describe the array of a .npy file; its name is that of the file."""
    with path.open("rb") as stream:
        shape, is_fortran, dtype, offset = _header(stream)
    size = bytes_of(shape, dtype.itemsize)
    if offset + size > path.stat().st_size and not dtype.hasobject:
        raise ValueError(f"its array takes {size} bytes")
    axes = tuple(range(len(shape)))[:: -1 if is_fortran else 1]
    stored = shape[::-1] if is_fortran else shape
    raw = None if dtype.hasobject else Raw(str(path), dtype.str, offset, stored, axes)
    read = _nothing if raw is None else raw.read
    variable = Variable.of_type(path.stem, shape, dtype, read, raw=raw)
    return Contents(path, "NumPy npy", (variable,))


def read_npz(path: Path) -> Contents:
    """Describe the arrays of a .npz file by their headers; an array is read on demand."""
    variables = []
    with zipfile.ZipFile(path) as archive:
        members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
        if archive.namelist() and not members:
            raise refusal("unreadable", "", case="zip-without-arrays")
        for member in members:
            with archive.open(member) as stream:
                shape, _, dtype, _ = _header(stream)
            name = member.filename.removesuffix(".npy")
            read = partial(_member, path, name)
            variables.append(Variable.of_type(name, shape, dtype, read, has_parts=False))
    return Contents(path, "NumPy npz", tuple(variables))


def _member(path: Path, name: str, key: Key) -> Array:
    with np.load(path, allow_pickle=False) as archive:
        array = np.asarray(archive[name])
    return array[key]


def _nothing(key: Key) -> Array:
    raise ValueError("an array of objects")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, "np.dtype[Any]", int]:
    """Return shape, whether the order is Fortran's, type, and the bytes of the header."""
    is_first = np.lib.format.read_magic(stream) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    return *read(stream), stream.tell()
