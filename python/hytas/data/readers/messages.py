"""Messages between the guard and its child: JSON with its length before it, and then values."""

import json
import os
import select
import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.grid import Grid
from hytas.data.record import BandFacts, Contents, Key, Raw, Variable
from hytas.types import Array

_LENGTH = struct.Struct("<Q")
MOST_MESSAGE = 2**27
"""Bytes of JSON; the record of a file with many arrays has some hundred kilobytes."""
_RECORDS: tuple[Any, ...] = (Contents, Variable, BandFacts, Raw, Grid)
_CLASSES = {each.__name__: each for each in _RECORDS}


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
        ValueError: the message is too long.
    """
    length = bytearray(_LENGTH.size)
    fill(pipe, memoryview(length), seconds)
    size = _LENGTH.unpack(length)[0]
    if size > MOST_MESSAGE:
        raise ValueError(f"its description takes {size} bytes")
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


def plain(value: Any) -> Any:
    """Return a record, or a part of one, as JSON holds it; functions are left out."""
    if is_dataclass(value):
        kept = {each.name: getattr(value, each.name) for each in fields(value)}
        plain_fields = {name: plain(each) for name, each in kept.items() if name != "read"}
        return {"": type(value).__name__, **plain_fields}
    if isinstance(value, Mapping):
        return {"": "dict", "items": [[key, plain(each)] for key, each in value.items()]}
    if isinstance(value, np.ndarray | np.generic):
        return {"": "array", "dtype": value.dtype.str, "values": value.tolist()}
    if isinstance(value, Path):
        return {"": "path", "text": str(value)}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def restored(value: Any) -> Any:
    """Return the record that `plain` made; its arrays cannot be read yet."""
    if isinstance(value, list):
        return tuple(restored(each) for each in value)
    if not isinstance(value, dict):
        return value
    kind = value.pop("")
    if kind == "dict":
        return {key: restored(each) for key, each in value["items"]}
    if kind == "array":
        return np.array(value["values"], np.dtype(value["dtype"]))
    if kind == "path":
        return Path(value["text"])
    fields = {name: restored(each) for name, each in value.items()}
    if kind == "Variable":
        fields["read"] = _unread
    return _CLASSES[kind](**fields)


def _unread(key: Key) -> Array:
    raise ValueError("the array cannot be read")
