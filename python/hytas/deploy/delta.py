"""Delta files: what turns one model file into another, to the byte.

A delta is small if few weights changed, because an uplink is narrow. `deploy/onboard/delta.cpp`
applies it, too. Its layout, in which numbers are protobuf's varints:

    magic | SHA-256 of the old file | SHA-256 of the new file | length of the new file
    any number of: length and position of bytes to copy from the old file | length and new bytes
    SHA-256 of all of this

A copy of length 0 has no position.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hytas.deploy.model_file import MOST_BYTES
from hytas.errors import InputError

MAGIC = b"HYTASDELTA1\n"
DIGEST = 32
"""Bytes of a SHA-256."""
BLOCK = 16
"""Shortest run of bytes that is copied; weights that did not change make longer ones."""
_STEP = 256


class Piece(NamedTuple):
    """A part of the new file: a copy from the old one, then new bytes."""

    position: int
    length: int
    fresh: bytes


def make_delta(old: bytes, new: bytes) -> bytes:
    """Return the delta from one file to another; it may be longer than the new file."""
    parts = [MAGIC, hashlib.sha256(old).digest(), hashlib.sha256(new).digest(), _number(len(new))]
    for piece in _pieces(old, new):
        parts.append(_number(piece.length))
        if piece.length:
            parts.append(_number(piece.position))
        parts += [_number(len(piece.fresh)), piece.fresh]
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def apply_delta(old: bytes, delta: bytes, name: str | Path = "delta") -> bytes:
    """Return the new file.

    Args:
        old: the file that the delta was made from.
        delta: content of the delta.
        name: what messages call it.

    Raises:
        InputError: the delta is damaged, or is for another file.
    """
    body = delta[:-DIGEST]
    if not delta.startswith(MAGIC) or len(delta) < len(MAGIC) + 3 * DIGEST:
        raise InputError(f"delta: {name} is not a delta of hytas")
    if hashlib.sha256(body).digest() != delta[-DIGEST:]:
        raise InputError(f"delta: {name} is damaged: its checksum is not that of its content")
    at = len(MAGIC)
    wanted, made = body[at : at + DIGEST], body[at + DIGEST : at + 2 * DIGEST]
    if hashlib.sha256(old).digest() != wanted:
        raise InputError(
            f"delta: {name} is for another model: it needs the file with SHA-256 {wanted.hex()}, "
            f"and this one has {hashlib.sha256(old).hexdigest()}"
        )
    try:
        new = _applied(old, body, at + 2 * DIGEST)
    except (IndexError, ValueError):
        new = b""
    if hashlib.sha256(new).digest() != made:
        raise InputError(f"delta: {name} is damaged: it does not give the file that it promises")
    return new


def _applied(old: bytes, body: bytes, at: int) -> bytes:
    length, at = _read(body, at)
    if length > MOST_BYTES:
        raise ValueError("longer than any model")
    new = bytearray()
    while at < len(body):
        copied, at = _read(body, at)
        position, at = _read(body, at) if copied else (0, at)
        fresh, at = _read(body, at)
        inside = position + copied <= len(old) and at + fresh <= len(body)
        if not inside or len(new) + copied + fresh > length:
            raise ValueError("runs past the end")
        new += old[position : position + copied] + body[at : at + fresh]
        at += fresh
    return bytes(new)


def _pieces(old: bytes, new: bytes) -> Iterator[Piece]:
    """Yield what the new file consists of, in order."""
    blocks: dict[bytes, int] = {}
    for at in range(0, len(old) - BLOCK + 1, BLOCK):
        blocks.setdefault(old[at : at + BLOCK], at)
    position = length = begun = at = 0  # the copy that is open, and where its new bytes begin
    shift = 0  # from a place in the new file to the like place in the old one
    while at < len(new):
        block = new[at : at + BLOCK]
        like = at + shift
        found: int | None = like if like >= 0 and old[like : like + BLOCK] == block else None
        found = blocks.get(block) if found is None else found
        if found is None or len(block) < BLOCK:
            at += 1
            continue
        back = _same_before(old, new, found, at, at - begun)
        start = at - back
        if start > begun or length or position:
            yield Piece(position, length, new[begun:start])
        position, shift = found - back, found - at
        length = back + _same_after(old, new, found, at)
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
    """Return how many bytes from two places on are the same."""
    count = 0
    while (part := old[a + count : a + count + _STEP]) and part == new[
        b + count : b + count + len(part)
    ]:
        count += len(part)
    while a + count < len(old) and b + count < len(new) and old[a + count] == new[b + count]:
        count += 1
    return count


def _number(value: int) -> bytes:
    """Return a number as a varint."""
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
