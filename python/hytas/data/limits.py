"""Limits for reading a file, so that a small file cannot take minutes or gigabytes."""

import math
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any

from hytas.errors import escaped

IN_MEMORY_BYTES = 2**31
"""A larger cube stays as its reader returned it, which may be a memory map."""
MOST_WAVELENGTHS = 2**16
MOST_NAMED = 10
"""Names in one message."""
MOST_SHOWN = 200
"""Characters of a name in a message."""


def bytes_of(shape: Iterable[int], itemsize: int) -> int:
    """Return the bytes of an array in memory, without the overflow of numpy's product."""
    return math.prod(map(int, shape)) * itemsize


def by(shape: Iterable[int]) -> str:
    """Return a shape as text, such as "24 x 30"."""
    return " x ".join(map(str, shape))


def printable(name: str) -> str:
    """Return a name from a file for a message: on one line, and shortened."""
    text = escaped(name)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def listed(items: Collection[Any]) -> str:
    """Return the first items as one text, and the number of the others."""
    first = islice(items, MOST_NAMED)
    named = ", ".join(printable(item) if isinstance(item, str) else str(item) for item in first)
    more = len(items) - MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named or "nothing"
