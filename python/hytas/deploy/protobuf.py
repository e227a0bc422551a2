"""The fields of a protobuf message, read without trusting what it says of its sizes."""

from collections.abc import Iterator

MOST_FIELDS = 1_000_000
"""Of one file: a model of hytas has some ten thousand, and each takes a microsecond to pass."""

Value = memoryview | int
_FIXED = {1: 8, 5: 4}


class Fields:
    """Reads messages of one file, and counts their fields.

    Raises:
        ValueError: the bytes are not a protobuf message, or the file has more fields than a model
            could have.
    """

    def __init__(self, most: int = MOST_FIELDS) -> None:
        self._most = self._left = most

    def of(self, message: memoryview) -> Iterator[tuple[int, Value]]:
        """Number and value of each field: an int, or the bytes of what is longer or fixed."""
        for number, value, _, _ in self.placed(message):
            yield number, value

    def placed(self, message: memoryview) -> Iterator[tuple[int, Value, int, int]]:
        """Each field with the place of its first byte, and that after its last."""
        at = 0
        while at < len(message):
            start = at
            self._left -= 1
            if self._left < 0:
                raise ValueError(f"protobuf message of more than {self._most} fields")
            key, at = _varint(message, at)
            number, wire = key >> 3, key & 7
            if wire == 0:
                value, at = _varint(message, at)
                yield number, value, start, at
                continue
            if wire == 2:
                size, at = _varint(message, at)
            elif wire in _FIXED:
                size = _FIXED[wire]
            else:
                raise ValueError(f"protobuf wire type {wire} at byte {at}")
            if at + size > len(message):
                raise ValueError(f"protobuf field {number} of {size} bytes runs past the end")
            yield number, message[at : at + size], start, at + size
            at += size

    def numbers(self, value: Value) -> Iterator[int]:
        """The numbers of one entry of a repeated field, which may hold many of them packed."""
        if isinstance(value, int):
            yield value
            return
        at = 0
        while at < len(value):
            self._left -= 1
            if self._left < 0:
                raise ValueError(f"protobuf message of more than {self._most} fields")
            number, at = _varint(value, at)
            yield number


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError(f"protobuf number at byte {at} does not end")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & (2**64 - 1), at
