"""Delta files: what turns one model file into another, to the byte.

An uplink is narrow, so a delta holds what changed alone, and is compressed.
`deploy/onboard/delta.cpp` applies it, too. Its layout, in which numbers are protobuf's varints:

    magic | SHA-256 of the old file | SHA-256 of the new file
    number of bytes of the operations | the operations by deflate (RFC 1951)
    SHA-256 of all of this

The operations begin with the length of the new file. Each appends to it:

    0, length, position               a copy from the old file
    1, length, bytes                  new bytes
    2, count, position, bytes         floats of the old file, XOR these bytes: first the lowest byte
                                      of every float, then the next one of every float ...
    3, count, position, bits, bytes   floats of the old file, plus scale times level: a scale
                                      (float32) for every 256 floats, then levels of 4 or 8 bits,
                                      of which 2 ** (bits - 1) is zero
"""

import bz2
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.deploy.model_file import MOST_MODEL_BYTES, sealed
from hytas.errors import InputError, library

DELTA_MAGIC = b"HYTASDELTA2\n"
DIGEST = 32
"""Bytes of a SHA-256."""
GROUP = 256
"""Floats that share a scale."""
COPY, FRESH, XOR, ADD = range(4)
_WORST = 2
"""Bytes of operations for a byte of the new file, at most; more are refused before inflating."""


class Rounded(NamedTuple):
    """A rounded difference of a tensor: bits of a level, scales (groups) and levels (values)."""

    bits: int
    scales: npt.NDArray[np.float32]
    levels: npt.NDArray[np.int16]


class Change(NamedTuple):
    """A tensor with other values in the new file.

    Attributes:
        start: its first byte in the old file.
        end: the byte behind its last one in the old file.
        values: its bytes in the new file.
        operation: what makes them from the old ones.
    """

    start: int
    end: int
    values: bytes
    operation: bytes


def make_delta(old: bytes, new: bytes, rounded: Mapping[str, Rounded] | None = None) -> bytes:
    """Return the delta from one model file to another.

    Args:
        rounded: what `round_difference` returned with `new`, if it is rounded.
    """
    operations = b"".join([_number(len(new)), *_operations(old, new, rounded or {})])
    whole = _number(len(new)) + _fresh(new)
    packed = min((deflated(choice) for choice in (operations, whole)), key=len)
    body = DELTA_MAGIC + hashlib.sha256(old).digest() + hashlib.sha256(new).digest() + packed
    return body + hashlib.sha256(body).digest()


def deflated(operations: bytes) -> bytes:
    """Return the operations of a delta as it holds them: their length, and them compressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return _number(len(operations)) + packer.compress(operations) + packer.flush()


def _operations(old: bytes, new: bytes, rounded: Mapping[str, Rounded]) -> Iterator[bytes]:
    """Yield the operations that make the new file.

    bsdiff aligns the files once the old one has the new values of the tensors.
    """
    changes, base = _changes(old, new, rounded), bytearray(old)
    for change in changes:
        base[change.start : change.end] = change.values
    position = place = 0  # in the old file, and in the new one
    for aligned, fresh, seek in _alignment(bytes(base), new):
        yield from _aligned(old, new, position, position + aligned, place - position, changes)
        place += aligned
        yield from [_fresh(new[place : place + fresh])] if fresh else []
        position, place = position + aligned + seek, place + fresh


def _alignment(old: bytes, new: bytes) -> list[list[int]]:
    """Return lengths of aligned bytes and of new bytes, and how far to seek then in the old file.

    They are the control block of a file in the format BSDIFF40, whose numbers have a sign bit.
    """
    patch = library("bsdiff4", "new", "a delta").diff(old, new)
    length = int.from_bytes(patch[8:16], "little")
    numbers = np.frombuffer(bz2.decompress(patch[32 : 32 + length]), "<u8")
    sizes = (numbers & np.uint64(2**63 - 1)).astype(np.int64)
    return np.where(numbers >> np.uint64(63), -sizes, sizes).reshape(-1, 3).tolist()


def _changes(old: bytes, new: bytes, rounded: Mapping[str, Rounded]) -> list[Change]:
    """Return the tensors of both files that have other values, in their order in the old file."""
    after = {name: tensor.raw_data for name, tensor in _tensors(_parsed(new).graph)}
    changes, end = [], 0
    for name, tensor in _tensors(_parsed(old).graph):
        before, values = tensor.raw_data, after.get(name, b"")
        start = old.index(before, end)
        end = start + len(before)
        if values != before and len(values) == len(before):
            head = [_number(len(before) // 4), _number(start)]
            if name in rounded:
                operation = b"".join([_number(ADD), *head, *_levels(rounded[name])])
            else:
                operation = b"".join([_number(XOR), *head, _planes(before, values)])
            changes.append(Change(start, end, values, operation))
    return changes


def _parsed(content: bytes) -> Any:
    """Return the ONNX model of a file; an empty one of another file."""
    onnx = library("onnx", "new", "a delta")
    try:
        return onnx.load_model_from_string(content)
    except library("google.protobuf.message", "new", "a delta", "protobuf").DecodeError:
        return onnx.ModelProto()


def _tensors(graph: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the float32 tensors of a graph in the order of the file: those of loops come first."""
    for number, node in enumerate(graph.node):
        for attribute in node.attribute:
            yield from _tensors(attribute.g, f"{prefix}{number} ")
    for tensor in graph.initializer:
        if tensor.data_type == tensor.FLOAT and tensor.raw_data:
            yield prefix + tensor.name, tensor


def _aligned(
    old: bytes, new: bytes, start: int, end: int, shift: int, changes: Sequence[Change]
) -> Iterator[bytes]:
    """Yield the operations of new bytes that lie `shift` behind the old bytes `start` to `end`."""
    for change in changes:
        values = new[max(0, change.start + shift) : max(0, change.end + shift)]
        if start <= change.start and change.end <= end and values == change.values:
            yield from _shared(old, new, start, change.start, shift)
            yield change.operation
            start = change.end
    yield from _shared(old, new, start, end, shift)


def _shared(old: bytes, new: bytes, start: int, end: int, shift: int) -> Iterator[bytes]:
    before, after = old[start:end], new[start + shift : end + shift]
    whole = len(before) // 4 * 4
    if before == after:
        yield _number(COPY) + _number(len(before)) + _number(start)
    else:
        planes = _planes(before[:whole], after[:whole])
        yield _number(XOR) + _number(whole // 4) + _number(start) + planes
        yield _fresh(after[whole:])


def _fresh(content: bytes) -> bytes:
    return _number(FRESH) + _number(len(content)) + content


def _planes(before: bytes, after: bytes) -> bytes:
    """Return the XOR of floats, byte by byte of the floats: high bytes are mostly 0."""
    left, right = (np.frombuffer(content, np.uint8).reshape(-1, 4) for content in (before, after))
    return (left ^ right).T.tobytes()


def _levels(rounded: Rounded) -> Iterator[bytes]:
    yield _number(rounded.bits)
    yield rounded.scales.astype("<f4").tobytes()
    stored = (rounded.levels + 2 ** (rounded.bits - 1)).astype(np.uint8)
    if rounded.bits == 4:
        stored = np.append(stored, np.zeros(len(stored) % 2, np.uint8)).reshape(-1, 2)
        stored = stored[:, 0] | stored[:, 1] << 4
    yield stored.tobytes()


def apply_delta(old: bytes, delta: bytes, name: str | Path = "delta") -> bytes:
    """Return the new file.

    Args:
        name: what messages call it.
    """
    body = delta[:-DIGEST]
    if not delta.startswith(DELTA_MAGIC) or len(delta) < len(DELTA_MAGIC) + 3 * DIGEST:
        raise InputError("delta", name, "must be a delta of hytas")
    if hashlib.sha256(body).digest() != delta[-DIGEST:]:
        rule = "is damaged: its checksum is not that of its content"
        raise InputError("delta", name, rule)
    at = len(DELTA_MAGIC)
    wanted, made = body[at : at + DIGEST], body[at + DIGEST : at + 2 * DIGEST]
    if hashlib.sha256(old).digest() != wanted:
        raise InputError(
            "delta",
            name,
            f"is for another model: it needs the file with SHA-256 {wanted.hex()}, and this one "
            f"has {hashlib.sha256(old).hexdigest()}",
        )
    try:
        new = _applied(old, _inflated(body, at + 2 * DIGEST))
    except (IndexError, ValueError, zlib.error):
        new = b""
    if hashlib.sha256(new).digest() != made:
        rule = "is damaged: it does not give the file that it promises"
        raise InputError("delta", name, rule)
    return new


def _inflated(body: bytes, at: int) -> bytes:
    length, at = _read(body, at)
    if not 0 < length <= _WORST * MOST_MODEL_BYTES:
        raise ValueError("longer than any model")
    operations = zlib.decompressobj(-zlib.MAX_WBITS).decompress(body[at:], length)
    if len(operations) != length:
        raise ValueError("shorter than it says")
    return operations


def _applied(old: bytes, body: bytes) -> bytes:
    length, at = _read(body, 0)
    if length > MOST_MODEL_BYTES:
        raise ValueError("longer than any model")
    new = bytearray()
    while at < len(body):
        kind, at = _read(body, at)
        if kind not in (COPY, FRESH, XOR, ADD):
            raise ValueError("an unknown operation")
        count, at = _read(body, at)
        position, at = (0, at) if kind == FRESH else _read(body, at)
        bits, at = _read(body, at) if kind == ADD else (0, at)
        size = count * (4 if kind in (XOR, ADD) else 1)
        stored = {COPY: 0, FRESH: count, XOR: size, ADD: _stored(count, bits)}[kind]
        if position + size > len(old) and kind != FRESH:
            raise ValueError("runs past the end of the old file")
        if at + stored > len(body) or len(new) + size > length:
            raise ValueError("runs past the end")
        source, given = old[position : position + size], body[at : at + stored]
        if kind == XOR:
            planes = np.frombuffer(given, np.uint8).reshape(4, count)
            given = (np.frombuffer(source, np.uint8).reshape(count, 4) ^ planes.T).tobytes()
        elif kind == ADD:
            given = _added(source, given, count, bits)
        new += source if kind == COPY else given
        at += stored
    return bytes(new)


def _stored(count: int, bits: int) -> int:
    """Return the bytes of the scales and levels of `count` floats."""
    if bits not in (0, 4, 8):
        raise ValueError("levels of other than 4 or 8 bits")
    return 4 * -(-count // GROUP) + -(-count * bits // 8)


def _added(source: bytes, given: bytes, count: int, bits: int) -> bytes:
    groups = -(-count // GROUP)
    scales = np.frombuffer(given, "<f4", groups).astype(np.float32)
    stored = np.frombuffer(given, np.uint8, offset=4 * groups)
    if bits == 4:
        stored = np.stack([stored & 15, stored >> 4], axis=1).ravel()[:count]
    levels = stored.astype(np.int16) - 2 ** (bits - 1)
    before = np.frombuffer(source, "<f4").astype(np.float32)
    return _sum(before, scales, levels).astype("<f4").tobytes()


def _sum(
    before: npt.NDArray[np.float32], scales: npt.NDArray[np.float32], levels: npt.NDArray[np.int16]
) -> npt.NDArray[np.float32]:
    """Return floats plus scale times level; the product and the sum are each rounded to float32."""
    added = np.repeat(scales, GROUP)[: len(levels)] * levels.astype(np.float32)
    return before + added


def round_difference(old: bytes, new: bytes, bits: int) -> tuple[bytes, dict[str, Rounded]]:
    """Return a new model whose tensors differ from the old one's by rounded values.

    Args:
        new: a model file of the same network.
        bits: of a rounded value, 4 or 8.

    Returns:
        The model file with its own checksum, and what `make_delta` needs.
    """
    model, before, rounded = _parsed(new), dict(_tensors(_parsed(old).graph)), {}
    for name, tensor in _tensors(model.graph):
        if name not in before or len(before[name].raw_data) != len(tensor.raw_data):
            continue
        left, right = (
            np.frombuffer(values.raw_data, "<f4").astype(np.float32)
            for values in (before[name], tensor)
        )
        difference = right - left
        if not difference.any() or not np.isfinite(difference).all():
            continue
        rounded[name] = _rounded(difference, bits)
        tensor.raw_data = _sum(left, *rounded[name][1:]).astype("<f4").tobytes()
    return sealed(model.SerializeToString(deterministic=True)), rounded


def _rounded(difference: npt.NDArray[np.float32], bits: int) -> Rounded:
    """Round to levels; of several scales, take the one with the smallest squared error a group."""
    most = 2 ** (bits - 1) - 1
    groups = -(-len(difference) // GROUP)
    values = np.zeros((groups, GROUP), np.float32)
    values.ravel()[: len(difference)] = difference
    largest = np.abs(values).max(axis=1)
    best = np.full(groups, np.inf)
    scales = np.ones(groups, np.float32)
    for fraction in (1.0, 0.9, 0.8, 0.7, 0.6):
        tried = np.where(largest > 0, fraction * largest / most, 1.0).astype(np.float32)
        error = ((values - tried[:, None] * _nearest(values, tried, most)) ** 2).sum(axis=1)
        scales, best = np.where(error < best, tried, scales), np.minimum(error, best)
    levels = _nearest(values, scales, most).astype(np.int16).ravel()[: len(difference)]
    return Rounded(bits, scales.astype(np.float32), levels)


def _nearest(
    values: npt.NDArray[np.float32], scales: npt.NDArray[np.float32], most: int
) -> npt.NDArray[np.float32]:
    levels: npt.NDArray[np.float32] = np.rint(values / scales[:, None]).clip(-most, most)
    return levels


def _number(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _read(body: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the position after it.

    Raises:
        IndexError, ValueError: it does not end.
    """
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        if shift > 35:  # a model has at most 2^29 bytes
            raise ValueError("a number does not end")
