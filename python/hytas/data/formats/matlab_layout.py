"""Check the elements of a MATLAB v4 or v5 file (MAT-File Format, MathWorks 2019).

This happens before scipy parses them, because a bad tag crashes scipy and the process.
"""

import io
import math
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from hytas.data.limits import check_count

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
_INT8, _INT32, _MATRIX, _COMPRESSED = 1, 5, 14, 15
_NUMERIC_CLASSES = range(6, 16)
_CLASSES = range(1, 19)
_OPAQUE_CLASSES = (16, 17, 18)  # functions and objects, whose parts the manual does not describe
_COMPLEX_FLAG = 0x0800
_MOST_DIMENSIONS = 32
_HEAD = 16384  # bytes at the start of a compressed matrix that must hold the tag of its data
_HEAD_PARTS = 4  # flags, dimensions, name, and the data or its real part
_MARKS = {b"IM": "<", b"MI": ">"}
_SIZES_V4 = {0: 8, 1: 4, 2: 4, 3: 2, 4: 2, 5: 1}


class _Element(NamedTuple):
    kind: int
    start: int
    size: int


class Values(NamedTuple):
    """Sizes of one variable: bytes in memory, bytes in the file, and whether it is complex."""

    size: int
    stored: int
    is_complex: bool


def check(path: Path) -> list[Values]:
    """Check the elements of a version 4 or 5 file, and return the sizes of each.

    Raises:
        ValueError: an element does not fit the file, or its type or size is unknown.
        InputError: there are too many elements.
    """
    with path.open("rb") as file:
        head = file.read(128)
        end = path.stat().st_size
        # scipy knows the version from the first bytes only, so this check does the same.
        walk = _walk_v4 if 0 in head[:4] else _walk_v5
        found = []
        for values in walk(file, head, end):
            found.append(values)
            check_count(len(found), "variables")
        return found


def _walk_v4(file: BinaryIO, head: bytes, end: int) -> Iterator[Values]:
    order = "<" if 0 <= struct.unpack("<i", head[:4].ljust(4, b"\0"))[0] < 5000 else ">"
    at = 0
    while at < end:
        file.seek(at)
        header = file.read(20)
        if len(header) < 20:
            raise ValueError(f"the file ends inside the header at byte {at}")
        kind, rows, columns, imaginary, length = struct.unpack(order + "5i", header)
        item = _SIZES_V4.get(kind // 10 % 10)
        if not 0 <= kind < 5000 or item is None or kind % 10 > 2 or imaginary not in (0, 1):
            raise ValueError(f"the matrix at byte {at} is of type {kind}")
        size = rows * columns * item * (1 + imaginary)
        if min(rows, columns) < 0 or length < 1 or at + 20 + length + size > end:
            raise ValueError(f"the matrix at byte {at} is not of its size {rows, columns}")
        yield Values(size, size, imaginary == 1)
        at += 20 + length + size


def _walk_v5(file: BinaryIO, head: bytes, end: int) -> Iterator[Values]:
    order = _MARKS.get(head[126:128])
    if order is None:
        raise ValueError("the mark of its byte order is neither IM nor MI")
    for element in _elements(file, 128, end, order, pad=False):
        if element.kind == _COMPRESSED:
            stream, matrix = _inflated_head(file, element, order)
            size, is_complex = _check_matrix(stream, matrix, order)
        elif element.kind == _MATRIX:
            size, is_complex = _check_matrix(file, element, order)
        else:
            raise ValueError(f"element of type {element.kind} at byte {element.start - 8}")
        yield Values(size, element.size, is_complex)


def _elements(file: BinaryIO, at: int, end: int, order: str, *, pad: bool) -> Iterator[_Element]:
    while at < end:
        file.seek(at)
        tag = file.read(8)
        if len(tag) < 8:
            raise ValueError(f"the file ends inside the tag at byte {at}")
        kind, size = struct.unpack(order + "II", tag)
        if (
            kind >> 16
        ):  # small format: size and type share a word, and the data are in the next word
            element, following = _Element(kind & 0xFFFF, at + 4, kind >> 16), at + 8
            fits = element.size <= 4 and pad  # only parts may use it
        else:
            element, following = _Element(kind, at + 8, size), at + 8 + size
            following += -size % 8 if pad else 0
            fits = element.start + size <= end
        if not fits:
            raise ValueError(f"the element at byte {at} runs past its end")
        yield element
        at = following


def _inflated_head(file: BinaryIO, element: _Element, order: str) -> tuple[BinaryIO, _Element]:
    """Return the start of a compressed element, and the matrix in it."""
    file.seek(element.start)
    packed = file.read(min(element.size, _HEAD))
    try:
        head = zlib.decompressobj().decompress(packed, _HEAD)
    except zlib.error as error:
        raise ValueError(f"the element at byte {element.start - 8}: {error}") from None
    stream = io.BytesIO(head)
    matrix = next(_elements(stream, 0, 2**33, order, pad=False))
    if matrix.kind != _MATRIX:
        raise ValueError(
            f"the element at byte {element.start - 8} holds an element of type {matrix.kind}, no "
            "matrix"
        )
    return stream, matrix


def _check_matrix(file: BinaryIO, matrix: _Element, order: str) -> tuple[int, bool]:
    """Check that flags, dimensions and data of a matrix agree; skip cells and structures.

    Returns:
        The bytes of its values, 0 if they are not numbers, and whether they are complex.
    """
    end = matrix.start + matrix.size
    parts = list(islice(_elements(file, matrix.start, end, order, pad=True), _HEAD_PARTS))
    if not parts or parts[0].size != 8:
        raise ValueError(f"the matrix at byte {matrix.start} has no flags")
    file.seek(parts[0].start)
    flags = struct.unpack(order + "I", _read(file, 4))[0]
    if flags & 0xFF not in _CLASSES:
        raise ValueError(f"the matrix at byte {matrix.start} is of class {flags & 0xFF}")
    for part in parts:
        if part.kind not in _TYPES and part.kind not in _TEXT_TYPES | {_MATRIX}:
            raise ValueError(f"data of type {part.kind} at byte {part.start}")
    if flags & 0xFF in _OPAQUE_CLASSES:
        return 0, False
    shape = _dimensions(file, matrix, parts, order)
    if flags & 0xFF not in _NUMERIC_CLASSES:
        return 0, False
    if len(parts) < _HEAD_PARTS:
        raise ValueError(f"the matrix at byte {matrix.start} is incomplete")
    data, is_complex = parts[3], bool(flags & _COMPLEX_FLAG)
    item = np.dtype(_TYPES[data.kind]).itemsize if data.kind in _TYPES else 0
    if data.size != math.prod(shape) * item:
        raise ValueError(f"the matrix at byte {matrix.start} is not of its size {shape}")
    return data.size * (2 if is_complex else 1), is_complex


def _dimensions(
    file: BinaryIO, matrix: _Element, parts: list[_Element], order: str
) -> tuple[int, ...]:
    size = parts[1].size if len(parts) > 1 else 0
    if len(parts) < 3 or size % 4 or not 8 <= size <= 4 * _MOST_DIMENSIONS:
        raise ValueError(f"the matrix at byte {matrix.start} has no dimensions")
    if parts[1].kind != _INT32 or parts[2].kind not in (_INT8, *_TEXT_TYPES):
        raise ValueError(f"the matrix at byte {matrix.start} has no dimensions or no name")
    file.seek(parts[1].start)
    shape: tuple[int, ...] = struct.unpack(f"{order}{size // 4}i", _read(file, size))
    if min(shape) < 0:
        raise ValueError(f"the matrix at byte {matrix.start} is incomplete: its size is {shape}")
    return shape


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise ValueError("the file ends inside a matrix")
    return data
