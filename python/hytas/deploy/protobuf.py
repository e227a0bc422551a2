"""The few fields of an ONNX file that must be known before onnxruntime opens it."""

from collections.abc import Iterator

# For each kind of message of onnx.proto, the fields to look into: number -> kind of what is there.
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"}
    | {22: "sparse tensor", 23: "sparse tensor"},
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {13: "external data"},
}


def uses_external_data(model: memoryview) -> bool:
    """Whether a tensor of the ONNX file lies in another file.

    Raises:
        ValueError: the bytes are not a protobuf message.
    """
    left = [("model", model)]  # no recursion: a file can nest graphs as deeply as it likes
    while left:
        kind, message = left.pop()
        if kind == "external data":
            return True
        inside = _INSIDE[kind]
        left += [(inside[number], value) for number, value in _fields(message) if number in inside]
    return False


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message: number and bytes (empty for numbers, whose values none asks for)."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            start = at
            _, at = _varint(message, at)
            yield number, message[start:start]
            continue
        if wire == 2:
            size, at = _varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"protobuf wire type {wire} at byte {at}")
        if at + size > len(message):
            raise ValueError(f"protobuf field {number} of {size} bytes runs past the end")
        yield number, message[at : at + size]
        at += size


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
            return value, at
