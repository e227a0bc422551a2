"""Models of reduced precision: half floats, and 8-bit integers in the products with weights."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.export.lean import LeanModel
from hytas.export.onnx_file import (
    OPSET,
    example_patches,
    finish,
    inference_copy,
    take_dtype,
    to_onnx,
    trace,
)
from hytas.export.quiet import quiet
from hytas.model_card import ModelCard
from hytas.models import SensorModel

CALIBRATION_PATCHES = 256
_BATCH = 32
SEVEN_BITS = True
"""Of a weight. A processor with AVX2 and no VNNI sums two products of eight bits in sixteen, one
too few, so that weights of eight bits give other labels there (docs/benchmarks.md)."""

Array = npt.NDArray[Any]


class HalfModel(nn.Module):
    """A model whose network computes in float16; scaling and softmax stay in float32.

    Raw values of 16-bit sensors exceed the largest half float, so they are scaled first.
    """

    def __init__(self, model: LeanModel) -> None:
        super().__init__()
        self.scaling, self.network = model.scaling, model.network.half()

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, sensor bands) float32 -> (N, classes) float32."""
        return torch.softmax(self.network(self.scaling(patches).half()).float(), dim=1)


def to_half(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """The ONNX patch graph with float16 weights: half the size."""
    example = example_patches(model, card)
    half = HalfModel(LeanModel(inference_copy(model), card))
    batch = torch.export.Dim("N", min=1)
    graph = trace(half, example, {0: batch}, (["patches"], ["probabilities"]), OPSET)
    take_dtype(graph, card.dtype)
    return finish(graph, replace(card, precision="float16"), "patch")


def to_int8_dynamic(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """The ONNX patch graph with int8 products with weights, activations scaled as they come.

    Products of two activations (attention) and the fusion of layers stay in float32: quantising
    those too costs points of accuracy.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    def quantise(source: onnx.ModelProto, target: Path) -> None:
        quantize_dynamic(
            source,
            target,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=SEVEN_BITS,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )

    return _quantised(model, card, quantise)


def to_int8_static(model: SensorModel, card: ModelCard, calibration: Array) -> onnx.ModelProto:
    """The ONNX patch graph with int8 products with weights, scales fitted on training patches.

    Args:
        model, card: what to export.
        calibration: (N, P, P, bands) raw patches of training pixels; more than
            CALIBRATION_PATCHES are thinned out evenly.

    Raises:
        InputError: no patches.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    if not len(calibration):
        raise InputError("calibration: no training pixels; static quantisation needs some")
    keep = np.linspace(0, len(calibration) - 1, min(len(calibration), CALIBRATION_PATCHES))
    patches = calibration[np.round(keep).astype(np.int64)]

    def quantise(source: onnx.ModelProto, target: Path) -> None:
        quantize_static(
            source,
            target,
            _Feed(patches),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["MatMul"],
            nodes_to_quantize=_weight_products(source),
            per_channel=True,
            reduce_range=SEVEN_BITS,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            # Sums leave a product as float32, as what follows wants them: rounding them to eight
            # bits only to undo it costs time and accuracy.
            extra_options={"OpTypesToExcludeOutputQuantization": ["MatMul"]},
        )

    return _quantised(model, card, quantise)


class _Feed:
    """Calibration patches in micro-batches, in the form that onnxruntime asks for."""

    def __init__(self, patches: Array) -> None:
        self.batches: Iterator[Array] = iter(
            [patches[at : at + _BATCH] for at in range(0, len(patches), _BATCH)]
        )

    def get_next(self) -> dict[str, Array] | None:
        batch = next(self.batches, None)
        return None if batch is None else {"patches": batch}


def _weight_products(model: onnx.ModelProto) -> list[str]:
    """Names of the products whose right side is a weight."""
    weights = {tensor.name for tensor in model.graph.initializer}
    nodes = (node for node in model.graph.node if node.op_type == "MatMul")
    return [node.name for node in nodes if node.input[1] in weights]


def _quantised(model: SensorModel, card: ModelCard, quantise: Any) -> onnx.ModelProto:
    source = to_onnx(model, card)
    with tempfile.TemporaryDirectory() as folder, quiet():
        target = Path(folder) / "model.onnx"
        quantise(source, target)
        graph = onnx.load(target)
    del graph.graph.value_info[:]
    return finish(graph, replace(card, precision="int8"), "patch")
