"""The scene graph that smooths its own map: a raw tile and a mask of its pixels in, a map out.

Windows of the filter end at the tile's edge, and leave out pixels that the mask says hold no data.
So a tile of the whole scene gives what `hytas classify` gives; a strip of it is right but for its
outer 2 r rows, where another strip lies beyond.
"""

import numpy as np
import numpy.typing as npt
import onnx
import onnx.compose
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from hytas.deploy.card import smoothing_of
from hytas.deploy.smoothing import GUIDES, Smoothing, as_probabilities, local_model
from hytas.errors import InputError
from hytas.export.onnx_file import OPSET, finish_graph, inference_copy, trace
from hytas.export.scene_graph import scene_graph
from hytas.model_card import ModelCard
from hytas.models import SensorModel


class SmoothModel(nn.Module):
    """Class ids and confidences from probabilities, as `hytas.deploy.smoothing` computes them."""

    class_ids: Tensor
    directions: Tensor
    offset: Tensor

    def __init__(self, model: SensorModel, card: ModelCard, smoothing: Smoothing) -> None:
        super().__init__()
        self.scaling, self.radius, self.eps = model.scaling, smoothing.radius, smoothing.eps
        self.temperature = smoothing.temperature
        self.register_buffer("class_ids", torch.tensor(card.class_ids, dtype=torch.int32))
        self.register_buffer("directions", torch.from_numpy(smoothing.directions.T).double())
        self.register_buffer("offset", torch.from_numpy(smoothing.offset).double())

    def forward(self, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Smooth probabilities (H, W, C); with raw pixels (H, W, bands) and the valid mask (H, W).

        Returns:
            Class ids (H, W) int32 and confidence (H, W), 0 where there is no data.
        """
        chances, pixels, held = given
        held = held.double()
        guide = (self.scaling(pixels).double() @ self.directions - self.offset).movedim(2, 0) * held
        p = chances.double().movedim(2, 0) * held
        pairs = [guide[k] * guide[m] for k in range(GUIDES) for m in range(k, GUIDES)]
        mixed = [p * guide[k] for k in range(GUIDES)]
        sums = self._windows(torch.cat([held[None], guide, torch.stack(pairs), p, *mixed]))
        means = sums[1:] / sums[:1].clip(min=1.0)
        others = means[9:].reshape(GUIDES + 1, -1, *held.shape)
        parts = list(means[:GUIDES]), list(means[GUIDES:9]), others[0], list(others[1:])
        model = torch.cat(local_model(*parts, self.eps)) * held
        sums = self._windows(torch.cat([held[None], model]))
        means = (sums[1:] / sums[:1].clip(min=1.0)).reshape(GUIDES + 1, -1, *held.shape)
        linear = means[GUIDES] + sum(means[k] * guide[k] for k in range(GUIDES))
        smoothed = as_probabilities(linear * held + (1.0 - held), self.temperature).float()
        valid = held > 0
        classes = self.class_ids[smoothed.argmax(0)]
        return classes * valid.int(), smoothed.amax(0) * valid.float()

    def _windows(self, values: Tensor) -> Tensor:
        """Sum over the windows of (K, H, W), which end at its edges: products with bands of 1."""
        rows, columns = (
            (torch.arange(size)[:, None] - torch.arange(size)).abs() <= self.radius
            for size in values.shape[1:]
        )
        return rows.double() @ values @ columns.double()


def to_smooth_scene(model: SensorModel, card: ModelCard) -> onnx.ModelProto:
    """Return the ONNX graph: tile (H + P - 1, W + P - 1, bands), valid (H, W) -> maps.

    The outputs are `classes` (class ids, int32) and `confidence` (float32), (H, W), smoothed
    whatever the card's choice is; 0 where `valid` is False.
    """
    smoothing = smoothing_of(card)
    if smoothing is None:
        raise InputError("formats", "onnx-scene-smooth", "needs a model with a guide to smooth by")
    whole = scene_graph(model, card, ["probabilities"])
    smoother = SmoothModel(inference_copy(model, card), card, smoothing).eval()
    height, width = (torch.export.Dim(f"inner_{name}", min=2) for name in "yx")
    free = {0: height, 1: width}
    shapes = ((7, 9, len(card.class_ids)), (7, 9, card.bands), (7, 9))
    example = [torch.full(shape, 0.5) for shape in shapes]
    names = (["probabilities", "inner", "held"], ["classes", "confidence"])
    traced = trace(smoother, example, [free, free, free], names, OPSET)
    graph = onnx.compose.add_prefix_graph(
        traced.graph, "smooth_", rename_inputs=False, rename_outputs=False
    )
    whole.graph.node.extend([*_inner(card.margin), *graph.node])
    whole.graph.initializer.extend([*_ends(card.margin), *graph.initializer])
    whole.graph.input.append(helper.make_tensor_value_info("valid", TensorProto.BOOL, ["H", "W"]))
    del whole.graph.output[:]
    whole.graph.output.extend(
        [
            helper.make_tensor_value_info("classes", TensorProto.INT32, ["H", "W"]),
            helper.make_tensor_value_info("confidence", TensorProto.FLOAT, ["H", "W"]),
        ]
    )
    return finish_graph(whole, card, "smooth-scene")


def _inner(margin: int) -> list[onnx.NodeProto]:
    """Return the nodes that cut the margin off the tile, and make float32 of pixels and mask."""
    ends = ["inner_first", "inner_last", "inner_axes"]
    cut = [helper.make_node("Slice", ["tile", *ends], ["inner_raw"])] if margin else []
    casts = [("inner_raw" if margin else "tile", "inner"), ("valid", "held")]
    return [
        *cut,
        *(helper.make_node("Cast", [raw], [made], to=TensorProto.FLOAT) for raw, made in casts),
    ]


def _ends(margin: int) -> list[onnx.TensorProto]:
    if margin == 0:
        return []
    values: dict[str, npt.NDArray[np.int64]] = {
        "inner_first": np.full(2, margin),
        "inner_last": np.full(2, -margin),
        "inner_axes": np.arange(2),
    }
    return [numpy_helper.from_array(value, name) for name, value in values.items()]
