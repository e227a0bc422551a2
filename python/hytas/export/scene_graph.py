"""The scene graph: it maps a raw tile to its class map without copying patches.

Work that is the same in all patches of a pixel is done once: scaling and, for pixel tokens, the
projection of the bands. The group-wise spectral embedding is a linear map of a P x P x c
neighbourhood. On a strip of P rows it is a convolution over (column, band) with the rows as
channels, which gives the tokens of a row of pixels directly. A loop inside the graph runs over
pieces of rows, so that the memory of attention does not grow with the tile.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.compose
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from hytas.export.onnx_file import (
    OPSET,
    example_patches,
    finish,
    inference_copy,
    take_dtype,
    trace,
)
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.models import SensorModel, as_network
from hytas.models.layers import probabilities

OUTPUTS = ("classes", "confidence", "probabilities")
PIECE = 8
"""Pixels of a row at a time; more do not fit the CPU's cache (attention is T x T for each)."""


class TileModel(nn.Module):
    """The part that is computed once for each pixel of the tile, not once for each patch."""

    def __init__(self, model: SensorModel) -> None:
        super().__init__()
        self.scaling = model.scaling
        self.pixels = as_network(model.network, "scene graph").strips().pixels

    def forward(self, tile: Tensor) -> Tensor:
        """Map (rows, columns, sensor bands) float32 to (rows, columns, features)."""
        features: Tensor = self.pixels(self.scaling(tile))
        return features


class StripModel(nn.Module):
    """Class ids and confidences of a row of pixels, from the features of its strip of P rows."""

    class_ids: Tensor

    def __init__(self, model: SensorModel, card: ModelCard) -> None:
        super().__init__()
        self.row = as_network(model.network, "scene graph").strips().row
        self.temperature = model.temperature
        self.register_buffer("class_ids", torch.tensor(card.class_ids, dtype=torch.int32))

    def forward(self, strip: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map (P, W + P - 1, features) to ids (W), confidence (W), probabilities (W, C)."""
        chances = probabilities(self.row(strip), self.temperature)
        classes = self.class_ids.index_select(0, chances.argmax(dim=1))
        return classes, chances.amax(dim=1), chances


def export_scene(
    model: SensorModel, path: str | Path, card: ModelCard, *, opset: int = OPSET
) -> Path:
    """Write `model` as an ONNX file: tile (H + P - 1, W + P - 1, bands) -> maps (H, W).

    The outputs are `classes` (class ids, int32) and `confidence` (float32), and the `probabilities`
    (H, W, C) that a map is smoothed from, where the card tells how.

    Raises:
        InputError: the network has no such form, the operator set is unknown, or the card is wrong.
        OSError: the file cannot be written.
    """
    graph = to_scene_onnx(model, card, opset=opset)
    with atomic_write(path) as temporary:
        temporary.write_bytes(graph.SerializeToString(deterministic=True))
    return Path(path)


def to_scene_onnx(model: SensorModel, card: ModelCard, *, opset: int = OPSET) -> onnx.ModelProto:
    """Return the ONNX model that `export_scene` writes."""
    outputs = OUTPUTS if card.smoothing is not None else OUTPUTS[:2]
    return finish(_scene_graph(model, card, outputs, opset), card, "scene")


def probabilities_graph(
    model: SensorModel, card: ModelCard, *, opset: int = OPSET
) -> tuple[onnx.ModelProto, str]:
    """Return a graph of the output `probabilities`, and the name of the float32 tile in it."""
    graph = _scene_graph(model, card, OUTPUTS[2:], opset)
    cast = [node.output[0] for node in graph.graph.node if node.input[:1] == ["tile"]]
    return graph, "tile" if card.dtype == "float32" else cast[0]


def _scene_graph(
    model: SensorModel, card: ModelCard, outputs: Sequence[str], opset: int
) -> onnx.ModelProto:
    example_patches(model, card)  # refuses a card of another model
    plain = inference_copy(model, card)
    strip = StripModel(plain, card).eval()
    tile = TileModel(plain).eval()
    body = _trace_strip(strip, tile, card, opset)
    free = {axis: torch.export.Dim(f"tile_{name}", min=2) for axis, name in enumerate("yx")}
    example = torch.zeros(card.patch_size + 3, card.patch_size + 5, card.bands)
    whole = trace(tile, example, free, (["tile"], ["features"]), opset)
    take_dtype(whole, card.dtype)
    inner = onnx.compose.add_prefix_graph(
        body.graph, "strip_", rename_inputs=False, rename_outputs=False
    )
    classes = len(card.class_ids)
    whole.graph.node.extend(_around(_body(inner, classes), outputs))
    whole.graph.initializer.extend(_constants(card.patch_size, classes))
    del whole.graph.input[:], whole.graph.output[:]
    whole.graph.input.extend(_inputs(card))
    whole.graph.output.extend(_outputs(classes, outputs))
    return whole


def _trace_strip(
    strip: StripModel, tile: TileModel, card: ModelCard, opset: int
) -> onnx.ModelProto:
    """Return the model of a strip in ONNX, for strips of any width."""
    side = card.patch_size
    with torch.no_grad():
        example = tile(torch.zeros(side, side + 8, card.bands))
    width = torch.export.Dim("columns", min=side + 1)
    names = (["strip"], [f"piece_{kind}" for kind in OUTPUTS])
    return trace(strip, example, {1: width}, names, opset)


def _inputs(card: ModelCard) -> list[onnx.ValueInfoProto]:
    element = helper.np_dtype_to_tensor_dtype(card.numpy_dtype)
    shape: list[str | int | None] = ["tile_rows", "tile_columns", card.bands]
    return [helper.make_tensor_value_info("tile", element, shape)]


def _outputs(classes: int, names: Sequence[str]) -> list[onnx.ValueInfoProto]:
    known = (
        helper.make_tensor_value_info("classes", TensorProto.INT32, ["H", "W"]),
        helper.make_tensor_value_info("confidence", TensorProto.FLOAT, ["H", "W"]),
        helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["H", "W", classes]),
    )
    return [value for value in known if value.name in names]


def _constants(side: int, classes: int) -> list[onnx.TensorProto]:
    values = {
        "zero": [0],
        "one": [1],
        "two": [2],
        "minus_one": [-1],
        "axis_row": [0],
        "axis_column": [1],
        "side": [side],
        "depth": [classes],
        "margins": [side - 1],
        "piece": [PIECE],
        "piece_less_one": [PIECE - 1],
    }
    tensors = [numpy_helper.from_array(np.array(v, np.int64), k) for k, v in values.items()]
    return [*tensors, numpy_helper.from_array(np.array(1, np.int64), "scalar_one")]


def _around(body: onnx.GraphProto, kinds: Sequence[str]) -> list[onnx.NodeProto]:
    """Return the nodes around the loop, which compute the number of pieces and join them."""
    steps = [
        ("Shape", ["tile"], "tile_shape"),
        ("Slice", ["tile_shape", "zero", "one"], "rows_in"),
        ("Slice", ["tile_shape", "one", "two"], "columns_in"),
        ("Sub", ["rows_in", "margins"], "height"),
        ("Sub", ["columns_in", "margins"], "width"),
        # The smallest number of pieces with at most PIECE columns, all of the same width.
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
    outputs = [f"all_{kind}" for kind in OUTPUTS]
    nodes.append(helper.make_node("Loop", ["trips", ""], outputs, name="loop", body=body))
    nodes.append(helper.make_node("Concat", ["height", "minus_one"], ["grid"], name="grid", axis=0))
    nodes.append(helper.make_node("Concat", ["grid", "depth"], ["grid_of_all"], axis=0))
    for kind in kinds:
        grid = "grid_of_all" if kind == "probabilities" else "grid"
        nodes.append(helper.make_node("Reshape", [f"all_{kind}", grid], [f"wide_{kind}"]))
        nodes.append(
            helper.make_node(
                "Slice", [f"wide_{kind}", "zero", "width", "axis_column"], [kind], name=kind
            )
        )
    return nodes


def _body(traced: onnx.GraphProto, classes: int) -> onnx.GraphProto:
    """Return the loop's body: cut a piece out of the tile, and run the traced model on it.

    A piece that goes beyond the tile repeats its last column; these results are cut off.
    """
    steps = [
        ("Reshape", ["trip", "one"], "at"),
        ("Div", ["at", "pieces"], "row"),
        ("Mul", ["row", "pieces"], "row_start"),
        ("Sub", ["at", "row_start"], "piece_index"),
        ("Add", ["row", "side"], "row_end"),
        ("Slice", ["features", "row", "row_end", "axis_row"], "rows"),
        ("Mul", ["piece_index", "piece_width"], "left"),
        ("Add", ["left", "piece_width"], "right_inner"),
        ("Add", ["right_inner", "margins"], "right"),
        ("Squeeze", ["left"], "left_scalar"),
        ("Squeeze", ["right"], "right_scalar"),
        ("Range", ["left_scalar", "right_scalar", "scalar_one"], "columns_free"),
        ("Min", ["columns_free", "last_column"], "columns"),
    ]
    nodes = [helper.make_node(op, ins, [out], name=f"body_{out}") for op, ins, out in steps]
    nodes.append(
        helper.make_node("Gather", ["rows", "columns"], ["strip"], name="body_strip", axis=1)
    )
    nodes.append(helper.make_node("Identity", ["keep_going"], ["keep_on"], name="body_keep_on"))
    outputs = [helper.make_tensor_value_info("keep_on", TensorProto.BOOL, [])]
    outputs += [
        helper.make_tensor_value_info("piece_classes", TensorProto.INT32, ["piece_columns"]),
        helper.make_tensor_value_info("piece_confidence", TensorProto.FLOAT, ["piece_columns"]),
        helper.make_tensor_value_info(
            "piece_probabilities", TensorProto.FLOAT, ["piece_columns", classes]
        ),
    ]
    inputs = [
        helper.make_tensor_value_info("trip", TensorProto.INT64, []),
        helper.make_tensor_value_info("keep_going", TensorProto.BOOL, []),
    ]
    return helper.make_graph(
        [*nodes, *traced.node], "piece", inputs, outputs, initializer=list(traced.initializer)
    )
