"""Models of reduced precision: half floats, or 8-bit integers in products with weights."""

import tempfile
from dataclasses import replace
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from hytas.export.onnx_file import (
    OPSET,
    example_patches,
    finish,
    inference_copy,
    kind_of,
    largest_fold,
    take_dtype,
    to_onnx,
    trace,
)
from hytas.export.quiet import quiet
from hytas.model_card import ModelCard
from hytas.models import SensorModel
from hytas.models.layers import probabilities

SEVEN_BITS = True
"""Bits of a weight. A processor with AVX2 but without VNNI sums two 8-bit products in 16 bits,
which is one bit too few. There, 8-bit weights give other labels (docs/benchmarks.md)."""


class HalfModel(nn.Module):
    """A model whose network computes in float16; scaling and probabilities stay in float32.

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
    example = example_patches(model, card)
    half = HalfModel(inference_copy(model, card))
    batch = torch.export.Dim("N", min=1)
    names, most = (["patches"], ["probabilities"]), largest_fold(model, card)
    graph = trace(half, example, {0: batch}, names, OPSET, most)
    take_dtype(graph, card.dtype)
    return finish(graph, replace(card, precision="float16"), kind_of(card))


def _stacked_products(graph: onnx.ModelProto) -> list[str]:
    """Return the products with several matrices at once, which have no int8 form.

    Relative positions of few patches are such matrices, one for each patch.
    """
    stacked = {each.name for each in graph.graph.initializer if len(each.dims) != 2}
    nodes = [node for node in graph.graph.node if node.op_type == "MatMul"]
    return [node.name for node in nodes if node.input[1] in stacked]


def to_int8(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """Return the ONNX patch graph with int8 products with weights, scaled at run time.

    Products of two activations (attention) and the fusion of layers stay in float32, because
    quantising them costs points of accuracy.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    exact = to_onnx(model, card)
    with tempfile.TemporaryDirectory() as folder, quiet():
        target = Path(folder) / "model.onnx"
        quantize_dynamic(
            exact,
            target,
            nodes_to_exclude=_stacked_products(exact),
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=SEVEN_BITS,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
        graph = onnx.load(target)
    del graph.graph.value_info[:]
    return finish(graph, replace(card, precision="int8"), kind_of(card))
