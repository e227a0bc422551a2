"""Check the graph of an ONNX file: inputs, outputs, operators, and the sizes of tensors."""

import math
from typing import NamedTuple

from hytas.deploy.protobuf import Fields, Value

MOST_DEPTH = 4
"""Levels of graphs inside graphs; the loop of a scene graph has one."""
MOST_VALUES = 2**27
"""Values that one declared shape may have."""
MOST_MADE = 2**20
"""Values that a constant may ask for, or turns of a loop; hytas writes a few thousand at most."""
# Bytes of an element of each type that a tensor of hytas may have: onnx.proto's TensorProto.
ELEMENT_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}
# Fields of a tensor that hold values of one type -> the fewest bytes that a value takes there.
_TYPED = {4: 4, 5: 1, 7: 1, 10: 8, 11: 1}
_DIMS, _TYPE, _STRINGS, _NAME, _RAW, _EXTERNAL, _LOCATION = 1, 2, 6, 8, 9, 13, 14
_INT64, _INT64_DATA, _MOST_AXES = 7, 7, 64
# Operators whose number of outputs depends on the values of an input -> the place of that input.
_MAKERS = {b"ConstantOfShape": 0, b"Expand": 1, b"Loop": 0, b"Pad": 1, b"Range": 1, b"Tile": 1}


OPERATORS = frozenset(
    b"""
    Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast CastLike Clip Concat
    Constant ConstantOfShape Conv DequantizeLinear Div DynamicQuantizeLinear Equal Erf Exp
    Expand Flatten Gather GatherElements GatherND Gelu Gemm GlobalAveragePool Greater
    GreaterOrEqual HardSigmoid HardSwish Identity InstanceNormalization IsInf IsNaN
    LayerNormalization Less LessOrEqual Log LogSoftmax Loop MatMul MatMulInteger Max Min Mod
    Mul Neg Not Or Pad Pow QuantizeLinear RMSNormalization Range Reciprocal ReduceL2
    ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare Relu Reshape Round Shape
    Sigmoid Sign Slice Softmax Split Sqrt Squeeze Sub Sum Swish Tanh Tile Transpose
    Unsqueeze Where
    """.split()
)
"""Operators that a model of hytas may have; the program on board has the same list. There are no
branches, no random numbers and no access to files."""


class GraphError(ValueError):
    """A graph that hytas would not have written; the message continues after the file's name."""


class End(NamedTuple):
    """An input or output: name, ONNX's number of the element type, sizes (None: any size)."""

    name: str
    element: int
    sizes: tuple[int | None, ...]


class Ends(NamedTuple):
    """The inputs and outputs of a graph."""

    inputs: tuple[End, ...]
    outputs: tuple[End, ...]


class _Tensor(NamedTuple):
    """The name of a tensor, and its first values if they have 64 bits, as sizes do."""

    name: bytes
    numbers: list[int]


def check_graph(fields: Fields, graph: memoryview) -> Ends:
    """Check every node, tensor and shape at any depth; return the ends of the main graph.

    Raises:
        GraphError: an operator, a tensor or a shape that no model of hytas has.
        ValueError: the bytes are not a protobuf message.
    """
    check = _Check(fields)
    return check.graph(graph)


class _Check:
    """A walk over one file. Nested graphs wait in a list, so deep nesting needs no recursion."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._waiting: list[tuple[int, memoryview]] = []

    def graph(self, message: memoryview) -> Ends:
        ends = self._one(0, message)
        while self._waiting:
            self._one(*self._waiting.pop())
        return ends

    def _one(self, depth: int, message: memoryview) -> Ends:
        if depth > MOST_DEPTH:
            raise GraphError(f"has graphs nested more than {MOST_DEPTH} deep")
        inputs, outputs, sizes, tensors = [], [], list[bytes](), dict[bytes, _Tensor]()
        for number, value in self._fields.of(message):
            if number == 1:
                sizes += self._node(depth, _bytes(value))
            elif number == 5:
                tensor = self._tensor(_bytes(value))
                tensors[tensor.name] = tensor
            elif number == 11:
                inputs.append(self._end(_bytes(value)))
            elif number == 12:
                outputs.append(self._end(_bytes(value)))
            elif number == 13:
                self._end(_bytes(value))
            elif number == 15:
                raise GraphError("has sparse tensors, which hytas never writes")
        for name in sizes:
            if name in tensors:
                _check_sizes(tensors[name])
        return Ends(tuple(inputs), tuple(outputs))

    def _node(self, depth: int, message: memoryview) -> list[bytes]:
        """Check a node; return the inputs that decide how many values it makes."""
        kind, domain, inputs, outputs, parts = b"", b"", [], 0, None
        for number, value in self._fields.of(message):
            if number == 1:
                inputs.append(bytes(_bytes(value)))
            elif number == 4:
                kind = bytes(_bytes(value))
            elif number == 7:
                domain = bytes(_bytes(value))
            elif number == 2:
                outputs += 1
            elif number == 5:
                count = self._attribute(depth, _bytes(value))
                parts = count if count is not None else parts
        if domain not in (b"", b"ai.onnx"):
            raise GraphError(f"uses an operator of domain {domain[:60]!r}; hytas uses ONNX's only")
        if kind not in OPERATORS:
            raise GraphError(f"uses the operator {kind[:60]!r}, which hytas never writes")
        if parts is not None and parts != outputs:  # onnxruntime takes memory for each part first
            raise GraphError(f"makes {parts} parts of a tensor, and has {outputs} outputs for them")
        place = _MAKERS.get(kind)
        return [] if place is None else inputs[place : place + 1]

    def _attribute(self, depth: int, message: memoryview) -> int | None:
        """Check an attribute; return its value if it is the number of outputs."""
        name, count = b"", 0
        for number, value in self._fields.of(message):
            if number == 1:
                name = bytes(_bytes(value))
            elif number == 3 and isinstance(value, int):
                count = value
            elif number in (5, 10):
                self._tensor(_bytes(value))
            elif number in (6, 11):
                self._waiting.append((depth + 1, _bytes(value)))
            elif number in (22, 23):
                raise GraphError("has sparse tensors, which hytas never writes")
        return count if name == b"num_outputs" else None

    def _tensor(self, message: memoryview) -> _Tensor:
        """Return a tensor, after a check that the file holds all its values."""
        dims, element, name, held, raw = list[int](), 0, b"", 0, None
        numbers: list[int] = []
        for number, value in self._fields.of(message):
            if number == _DIMS:
                dims += self._fields.numbers(value)
            elif number == _TYPE and isinstance(value, int):
                element = value
            elif number == _NAME:
                name = bytes(_bytes(value))
            elif number == _RAW:
                raw = _bytes(value)
            elif number in _TYPED:
                numbers += self._fields.numbers(value) if number == _INT64_DATA else ()
                held += 1 if isinstance(value, int) else len(value) // _TYPED[number]
            elif number == _EXTERNAL or (number == _LOCATION and value):
                raise GraphError("keeps weights in another file; a model of hytas is a single file")
        if element not in ELEMENT_BYTES:
            raise GraphError(f"has a tensor of element type {element}, which hytas never writes")
        count = _count(dims)
        if raw is not None and count * ELEMENT_BYTES[element] != len(raw):
            raise GraphError(
                f"has a tensor of {count} values in {len(raw)} bytes: "
                f"{count * ELEMENT_BYTES[element]} are needed"
            )
        if raw is None and count > held:
            raise GraphError(f"has a tensor of {count} values but holds only {held} of them")
        if element != _INT64:
            return _Tensor(name, [])
        return _Tensor(
            name, (numbers if raw is None else _int64(raw[: 8 * _MOST_AXES]))[:_MOST_AXES]
        )

    def _end(self, message: memoryview) -> End:
        """Return the name of a value, and its type and shape if they are given."""
        name, element, sizes = b"", 0, list[int | None]()
        for number, value in self._fields.of(message):
            if number == 1:
                name = bytes(_bytes(value))
            elif number == 2:
                for kind, tensor in self._fields.of(_bytes(value)):
                    if kind != 1:
                        raise GraphError(
                            "has a value that is not a tensor, which hytas never writes"
                        )
                    element, sizes = self._type(_bytes(tensor))
        _count([size for size in sizes if size is not None])
        return End(name.decode(errors="replace"), element, tuple(sizes))

    def _type(self, message: memoryview) -> tuple[int, list[int | None]]:
        element, sizes = 0, list[int | None]()
        for number, value in self._fields.of(message):
            if number == 1 and isinstance(value, int):
                element = value
            elif number == 2:
                sizes += [self._size(_bytes(dim)) for _, dim in self._fields.of(_bytes(value))]
        return element, sizes

    def _size(self, message: memoryview) -> int | None:
        sizes = [value for number, value in self._fields.of(message) if number == 1]
        return sizes[-1] if sizes and isinstance(sizes[-1], int) else None


def _bytes(value: Value) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a protobuf field is a number; a message is needed")
    return value


def _count(sizes: list[int]) -> int:
    """Return the number of values of a shape. A negative size counts as a very large one."""
    count = 1
    for size in sizes:
        count *= size
        if size > MOST_VALUES or count > MOST_VALUES:
            raise GraphError(f"declares a shape of more than {MOST_VALUES} values")
    return count


def _check_sizes(tensor: _Tensor) -> None:
    """Refuse a constant that asks for more values than any of hytas does."""
    if math.prod(max(abs(size), 1) for size in tensor.numbers) > MOST_MADE:
        raise GraphError(f"makes more than {MOST_MADE} values by a constant")


def _int64(raw: memoryview) -> list[int]:
    return [int.from_bytes(raw[at : at + 8], "little", signed=True) for at in range(0, len(raw), 8)]
