"""The scene graph: a raw tile in, its class map out, no patch copied.

The group-wise spectral embedding is a linear map of a P x P x c neighbourhood. On a strip of P
rows it is a convolution over (column, band) whose channels are the rows, so the tokens of a row of
pixels come from the strip as it lies in the sensor's buffer. A loop inside the graph runs over
pieces of rows, so memory does not grow with the tile.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.export.lean import LeanEncoder, Scaling
from hytas.export.onnx_file import OPSET, example_patches, finish, inference_copy, trace
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.models import SensorModel, SpectralTransformer
from hytas.models.spectral import SpectralEmbedding

PIECE = 8
"""Pixels of a row at a time: more leave the processor's cache (attention is T x T for each)."""


class StripEmbedding(nn.Module):
    """`SpectralEmbedding` of every pixel of a row: a convolution over (column, band)."""

    def __init__(self, embedding: SpectralEmbedding, patch_size: int) -> None:
        super().__init__()
        project = embedding.project
        embed_dim, _, group = project.weight.shape
        self.margin = embedding.margin
        weight = project.weight.detach().reshape(embed_dim, patch_size, patch_size, group)
        self.project = nn.Conv2d(patch_size, embed_dim, (patch_size, group))
        self.project.weight = nn.Parameter(weight, requires_grad=False)
        self.project.bias = project.bias

    def forward(self, strip: Tensor) -> Tensor:
        """(P, W + P - 1, bands) -> (W, bands, E)."""
        rows = strip.unsqueeze(0)
        if self.margin:
            rows = F.pad(rows, (self.margin, self.margin, 0, 0), mode="replicate")
        tokens: Tensor = self.project(rows)  # (1, E, W, bands)
        return tokens[0].permute(1, 2, 0)


class StripModel(nn.Module):
    """Class ids and confidences of a row of pixels, from its strip of P rows."""

    class_ids: Tensor

    def __init__(self, model: SensorModel, card: ModelCard) -> None:
        super().__init__()
        network = model.network
        if not isinstance(network, SpectralTransformer):
            raise InputError(
                f"scene graph: a {type(network).__name__} has no embedding that is a convolution "
                "over the tile; export the patch graph"
            )
        self.scaling = Scaling(model, card)
        self.embed = StripEmbedding(network.embed, card.patch_size)
        self.encode = LeanEncoder(network)
        self.register_buffer("class_ids", torch.tensor(card.class_ids, dtype=torch.int32))

    def forward(self, strip: Tensor) -> tuple[Tensor, Tensor]:
        """(P, W + P - 1, sensor bands) float32 -> class ids (W) int32, confidence (W)."""
        logits = self.encode(self.embed(self.scaling(strip)))
        probabilities = torch.softmax(logits, dim=1)
        best = probabilities.argmax(dim=1)
        return self.class_ids.index_select(0, best), probabilities.amax(dim=1)


def export_scene(
    model: SensorModel, path: str | Path, card: ModelCard, *, opset: int = OPSET
) -> Path:
    """Write `model` as an ONNX file: tile (H + P - 1, W + P - 1, bands) -> maps (H, W).

    The outputs are `classes` (class ids, int32) and `confidence` (float32).

    Raises:
        InputError: a network without such a form, an unknown operator set, or a wrong card.
        OSError: the file cannot be written.
    """
    graph = to_scene_onnx(model, card, opset=opset)
    with atomic_write(path) as temporary:
        temporary.write_bytes(graph.SerializeToString(deterministic=True))
    return Path(path)


def to_scene_onnx(model: SensorModel, card: ModelCard, *, opset: int = OPSET) -> onnx.ModelProto:
    """The ONNX model that `export_scene` writes."""
    example_patches(model, card)  # refuses a card that is not the model's
    strip = StripModel(inference_copy(model), card).eval()
    side = card.patch_size
    width = torch.export.Dim("columns", min=side + 1)
    example = torch.zeros(side, side + 8, card.bands)
    names = (["strip"], ["piece_classes", "piece_confidence"])
    program = trace(strip, example, {1: width}, names, opset)
    graph = helper.make_graph([], "scene", _inputs(card), _outputs())
    graph.node.extend(_around(_body(program.graph)))
    graph.initializer.extend(_constants(side))
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    whole.ir_version = program.ir_version
    return finish(whole, card, "scene")


def _inputs(card: ModelCard) -> list[onnx.ValueInfoProto]:
    element = helper.np_dtype_to_tensor_dtype(card.numpy_dtype)
    shape: list[str | int | None] = ["tile_rows", "tile_columns", card.bands]
    return [helper.make_tensor_value_info("tile", element, shape)]


def _outputs() -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info("classes", TensorProto.INT32, ["H", "W"]),
        helper.make_tensor_value_info("confidence", TensorProto.FLOAT, ["H", "W"]),
    ]


def _constants(side: int) -> list[onnx.TensorProto]:
    values = {
        "zero": [0],
        "one": [1],
        "two": [2],
        "minus_one": [-1],
        "axis_row": [0],
        "axis_column": [1],
        "side": [side],
        "margins": [side - 1],
        "piece": [PIECE],
        "piece_less_one": [PIECE - 1],
    }
    tensors = [numpy_helper.from_array(np.array(v, np.int64), k) for k, v in values.items()]
    return [*tensors, numpy_helper.from_array(np.array(1, np.int64), "scalar_one")]


def _around(body: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The graph around the loop: how many pieces there are, and putting them together."""
    steps = [
        ("Shape", ["tile"], "tile_shape"),
        ("Slice", ["tile_shape", "zero", "one"], "rows_in"),
        ("Slice", ["tile_shape", "one", "two"], "columns_in"),
        ("Sub", ["rows_in", "margins"], "height"),
        ("Sub", ["columns_in", "margins"], "width"),
        # As few pieces of at most PIECE columns as there can be, all of one width.
        ("Add", ["width", "piece_less_one"], "width_up"),
        ("Div", ["width_up", "piece"], "pieces"),
        ("Add", ["width", "pieces"], "width_pieces"),
        ("Sub", ["width_pieces", "one"], "width_pieces_up"),
        ("Div", ["width_pieces_up", "pieces"], "piece_width"),
        ("Sub", ["columns_in", "one"], "last_column"),
        ("Mul", ["height", "pieces"], "count"),
        ("Squeeze", ["count"], "trips"),
    ]
    nodes = [helper.make_node(op, ins, [out], name=out) for op, ins, out in steps]
    outputs = ["all_classes", "all_confidence"]
    nodes.append(helper.make_node("Loop", ["trips", ""], outputs, name="loop", body=body))
    nodes.append(helper.make_node("Concat", ["height", "minus_one"], ["grid"], name="grid", axis=0))
    for kind in ("classes", "confidence"):
        nodes.append(helper.make_node("Reshape", [f"all_{kind}", "grid"], [f"wide_{kind}"]))
        nodes.append(
            helper.make_node(
                "Slice", [f"wide_{kind}", "zero", "width", "axis_column"], [kind], name=kind
            )
        )
    return nodes


def _body(traced: onnx.GraphProto) -> onnx.GraphProto:
    """The loop's body: cut the piece's strip out of the tile, and run the traced model on it.

    A piece that runs past the tile repeats its last column; what comes of it is cut away.
    """
    steps = [
        ("Reshape", ["trip", "one"], "at"),
        ("Div", ["at", "pieces"], "row"),
        ("Mul", ["row", "pieces"], "row_start"),
        ("Sub", ["at", "row_start"], "piece_index"),
        ("Add", ["row", "side"], "row_end"),
        ("Slice", ["tile", "row", "row_end", "axis_row"], "rows"),
        ("Mul", ["piece_index", "piece_width"], "left"),
        ("Add", ["left", "piece_width"], "right_inner"),
        ("Add", ["right_inner", "margins"], "right"),
        ("Squeeze", ["left"], "left_scalar"),
        ("Squeeze", ["right"], "right_scalar"),
        ("Range", ["left_scalar", "right_scalar", "scalar_one"], "columns_free"),
        ("Min", ["columns_free", "last_column"], "columns"),
    ]
    nodes = [helper.make_node(op, ins, [out], name=f"body_{out}") for op, ins, out in steps]
    nodes.append(helper.make_node("Gather", ["rows", "columns"], ["raw"], name="body_raw", axis=1))
    nodes.append(
        helper.make_node("Cast", ["raw"], ["strip"], name="body_strip", to=TensorProto.FLOAT)
    )
    nodes.append(helper.make_node("Identity", ["keep_going"], ["keep_on"], name="body_keep_on"))
    outputs = [helper.make_tensor_value_info("keep_on", TensorProto.BOOL, [])]
    outputs += [
        helper.make_tensor_value_info("piece_classes", TensorProto.INT32, ["piece_columns"]),
        helper.make_tensor_value_info("piece_confidence", TensorProto.FLOAT, ["piece_columns"]),
    ]
    inputs = [
        helper.make_tensor_value_info("trip", TensorProto.INT64, []),
        helper.make_tensor_value_info("keep_going", TensorProto.BOOL, []),
    ]
    return helper.make_graph(
        [*nodes, *traced.node], "piece", inputs, outputs, initializer=list(traced.initializer)
    )
