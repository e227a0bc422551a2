"""Messages between the guard and its child: JSON with its length before it, and then values."""

import json
import os
import select
import struct
from typing import Any

import numpy as np

from hytas.data.record import Array

_LENGTH = struct.Struct("<Q")
MOST_MESSAGE = 2**26
"""Bytes of JSON; the record of a file with many arrays has some hundred kilobytes."""


def bytes_in(array: Array) -> memoryview:
    """Return the bytes of an array in C order, without a copy."""
    return memoryview(array.reshape(-1).view(np.uint8).data)


def send(pipe: int, message: dict[str, Any], values: memoryview | None = None) -> None:
    """Write a message, and the bytes of values behind it."""
    text = json.dumps(message).encode()
    for data in (memoryview(_LENGTH.pack(len(text)) + text), values):
        left = data
        while left is not None and len(left):
            left = left[os.write(pipe, left) :]


def receive(pipe: int, seconds: float | None) -> dict[str, Any]:
    """Read a message.

    Raises:
        TimeoutError: nothing comes for `seconds`.
        EOFError: the pipe ends.
    """
    length = bytearray(_LENGTH.size)
    fill(pipe, memoryview(length), seconds)
    size = _LENGTH.unpack(length)[0]
    if size > MOST_MESSAGE:
        raise ValueError(f"a message of {size} bytes")
    text = bytearray(size)
    fill(pipe, memoryview(text), seconds)
    message: dict[str, Any] = json.loads(text)
    return message


def fill(pipe: int, left: memoryview, seconds: float | None) -> None:
    """Read as many bytes as `left` has; errors are those of `receive`."""
    while len(left):
        if not select.select([pipe], [], [], seconds)[0]:
            raise TimeoutError
        count = os.readv(pipe, [left])
        if not count:
            raise EOFError
        left = left[count:]
