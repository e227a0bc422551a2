"""Models of reduced precision: half floats, or weights of 8 bits."""

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from hytas.export.onnx_file import (
    finish_graph,
    graph_kind,
    graphs_of,
    inference_copy,
    patch_graph,
    quiet,
    to_onnx,
)
from hytas.export.scene_graph import to_scene_onnx
from hytas.model_card import ModelCard
from hytas.models import SensorModel
from hytas.models.layers import probabilities
from hytas.models.linear import ClosedFormNetwork, LinearSkip

SEVEN_BITS = True
"""Bits of a weight in an integer product. A processor with AVX2 but without VNNI sums two 8-bit
products in 16 bits, which is one bit too few. There, 8-bit weights give other labels
(docs/measured.md)."""
MOST_LEVEL = 127
"""Largest stored weight of 8 bits; 0 lies in the middle."""
FEWEST_WEIGHTS = 256
"""Weights of a tensor that is stored with 8 bits; smaller ones save nothing."""
_WEIGHTED = ("MatMul", "Gemm", "Conv")


class HalfModel(nn.Module):
    """A model whose network computes in float16; scaling and outputs stay in float32.

    Raw values of 16-bit sensors exceed the largest half float, so scaling comes first.
    """

    def __init__(self, model: SensorModel) -> None:
        super().__init__()
        self.scaling, self.network = model.scaling, model.network.half()
        self.temperature = model.temperature

    def forward(self, patches: Tensor) -> Tensor:
        """Map (N, P, P, sensor bands) float32 to (N, classes) float32."""
        logits = self.network(self.scaling(patches).half()).float()
        return probabilities(logits, self.temperature)


def to_half(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """Return the ONNX patch graph with float16 weights, which has half the size."""
    if model.read_out is not None:
        return _with_half_weights(to_onnx(model, card), model, card)
    graph = patch_graph(HalfModel(inference_copy(model, card)), model, card)
    return finish_graph(graph, replace(card, precision="float16"), graph_kind(card))


def to_half_scene(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """Return the ONNX scene graph with float16 weights."""
    if model.read_out is not None:
        return _with_half_weights(to_scene_onnx(model, card), model, card)
    return to_scene_onnx(model, replace(card, precision="float16"), half=True)


def to_int8(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """Return the ONNX patch graph with int8 products with weights, scaled at run time.

    Products of two activations (attention) and the fusion of layers stay in float32, because
    quantising them costs points of accuracy. So do those of values in closed form, which are small:
    their terms cancel.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    exact = to_onnx(model, card)
    with tempfile.TemporaryDirectory() as folder, quiet():
        target = Path(folder) / "model.onnx"
        quantize_dynamic(
            exact,
            target,
            nodes_to_exclude=[*_stacked_products(exact), *_closed_products(exact, model)],
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=SEVEN_BITS,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
        graph = onnx.load(target)
    del graph.graph.value_info[:]
    return finish_graph(graph, replace(card, precision="int8"), graph_kind(card))


def _stacked_products(graph: onnx.ModelProto) -> list[str]:
    """Return the products with several matrices at once, which have no int8 form.

    Relative positions of few patches are such matrices, one for each patch.
    """
    stacked = {each.name for each in graph.graph.initializer if len(each.dims) != 2}
    nodes = [node for node in graph.graph.node if node.op_type == "MatMul"]
    return [node.name for node in nodes if node.input[1] in stacked]


def _closed_weights(graph: onnx.GraphProto, model: SensorModel) -> set[str]:
    """Return the names of matrices of values that are in closed form, or begin so."""
    parts = [
        each
        for each in model.network.modules()
        if isinstance(each, ClosedFormNetwork | LinearSkip) and model.read_out is not None
    ]
    weights = [each.detach().cpu().numpy() for part in parts for each in part.parameters()]
    return {
        each.name
        for each in graph.initializer
        for values in [numpy_helper.to_array(each)]
        if any(np.array_equal(values, one) or np.array_equal(values, one.T) for one in weights)
    }


def _with_half_weights(
    graph: onnx.ModelProto, model: SensorModel, card: ModelCard
) -> onnx.ModelProto:
    """Store the matrices of a graph as float16; all products are in float32 or more.

    Those of values in closed form stay, because their terms cancel.
    """
    for inside in graphs_of(graph.graph):
        closed = _closed_weights(inside, model)
        for weight in [each for each in inside.initializer if _is_large(each)]:
            if weight.name not in closed:
                name, half = weight.name, numpy_helper.to_array(weight).astype(np.float16)
                weight.CopyFrom(numpy_helper.from_array(half, f"{name}_half"))
                cast = helper.make_node("Cast", [weight.name], [name], to=TensorProto.FLOAT)
                inside.node.insert(0, cast)
    return finish_graph(graph, replace(card, precision="float16"), graph.graph.name)


def _closed_products(graph: onnx.ModelProto, model: SensorModel) -> list[str]:
    """Return the products with matrices of values in closed form."""
    closed = _closed_weights(graph.graph, model)
    names = [node.name for node in graph.graph.node if closed.intersection(node.input)]
    return [*names, *(f"{name}_MatMul" for name in names)]  # of a Gemm, by onnxruntime


def to_w8(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """Return the ONNX patch graph with weights stored in 8 bits; all products are in float32."""
    return _with_small_weights(to_onnx(model, card), card)


def to_w8_scene(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """Return the ONNX scene graph with weights stored in 8 bits."""
    return _with_small_weights(to_scene_onnx(model, card), card)


def _with_small_weights(graph: onnx.ModelProto, card: ModelCard) -> onnx.ModelProto:
    """Store the matrices and kernels of a graph as int8, with a scale for each output channel.

    `DequantizeLinear` makes floats of them when the model runs, outside of all loops.
    """
    steps, tensors = [], []
    for inside in graphs_of(graph.graph):
        for weight in [each for each in inside.initializer if _is_large(each)]:
            axis = _output_axis(inside, weight)
            if axis is None:
                continue
            inside.initializer.remove(weight)
            levels, scales = _quantised(numpy_helper.to_array(weight), axis)
            names = [f"{weight.name}_levels", f"{weight.name}_scales"]
            tensors += [numpy_helper.from_array(levels, names[0])]
            tensors += [numpy_helper.from_array(scales, names[1])]
            steps.append(
                helper.make_node(
                    "DequantizeLinear", names, [weight.name], name=weight.name, axis=axis
                )
            )
    nodes = list(graph.graph.node)
    del graph.graph.node[:]
    graph.graph.node.extend([*steps, *nodes])
    graph.graph.initializer.extend(tensors)
    kind = graph.graph.name
    return finish_graph(graph, replace(card, precision="int8 weights"), kind)


def _is_large(tensor: onnx.TensorProto) -> bool:
    large = math.prod(tensor.dims) >= FEWEST_WEIGHTS
    return tensor.data_type == TensorProto.FLOAT and len(tensor.dims) > 1 and large


def _output_axis(graph: onnx.GraphProto, weight: onnx.TensorProto) -> int | None:
    """Return the axis of a weight's output channels; None if it is in no product, or in several."""
    users = [
        (node.op_type, place)
        for node in graph.node
        for place, name in enumerate(node.input)
        if name == weight.name
    ]
    if len(users) != 1 or users[0][0] not in _WEIGHTED:
        return None
    operator, place = users[0]
    if operator == "MatMul":
        return len(weight.dims) - (1 if place == 1 else 2)
    return 0 if place == 1 and operator == "Conv" else None


def _quantised(
    weight: npt.NDArray[np.float32], axis: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return the levels of a weight, and the scale of each of its channels."""
    others = tuple(index for index in range(weight.ndim) if index != axis)
    largest = np.abs(weight).max(axis=others, keepdims=True)
    scales = np.where(largest > 0, largest / MOST_LEVEL, 1).astype(np.float32)
    levels = np.rint(weight / scales).clip(-MOST_LEVEL, MOST_LEVEL)
    return levels.astype(np.int8), scales.ravel()
