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

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.deploy.model_file import MOST_BYTES, checksum_of
from hytas.deploy.protobuf import Fields
from hytas.errors import InputError
from hytas.model_card import CHECKSUM

MAGIC = b"HYTASDELTA2\n"
DIGEST = 32
"""Bytes of a SHA-256."""
BLOCK = 16
"""Shortest run of bytes that is copied; weights that did not change make longer ones."""
GROUP = 256
"""Floats that share a scale."""
COPY, FRESH, XOR, ADD = range(4)
_STEP = 256
# Fields of ONNX's messages: of a model, a graph, a node, an attribute and a tensor.
_GRAPH, _METADATA, _NODE, _INITIALIZER, _ATTRIBUTE, _SUBGRAPH = 7, 14, 1, 5, 5, 6
_TYPE, _NAME, _RAW, _FLOAT = 2, 8, 9, 1
_WORST = 2
"""Bytes of operations for a byte of the new file, at most; more are refused before inflating."""


class Floats(NamedTuple):
    """A float32 tensor of a model file: its first byte, and its number of values."""

    at: int
    values: int


class Rounded(NamedTuple):
    """A rounded difference of a tensor: bits of a level, scales (groups) and levels (values)."""

    bits: int
    scales: npt.NDArray[np.float32]
    levels: npt.NDArray[np.int16]


class Piece(NamedTuple):
    """A part of the new file: a copy from the old one, then new bytes."""

    position: int
    length: int
    fresh: bytes


def make_delta(old: bytes, new: bytes, rounded: Mapping[str, Rounded] | None = None) -> bytes:
    """Return the delta from one file to another.

    Args:
        rounded: what `round_difference` returned with `new`, if it is rounded.
    """
    operations = _operations(old, new, rounded or {})
    whole = _number(len(new)) + _fresh(new)
    packed = min((deflated(each) for each in (operations, whole)), key=len)
    head = [MAGIC, hashlib.sha256(old).digest(), hashlib.sha256(new).digest()]
    body = b"".join([*head, packed])
    return body + hashlib.sha256(body).digest()


def deflated(operations: bytes) -> bytes:
    """Return the operations of a delta as it holds them: their length, and them compressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return _number(len(operations)) + packer.compress(operations) + packer.flush()


def _operations(old: bytes, new: bytes, rounded: Mapping[str, Rounded]) -> bytes:
    """Return the operations that make the new file: tensor by tensor, and the bytes between."""
    blocks = _blocks(old)
    before, after = floats_of(old), floats_of(new)
    parts, done = [_number(len(new))], 0
    for name, tensor in after.items():
        match, end = before.get(name), tensor.at + 4 * tensor.values
        if match is None or match.values != tensor.values:
            continue
        same = old[match.at : match.at + 4 * match.values] == new[tensor.at : end]
        if same or tensor.at < done:
            continue
        parts += _between(old, new[done : tensor.at], blocks)
        head = [_number(tensor.values), _number(match.at)]
        if name in rounded:
            parts += [_number(ADD), *head, *_levels(rounded[name])]
        else:
            parts += [_number(XOR), *head, _planes(old, new, match, tensor)]
        done = end
    return b"".join([*parts, *_between(old, new[done:], blocks)])


def _between(old: bytes, new: bytes, blocks: Mapping[bytes, int]) -> Iterator[bytes]:
    for piece in _pieces(old, new, blocks):
        if piece.length:
            yield _number(COPY) + _number(piece.length) + _number(piece.position)
        if piece.fresh:
            yield _fresh(piece.fresh)


def _fresh(content: bytes) -> bytes:
    return _number(FRESH) + _number(len(content)) + content


def _planes(old: bytes, new: bytes, match: Floats, tensor: Floats) -> bytes:
    """Return the XOR of two tensors, byte by byte of the floats: high bytes are mostly 0."""
    shape = (tensor.values, 4)
    left, right = (
        np.frombuffer(content, np.uint8, 4 * tensor.values, at).reshape(shape)
        for content, at in ((old, match.at), (new, tensor.at))
    )
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
    if not delta.startswith(MAGIC) or len(delta) < len(MAGIC) + 3 * DIGEST:
        raise InputError("delta", name, "must be a delta of hytas")
    if hashlib.sha256(body).digest() != delta[-DIGEST:]:
        rule = "is damaged: its checksum is not that of its content"
        raise InputError("delta", name, rule)
    at = len(MAGIC)
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
    if not 0 < length <= _WORST * MOST_BYTES:
        raise ValueError("longer than any model")
    operations = zlib.decompressobj(-zlib.MAX_WBITS).decompress(body[at:], length)
    if len(operations) != length:
        raise ValueError("shorter than it says")
    return operations


def _applied(old: bytes, body: bytes) -> bytes:
    length, at = _read(body, 0)
    if length > MOST_BYTES:
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
    before, result = floats_of(old), bytearray(new)
    rounded = {}
    for name, tensor in floats_of(new).items():
        match = before.get(name)
        if match is None or match.values != tensor.values:
            continue
        left, right = (
            np.frombuffer(content, "<f4", tensor.values, at).astype(np.float32)
            for content, at in ((old, match.at), (new, tensor.at))
        )
        difference = right - left
        if not difference.any() or not np.isfinite(difference).all():
            continue
        rounded[name] = _rounded(difference, bits)
        values = _sum(left, *rounded[name][1:]).astype("<f4").tobytes()
        result[tensor.at : tensor.at + 4 * tensor.values] = values
    return sealed(bytes(result)), rounded


def _rounded(difference: npt.NDArray[np.float32], bits: int) -> Rounded:
    """Round to levels; of several scales, take the one with the smallest squared error a group."""
    most = 2 ** (bits - 1) - 1
    groups = -(-len(difference) // GROUP)
    values = np.zeros((groups, GROUP), np.float32)
    values.ravel()[: len(difference)] = difference
    largest = np.abs(values).max(axis=1)
    best = np.full(groups, np.inf)
    scales = np.ones(groups, np.float32)
    for part in (1.0, 0.9, 0.8, 0.7, 0.6):
        tried = np.where(largest > 0, part * largest / most, 1.0).astype(np.float32)
        error = ((values - tried[:, None] * _nearest(values, tried, most)) ** 2).sum(axis=1)
        scales, best = np.where(error < best, tried, scales), np.minimum(error, best)
    levels = _nearest(values, scales, most).astype(np.int16).ravel()[: len(difference)]
    return Rounded(bits, scales.astype(np.float32), levels)


def _nearest(
    values: npt.NDArray[np.float32], scales: npt.NDArray[np.float32], most: int
) -> npt.NDArray[np.float32]:
    levels: npt.NDArray[np.float32] = np.rint(values / scales[:, None]).clip(-most, most)
    return levels


def sealed(content: bytes) -> bytes:
    """Return a model file with the checksum of its content in place of the one that it holds."""
    key, digest = CHECKSUM.encode(), checksum_of(content).encode()
    for number, value, _, behind in Fields().placed(memoryview(content)):
        if number == _METADATA and not isinstance(value, int) and key in bytes(value):
            return content[: behind - len(digest)] + digest + content[behind:]
    return content


def floats_of(content: bytes) -> dict[str, Floats]:
    """Return the float32 tensors of an ONNX file by name; none of another file.

    A tensor of a loop's body has the number of its graph before its name.
    """
    fields, tensors = Fields(), dict[str, Floats]()
    try:
        graphs = [
            (value, behind - len(value))
            for number, value, _, behind in fields.placed(memoryview(content))
            if number == _GRAPH and not isinstance(value, int)
        ]
        for place, (graph, base) in enumerate(graphs):
            for number, value, _, behind in fields.placed(graph):
                if isinstance(value, int):
                    continue
                start = base + behind - len(value)
                if number == _INITIALIZER:
                    _add_tensor(fields, value, start, f"{place} ", tensors)
                elif number == _NODE:
                    graphs += _bodies(fields, value, start)
    except ValueError:
        return {}
    return dict(sorted(tensors.items(), key=lambda item: item[1].at))


def _bodies(fields: Fields, node: memoryview, base: int) -> list[tuple[memoryview, int]]:
    graphs = []
    for number, value, _, behind in fields.placed(node):
        if number != _ATTRIBUTE or isinstance(value, int):
            continue
        start = base + behind - len(value)
        for inner, body, _, end in fields.placed(value):
            if inner == _SUBGRAPH and not isinstance(body, int):
                graphs.append((body, start + end - len(body)))
    return graphs


def _add_tensor(
    fields: Fields, tensor: memoryview, base: int, prefix: str, tensors: dict[str, Floats]
) -> None:
    name, element, at, size = "", 0, 0, 0
    for number, value, _, behind in fields.placed(tensor):
        if number == _TYPE and isinstance(value, int):
            element = value
        elif number == _NAME and not isinstance(value, int):
            name = bytes(value).decode(errors="replace")
        elif number == _RAW and not isinstance(value, int):
            at, size = base + behind - len(value), len(value)
    if element == _FLOAT and size:
        tensors[prefix + name] = Floats(at, size // 4)


def _blocks(old: bytes) -> dict[bytes, int]:
    blocks: dict[bytes, int] = {}
    for at in range(0, len(old) - BLOCK + 1, BLOCK):
        blocks.setdefault(old[at : at + BLOCK], at)
    return blocks


def _pieces(old: bytes, new: bytes, blocks: Mapping[bytes, int]) -> Iterator[Piece]:
    """Yield the pieces of a part of the new file, in order."""
    position = length = begun = at = 0  # the copy that is open, and where its new bytes begin
    shift = 0  # from a place in the new file to the like place in the old one
    while at < len(new):
        block = new[at : at + BLOCK]
        like = at + shift
        match: int | None = like if like >= 0 and old[like : like + BLOCK] == block else None
        match = blocks.get(block) if match is None else match
        if match is None or len(block) < BLOCK:
            at += 1
            continue
        back = _same_before(old, new, match, at, at - begun)
        start = at - back
        if start > begun or length or position:
            yield Piece(position, length, new[begun:start])
        position, shift = match - back, match - at
        length = back + _same_after(old, new, match, at)
        at = begun = start + length
    if length or begun < len(new):
        yield Piece(position, length, new[begun:])


def _same_before(old: bytes, new: bytes, a: int, b: int, most: int) -> int:
    """Return how many bytes before two places are the same, at most `most`."""
    count = 0
    while count < min(a, most) and old[a - count - 1] == new[b - count - 1]:
        count += 1
    return count


def _same_after(old: bytes, new: bytes, a: int, b: int) -> int:
    count = 0
    while (part := old[a + count : a + count + _STEP]) and part == new[
        b + count : b + count + len(part)
    ]:
        count += len(part)
    while a + count < len(old) and b + count < len(new) and old[a + count] == new[b + count]:
        count += 1
    return count


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
