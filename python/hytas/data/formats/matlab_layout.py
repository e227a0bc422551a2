"""The elements of a MATLAB v5 file (MAT-File Format, MathWorks 2019).

They are checked before scipy parses them, which crashes the process on a bad tag; and a matrix too
large for memory is copied out plane by plane, which scipy cannot.
"""

import math
import struct
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from hytas.data.contents import Array
from hytas.data.formats.raw import read_window

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
_BLOCK = 2**20


class _Element(NamedTuple):
    kind: int
    start: int
    size: int


class Planes:
    """A matrix (H, W, B) copied to a nameless temporary file as (B, H, W), native byte order."""

    def __init__(self, file: Any, dtype: np.dtype[Any], shape: tuple[int, int, int]) -> None:
        """Take over the temporary file, which is closed and so removed with this object."""
        self.file, self.dtype, self.shape = file, dtype, shape
        weakref.finalize(self, file.close)

    def window(self, rows: slice, columns: slice) -> Array:
        """Return the pixels (h, w, B) of a window."""
        return read_window(self.file, self.dtype, 0, self.shape, "bls", rows, columns)


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


def copy_planes(path: Path, name: str) -> Planes:
    """Copy a numeric matrix (H, W, B) out of a checked file, one band in memory at a time.

    Raises:
        ValueError: the compressed data is broken.
        KeyError: there is no such matrix.
        OSError: the temporary file cannot be written.
    """
    with path.open("rb") as file:
        order = _byte_order(file)
        assert order is not None  # version 4 holds no cubes
        for element in _elements(file, 128, path.stat().st_size, order, pad=False):
            chunks = _chunks(file, element)
            head = next(chunks)
            # The matrix's tag comes first in what was compressed, and before what was not.
            size = struct.unpack(order + "I", head[4:8])[0]
            parts = list(_first(_elements(BytesIO(head), 8, 8 + size, order, pad=True), 4))
            if len(parts) == 4 and _bytes(head, parts[2]) == name.encode():
                shape = struct.unpack(order + "3i", _bytes(head, parts[1]))
                dtype = np.dtype(order + _TYPES[parts[3].kind])
                return _write_planes(head[parts[3].start :], chunks, shape, dtype)
    raise KeyError(name)


def _byte_order(file: BinaryIO) -> str | None:
    return {b"IM": "<", b"MI": ">"}.get(file.read(128)[126:])


def _bytes(head: bytes, part: _Element) -> bytes:
    return head[part.start : part.start + part.size]


def _first(parts: Iterator[_Element], count: int) -> Iterator[_Element]:
    for _, part in zip(range(count), parts, strict=False):
        yield part


def _chunks(file: BinaryIO, element: _Element) -> Iterator[bytes]:
    """Yield the bytes of a matrix element, its tag included, inflated."""
    if element.kind == _MATRIX:
        file.seek(element.start - 8)
        left = element.size + 8
        while left:
            yield (block := file.read(min(left, _BLOCK)))
            left -= len(block)
        return
    inflater = zlib.decompressobj()
    file.seek(element.start)
    left = element.size
    while left:
        block = file.read(min(left, _BLOCK))
        left -= len(block)
        while block:
            yield inflater.decompress(block, _BLOCK)
            block = inflater.unconsumed_tail


def _write_planes(
    first: bytes, chunks: Iterator[bytes], shape: tuple[int, int, int], dtype: np.dtype[Any]
) -> Planes:
    height, width, bands = shape
    plane = height * width * dtype.itemsize
    file = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the Planes
    held = bytearray(first)
    native = dtype.newbyteorder("=")
    for _ in range(bands):
        while len(held) < plane:
            chunk = next(chunks, None)
            if chunk is None:
                raise ValueError("the compressed data ends early")
            held += chunk
        # Column-major, as MATLAB stores: a plane is (W, H) row-major.
        values = np.frombuffer(bytes(held[:plane]), dtype).reshape(width, height)
        file.write(np.ascontiguousarray(values.T, dtype=native).tobytes())
        del held[:plane]
    file.flush()
    return Planes(file, native, shape)


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
