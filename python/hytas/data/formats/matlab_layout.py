"""The elements of a MATLAB v5 file (MAT-File Format, MathWorks 2019).

They are checked before scipy parses them, which crashes the process on a bad tag.
"""

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

# Table 1-1: the numeric data types.
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_TEXT_TYPES = {16, 17, 18}
_MATRIX, _COMPRESSED = 14, 15
_NUMERIC_CLASSES = range(6, 16)
_CLASSES = range(1, 19)
_COMPLEX_FLAG = 0x0800


class _Element(NamedTuple):
    kind: int
    start: int
    size: int


def check_v5(path: Path) -> None:
    """Walk the tags of a version 5 file; compressed elements carry their own checksum.

    Raises:
        ValueError: an element that does not fit the file, or is of no known type or size.
    """
    with path.open("rb") as file:
        order = _byte_order(file)
        if order is None:
            return
        for element in _elements(file, 128, path.stat().st_size, order, pad=False):
            if element.kind == _MATRIX:
                _check_matrix(file, element, order)
            elif element.kind != _COMPRESSED:
                raise ValueError(f"element of type {element.kind} at byte {element.start - 8}")


def _byte_order(file: BinaryIO) -> str | None:
    return {b"IM": "<", b"MI": ">"}.get(file.read(128)[126:])


def _elements(file: BinaryIO, at: int, end: int, order: str, *, pad: bool) -> Iterator[_Element]:
    while at < end:
        file.seek(at)
        tag = file.read(8)
        if len(tag) < 8:
            raise ValueError(f"the file ends inside the tag at byte {at}")
        kind, size = struct.unpack(order + "II", tag)
        if kind >> 16:  # the small format: size and type share a word, and the data is the next
            element, following = _Element(kind & 0xFFFF, at + 4, kind >> 16), at + 8
            fits = element.size <= 4
        else:
            element, following = _Element(kind, at + 8, size), at + 8 + size
            following += -size % 8 if pad else 0
            fits = element.start + size <= end
        if not fits:
            raise ValueError(f"the element at byte {at} runs past its end")
        yield element
        at = following


def _check_matrix(file: BinaryIO, matrix: _Element, order: str) -> None:
    """Check that a matrix's flags, dimensions and data agree; cells and structures stay opaque."""
    parts = list(_elements(file, matrix.start, matrix.start + matrix.size, order, pad=True))
    if not parts or parts[0].size != 8:
        raise ValueError(f"the matrix at byte {matrix.start} has no flags")
    file.seek(parts[0].start)
    flags = struct.unpack(order + "I", file.read(4))[0]
    if flags & 0xFF not in _CLASSES:
        raise ValueError(f"the matrix at byte {matrix.start} is of class {flags & 0xFF}")
    for part in parts:
        if part.kind not in _TYPES and part.kind not in _TEXT_TYPES | {_MATRIX}:
            raise ValueError(f"data of type {part.kind} at byte {part.start}")
    if flags & 0xFF not in _NUMERIC_CLASSES:
        return
    if len(parts) < 3 or parts[1].size % 4 or parts[1].size < 8:
        raise ValueError(f"the matrix at byte {matrix.start} has no dimensions")
    file.seek(parts[1].start)
    shape = struct.unpack(f"{order}{parts[1].size // 4}i", file.read(parts[1].size))
    wanted = 2 if flags & _COMPLEX_FLAG else 1
    if min(shape) < 0 or len(parts) != 3 + wanted:
        raise ValueError(f"the matrix at byte {matrix.start} is incomplete")
    for data in parts[3:]:
        item = np.dtype(_TYPES[data.kind]).itemsize if data.kind in _TYPES else 0
        if data.size != math.prod(shape) * item:
            raise ValueError(f"the matrix at byte {matrix.start} is not of its size {shape}")
