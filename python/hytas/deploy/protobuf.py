"""Read the fields of a protobuf message without trusting the sizes in it."""

from collections.abc import Iterator

MOST_FIELDS = 1_000_000
"""Fields of one file. A model of hytas has about ten thousand; a field takes a microsecond."""

Value = memoryview | int
_FIXED = {1: 8, 5: 4}


class Fields:
    """Read the messages of one file, and count their fields.

    Raises:
        ValueError: the bytes are not a protobuf message, or the file has more fields than a model
            could have.
    """

    def __init__(self) -> None:
        self._left = MOST_FIELDS

    def of(self, message: memoryview) -> Iterator[tuple[int, Value]]:
        """Yield number and value of each field; the value is an int, or bytes."""
        for number, value, _, _ in self.placed(message):
            yield number, value

    def placed(self, message: memoryview) -> Iterator[tuple[int, Value, int, int]]:
        """Yield each field with the position of its first byte, and the position after its last."""
        at = 0
        while at < len(message):
            start = at
            self._left -= 1
            if self._left < 0:
                raise ValueError(f"protobuf message of more than {MOST_FIELDS} fields")
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
        """Yield the numbers of one entry of a repeated field; an entry may pack many numbers."""
        if isinstance(value, int):
            yield value
            return
        at = 0
        while at < len(value):
            self._left -= 1
            if self._left < 0:
                raise ValueError(f"protobuf message of more than {MOST_FIELDS} fields")
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
