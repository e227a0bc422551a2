"""The few fields of an ONNX file that must be known before onnxruntime opens it."""

from collections.abc import Iterator

# Field numbers of onnx.proto: ModelProto.graph, GraphProto.node and .initializer,
# NodeProto.attribute, AttributeProto.t, .tensors, .g and .graphs, TensorProto.external_data.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_ATTRIBUTE = 5
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = (5, 10), (6, 11)
_TENSOR_EXTERNAL_DATA = 13


def uses_external_data(model: memoryview) -> bool:
    """Whether a tensor of the ONNX file lies in another file.

    Raises:
        ValueError: the bytes are not a protobuf message.
    """
    return any(
        _graph_is_external(graph) for number, graph in _fields(model) if number == _MODEL_GRAPH
    )


def _graph_is_external(graph: memoryview) -> bool:
    for number, value in _fields(graph):
        if number == _GRAPH_INITIALIZER and _tensor_is_external(value):
            return True
        if number == _GRAPH_NODE and _node_is_external(value):
            return True
    return False


def _node_is_external(node: memoryview) -> bool:
    attributes = (value for number, value in _fields(node) if number == _NODE_ATTRIBUTE)
    for attribute in attributes:
        for number, value in _fields(attribute):
            if number in _ATTRIBUTE_TENSORS and _tensor_is_external(value):
                return True
            if number in _ATTRIBUTE_GRAPHS and _graph_is_external(value):
                return True
    return False


def _tensor_is_external(tensor: memoryview) -> bool:
    return any(number == _TENSOR_EXTERNAL_DATA for number, _ in _fields(tensor))


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
