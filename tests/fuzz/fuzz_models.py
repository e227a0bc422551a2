"""Fuzz targets of exported models: a small graph with its card, made by code."""

import re
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from fuzz_mutator import Sample
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper, parser

from hytas.deploy import DeployedModel
from hytas.deploy.card import read_card
from hytas.deploy.graph import OPERATORS
from hytas.deploy.model_file import checksum_of, examine, read_model
from hytas.export.onnx_file import finish, seal
from hytas.model_card import ModelCard

_SIDE, _BANDS, _CLASSES = 3, 5, 4
_SUM = re.compile(rb"hytas.sha256\x12@([0-9a-f]{64})")
# Operators that allocate by what their inputs and attributes say, or read where these point.
_WIDE = """
patch (uint16[N, 3, 3, 5] patches) => (float[N, 4] probabilities)
<float[4] scale = {1, 2, 3, 4}, float[4] shift = {0, 1, 0, 1},
 int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, int64[2] flat = {0, -1}, int64[1] first = {0},
 int64[1] second = {1}, int64[2] twice = {1, 2}, int64 turns = {3}, int64 zero = {0},
 int64 one = {1}, bool yes = {1}, int64[2] picked = {0, 2}, float step = {0.1}, uint8 point = {128},
 int64[2] wide = {1, 36}, float nought = {0}>
{
    real = Cast <to = 1> (patches)
    moved = Transpose <perm = [0, 3, 1, 2]> (real)
    padded = Pad (moved, pads)
    seen = Conv <kernel_shape = [3, 3], strides = [1, 1], group = 1> (padded, kernel, scale)
    mean = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (seen)
    summed = Add (seen, mean)
    rows = Reshape (summed, flat)
    shape = Shape (rows)
    size = Slice (shape, first, second)
    zeros = ConstantOfShape (shape)
    grown = Expand (nought, wide)
    whole = QuantizeLinear (rows, step, point)
    back = DequantizeLinear (whole, step, point)
    positive = Greater (back, zeros)
    kept = Where (positive, back, grown)
    product = MatMul (kept, w)
    normal = LayerNormalization <axis = -1, epsilon = 0.00001> (product, scale, shift)
    left, right = Split <axis = 1, num_outputs = 2> (normal)
    swapped = Concat <axis = 1> (right, left)
    chosen = Gather <axis = 1> (swapped, picked)
    tiled = Tile (chosen, twice)
    total = ReduceSum <keepdims = 1> (tiled, second)
    numbers = Range (zero, turns, one)
    count = ReduceMax <keepdims = 0> (numbers)
    more = Cast <to = 1> (count)
    logits = Loop (turns, yes, normal) <body = turn (int64 i, bool go, float[N, 4] held)
        => (bool on, float[N, 4] next) { on = Identity (go)  bent = Gelu (held)
        next = Add (bent, held) }>
    shifted = Add (logits, total)
    further = Mul (shifted, more)
    probabilities = Softmax <axis = 1> (further)
}
"""


def corpus() -> list[Sample]:
    """A patch graph with one product, in two element types."""
    return [{"model.onnx": _model(dtype)} for dtype in ("uint16", "float32")]


@cache
def wide_corpus() -> list[Sample]:
    """The same, and a graph of many operators."""
    graph = parser.parse_graph(_WIDE)
    random = np.random.default_rng(1)
    for name, shape in {"kernel": (_CLASSES, _BANDS, 3, 3), "w": (36, _CLASSES)}.items():
        values = random.normal(size=shape).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(values, name))
    return [*corpus(), {"model.onnx": _sealed(graph, "uint16")}]


def _model(dtype: str) -> bytes:
    weights = np.random.default_rng(0).normal(size=(_SIDE**2 * _BANDS, _CLASSES))
    constants = {"w": weights.astype(np.float32), "flat": np.array([0, -1], np.int64)}
    nodes = [
        helper.make_node("Cast", ["patches"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["real", "flat"], ["rows"]),
        helper.make_node("MatMul", ["rows", "w"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["N", _SIDE, _SIDE, _BANDS]
    graph = helper.make_graph(
        nodes,
        "patch",
        [helper.make_tensor_value_info("patches", element, shape)],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", _CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return _sealed(graph, dtype)


def _sealed(graph: GraphProto, dtype: str) -> bytes:
    card = ModelCard(
        class_names=tuple("abcd"),
        class_ids=(1, 2, 3, 9),
        patch_size=_SIDE,
        bands=_BANDS,
        dtype=dtype,
        preprocessing={"method": "standard", "bands": [0, 2, 4], "offset": [1.0] * 3},
        architecture={"space": "hytas", "depth": 2},
        band_group=1,
        palette=((0, 0, 0),) * _CLASSES,
        wavelengths=(400.0, 450.0, 500.0, 550.0, 600.0),
    )
    opset = [helper.make_opsetid("", 20)]
    model = finish(helper.make_model(graph, opset_imports=opset, ir_version=10), card, "patch")
    return bytes(model.SerializeToString(deterministic=True))


def run(path: Path) -> None:
    """Open the model and classify patches with it, as `hytas classify` does."""
    model = DeployedModel.load(path, "cpu", threads=1)
    side, bands = model.card.patch_size, model.card.bands
    model.predict_patches(np.zeros((3, side, side, bands), model.card.numpy_dtype))


def examined(path: Path) -> None:
    """All that is looked at before onnxruntime sees the file."""
    file = examine(read_model(path), path)
    card = read_card(file, path)
    str((card.to_properties(), file.ends))


def sealed(sample: Sample, rng: Random) -> Sample:
    """The damaged file with the checksum that it now has, so that what lies behind is reached."""
    content = sample["model.onnx"]
    found = _SUM.search(content)
    try:
        digest = checksum_of(content).encode()
    except ValueError:
        return sample
    if found is None:
        return sample
    return {"model.onnx": content[: found.start(1)] + digest + content[found.end(1) :]}


def forged(sample: Sample, rng: Random) -> Sample:
    """A file of someone who knows the checksum: the graph itself is changed, and sealed."""
    if rng.random() < 0.3:
        return sealed(sample, rng)
    model = ModelProto()
    model.ParseFromString(rng.choice(wide_corpus())["model.onnx"])
    for _ in range(1 + int(rng.expovariate(0.7))):
        _change(model.graph, rng)
    try:
        seal(model)
    except ValueError:
        return sample
    return {"model.onnx": bytes(model.SerializeToString(deterministic=True))}


_SIZES = (-(2**63), -(2**31), -129, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 36, 45, 129, 2**16, 2**24)
_SIZES += (2**27, 2**31 - 1, 2**31, 2**40, 2**63 - 1)
_REALS = (0.0, -1.0, 1e-45, 3e38, float("inf"), float("nan"))


def _change(graph: GraphProto, rng: Random) -> None:
    """Change one attribute, one constant, one edge, one operator or one declared shape."""
    node = rng.choice(graph.node)
    inner = [part.g for part in node.attribute if part.type == AttributeProto.GRAPH]
    kind = rng.randrange(7)
    if inner and rng.random() < 0.5:
        _change(inner[0], rng)
    elif kind < 2 and node.attribute:
        _change_attribute(rng.choice(node.attribute), rng)
    elif kind < 4 and graph.initializer:
        _change_constant(rng.choice(graph.initializer), rng)
    elif kind == 4 and node.input:
        known = [
            *(each.name for each in graph.initializer),
            *(o for n in graph.node for o in n.output),
        ]
        node.input[rng.randrange(len(node.input))] = rng.choice([*known, "", "patches"])
    elif kind == 5:
        node.op_type = rng.choice(sorted(OPERATORS)).decode()
    else:
        end = rng.choice([*graph.input, *graph.output, *graph.value_info])
        sizes = end.type.tensor_type.shape.dim
        if sizes:
            sizes[rng.randrange(len(sizes))].dim_value = rng.choice(_SIZES)


def _change_attribute(part: AttributeProto, rng: Random) -> None:
    if part.type == AttributeProto.INT:
        part.i = rng.choice(_SIZES)
    elif part.type == AttributeProto.FLOAT:
        part.f = rng.choice(_REALS)
    elif part.type == AttributeProto.INTS:
        values = [*part.ints, rng.choice(_SIZES)]
        rng.shuffle(values)
        part.ints[:] = values[: rng.randrange(len(values) + 1)]


def _change_constant(tensor: TensorProto, rng: Random) -> None:
    values = numpy_helper.to_array(tensor).copy()
    if not values.size:
        return
    if values.dtype == np.int64:
        values.flat[rng.randrange(values.size)] = rng.choice(_SIZES)
    elif values.dtype == np.float32:
        values.flat[rng.randrange(values.size)] = rng.choice(_REALS)
    if rng.random() < 0.2:
        values = values.reshape(-1)[: rng.randrange(values.size + 1)]
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
