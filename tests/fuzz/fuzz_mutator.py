"""Damage inputs: one to eight edits of their bytes, all from a seeded generator."""

import re
from collections.abc import Sequence
from random import Random

Sample = dict[str, bytes]
"""The files of one input by name; the first is the one that is opened."""

# Counts, sizes, types and offsets that programs trip over.
_ODD = (0, 1, 2, 3, 4, 7, 8, 10, 11, 14, 15, 16, 20, 31, 32, 64, 127, 128, 255, 256, 1000, 32767)
_ODD += (32768, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63)
_TEXTS = (b"-1", b"0", b"1", b"2", b"255", b"65536", b"2147483648", b"9" * 19, b"9" * 5000)
_TEXTS += (b"nan", b"inf", b"-inf", b"1e999", b"{", b"}", b"[", b"]", b"\x1b[2J", b"\n", b"\0")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
MOST_EDITS = 8


def damaged(sample: Sample, others: Sequence[Sample], rng: Random) -> Sample:
    """Return the sample with one of its files damaged, sometimes with a piece of another sample."""
    result = dict(sample)
    name = rng.choice(list(result))
    donor = rng.choice(list(rng.choice(others).values()))
    data = bytearray(result[name])
    # Few edits reach deep into a reader, many test what it does with ruins.
    for _ in range(min(1 + int(rng.expovariate(0.7)), MOST_EDITS)):
        if data:
            _edit(data, donor, rng)
    result[name] = bytes(data)
    return result


def _edit(data: bytearray, donor: bytes, rng: Random) -> None:
    # Headers are where counts stand: half of the edits fall into the first kilobyte.
    at = rng.randrange(min(len(data), 1024) if rng.random() < 0.5 else len(data))
    length = 1 + rng.randrange(16)
    kind = rng.randrange(10)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[at] = rng.randrange(256)
    elif kind in (2, 3, 4):
        _write_number(data, at, rng)
    elif kind == 5:
        _write_text(data, at, rng)
    elif kind == 6:
        del data[at : at + length]
    elif kind == 7:
        data[at:at] = data[at : at + length] * (1 + rng.randrange(4))
    elif kind == 8 and donor:
        start = rng.randrange(len(donor))
        data[at : at + length] = donor[start : start + length]
    else:
        del data[at:]


def _write_number(data: bytearray, at: int, rng: Random) -> None:
    width = rng.choice((1, 2, 4, 8))
    at -= at % width if rng.random() < 0.7 else 0
    value = rng.choice(_ODD) if rng.random() < 0.8 else rng.randrange(2 ** (8 * width))
    value = -value if rng.random() < 0.2 else value
    order = "little" if rng.random() < 0.7 else "big"
    raw = (value % 2 ** (8 * width)).to_bytes(width, order)
    data[at : at + width] = raw


def _write_text(data: bytearray, at: int, rng: Random) -> None:
    """Put an odd text where a number stands, or anywhere if there is none."""
    found = _NUMBER.search(data, at)
    start, end = found.span() if found else (at, at + 1)
    data[start:end] = rng.choice(_TEXTS)
