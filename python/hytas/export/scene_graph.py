"""The scene graph: it maps a raw tile to its map of classes or values without copying patches.

Work that is the same in all patches of a pixel is done once: scaling and, for pixel tokens, the
projection of the bands. The group-wise spectral embedding is a linear map of a P x P x c
neighbourhood. On a strip of P rows it is a convolution over (column, band) with the rows as
channels, which gives the tokens of a row of pixels directly.

Two nested loops bound the memory. The outer loop computes the features of a chunk of columns. The
inner loop classifies a chunk piece by piece: some neighbouring pixels of a row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.compose
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from hytas.export.onnx_file import (
    OPSET,
    example_patches,
    finish_graph,
    inference_copy,
    take_dtype,
    trace,
)
from hytas.model_card import ModelCard
from hytas.models import SensorModel, as_network
from hytas.models.layers import probabilities

OUTPUTS = ("classes", "confidence", "probabilities")
VALUES = ("values",)
"""Outputs of a model of values."""
DEEP = ("probabilities", "values")
"""Outputs with several numbers a pixel."""
CHUNK = 256
"""Columns of a tile whose features are computed at once."""
PIECES = (8, 256)
"""Fewest and most pixels of a piece."""
CACHE_BYTES = 2**19
"""Size of the largest tensor of a piece, if it has more than the fewest pixels."""

_Step = tuple[str, Sequence[str], str]
"""A node: its operator, inputs and output."""


class TileModel(nn.Module):
    """The part that is computed once for each pixel of the tile, not once for each patch."""

    def __init__(self, model: SensorModel) -> None:
        super().__init__()
        dtypes = (each.dtype for each in model.network.parameters())
        self.scaling, self.dtype = model.scaling, next(dtypes, torch.float32)
        self.pixels = as_network(model.network, "scene graph").strips().pixels

    def forward(self, tile: Tensor) -> Tensor:
        """Map (rows, columns, sensor bands) float32 to (rows, columns, features)."""
        features: Tensor = self.pixels(self.scaling(tile).to(self.dtype))
        return features


class StripModel(nn.Module):
    """The outputs of a row of pixels, from the features of its strip of P rows."""

    class_ids: Tensor

    def __init__(self, model: SensorModel, card: ModelCard) -> None:
        super().__init__()
        self.row = as_network(model.network, "scene graph").strips().row
        self.temperature, self.read_out = model.temperature, model.read_out
        self.kinds = OUTPUTS if model.read_out is None else VALUES
        self.register_buffer("class_ids", torch.tensor(card.class_ids, dtype=torch.int32))

    def forward(self, strip: Tensor) -> tuple[Tensor, ...]:
        """Map (P, W + P - 1, features) to ids (W), confidence (W) and probabilities (W, C).

        A model of values gives these alone, (W, C).
        """
        logits = self.row(strip).float()
        if self.read_out is not None:
            return (self.read_out(logits),)
        chances = probabilities(logits, self.temperature)
        classes = self.class_ids.index_select(0, chances.argmax(dim=1))
        return classes, chances.amax(dim=1), chances


def to_scene_onnx(model: SensorModel, card: ModelCard, *, half: bool = False) -> onnx.ModelProto:
    """Return the ONNX scene graph: tile (H + P - 1, W + P - 1, bands) -> maps (H, W).

    The outputs are `classes` (class ids, int32) and `confidence` (float32). If the card has a
    smoothing guide, the `probabilities` (H, W, C) that a map is smoothed from are another output.
    A model of values has one output, `values` (H, W, T).
    """
    of_classes = OUTPUTS if card.smoothing is not None else OUTPUTS[:2]
    outputs = of_classes if model.read_out is None else VALUES
    graph = scene_graph(model, card, outputs, half=half)
    return finish_graph(graph, card, "scene")


def scene_graph(
    model: SensorModel, card: ModelCard, outputs: Sequence[str], *, half: bool = False
) -> onnx.ModelProto:
    """Return a graph with some outputs and without a card; see `to_scene_onnx`."""
    example_patches(model, card)  # refuses a card of another model
    plain = inference_copy(model, card)
    if half:
        plain.network.half()
    tile, strip = TileModel(plain).eval(), StripModel(plain, card).eval()
    whole = _trace_tile(tile, card)
    inner = _piece_body(_trace_strip(strip, tile, card), outputs, card)
    outer = _chunk_body(whole.graph, inner, outputs, card)
    whole.graph.CopyFrom(_around(outer, outputs, card))
    whole.graph.initializer.extend(_constants(card, piece_of(tile, strip, card)))
    return whole


def piece_of(tile: TileModel, strip: StripModel, card: ModelCard) -> int:
    """Return how many pixels of a row to classify at a time.

    Many pixels share the overhead of a step, as long as their largest tensor fits the CPU's cache.
    """
    fewest, most = PIECES
    seen = _LargestTensor()
    with torch.no_grad(), seen:
        strip(tile(torch.zeros(card.patch_size, fewest + card.patch_size - 1, card.bands)))
    fitting = CACHE_BYTES // (4 * seen.values)
    return min(max(fitting, 1) * fewest, most)


class _LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Record the number of values of the largest tensor that an operation returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values = 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and look at its result."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.values = max(self.values, result.numel())
        return result


def _trace_tile(tile: TileModel, card: ModelCard) -> onnx.ModelProto:
    free = {axis: torch.export.Dim(f"chunk_{name}", min=2) for axis, name in enumerate("yx")}
    example = torch.zeros(card.patch_size + 3, card.patch_size + 5, card.bands)
    traced = trace(tile, example, free, (["chunk"], ["features"]), OPSET)
    take_dtype(traced, card.dtype)
    return traced


def _trace_strip(strip: StripModel, tile: TileModel, card: ModelCard) -> onnx.GraphProto:
    """Return the model of a strip in ONNX, for strips of any width."""
    side = card.patch_size
    with torch.no_grad():
        example = tile(torch.zeros(side, side + 8, card.bands))
    width = torch.export.Dim("columns", min=side + 1)
    names = (["strip"], [f"piece_{kind}" for kind in strip.kinds])
    traced = trace(strip, example, {1: width}, names, OPSET)
    return onnx.compose.add_prefix_graph(
        traced.graph, "strip_", rename_inputs=False, rename_outputs=False
    )


def _constants(card: ModelCard, piece: int) -> list[onnx.TensorProto]:
    side = card.patch_size
    values: dict[str, Any] = {
        "zero": [0],
        "one": [1],
        "two": [2],
        "minus_one": [-1],
        "axis_column": [1],
        "side": [side],
        "depth": [len(card.class_ids)],
        "margins": [side - 1],
        "piece": [piece],
        "pieces_of_chunk": [max(CHUNK // piece, 1)],
        "scalar_one": 1,
    }
    return [numpy_helper.from_array(np.array(v, np.int64), k) for k, v in values.items()]


def _nodes(steps: Sequence[_Step]) -> list[onnx.NodeProto]:
    axes: dict[str, dict[str, Any]] = {"Concat": {"axis": 0}}
    return [
        helper.make_node(op, list(ins), [out], name=out, **axes.get(op, {}))
        for op, ins, out in steps
    ]


def _rounded_up(quotient: str, dividend: str, divisor: str) -> list[_Step]:
    return [
        ("Add", [dividend, divisor], f"{quotient}_sum"),
        ("Sub", [f"{quotient}_sum", "one"], f"{quotient}_up"),
        ("Div", [f"{quotient}_up", divisor], quotient),
    ]


def _map(name: str, kind: str, shape: Sequence[str], card: ModelCard) -> onnx.ValueInfoProto:
    element = TensorProto.INT32 if kind == "classes" else TensorProto.FLOAT
    sizes: list[str | int | None] = [*shape]
    if kind in DEEP:
        sizes.append(len(card.class_ids))
    return helper.make_tensor_value_info(name, element, sizes)


def _around(outer: onnx.GraphProto, kinds: Sequence[str], card: ModelCard) -> onnx.GraphProto:
    """Return the graph around the loops: it computes their sizes, and joins what they give.

    There are as few chunks and pieces as possible, all of the same width. Columns beyond the tile
    repeat its last one, and are cut off at the end.
    """
    nodes = _nodes(
        [
            ("Shape", ["tile"], "tile_shape"),
            ("Slice", ["tile_shape", "zero", "one"], "rows_in"),
            ("Slice", ["tile_shape", "one", "two"], "columns_in"),
            ("Sub", ["rows_in", "margins"], "height"),
            ("Sub", ["columns_in", "margins"], "width"),
            ("Sub", ["columns_in", "one"], "last_column"),
            *_rounded_up("fewest_pieces", "width", "piece"),
            *_rounded_up("chunks", "fewest_pieces", "pieces_of_chunk"),
            *_rounded_up("pieces", "fewest_pieces", "chunks"),
            ("Mul", ["chunks", "pieces"], "all_pieces"),
            *_rounded_up("piece_width", "width", "all_pieces"),
            ("Add", ["piece_width", "margins"], "strip_width"),
            ("Concat", ["side", "strip_width"], "strip_size"),
            ("Mul", ["pieces", "piece_width"], "chunk_width"),
            ("Add", ["chunk_width", "margins"], "chunk_columns"),
            ("Concat", ["height", "minus_one"], "grid"),
            ("Concat", ["height", "minus_one", "depth"], "grid_of_all"),
            ("Mul", ["height", "pieces"], "steps"),
            ("Squeeze", ["steps"], "inner_trips"),
            ("Squeeze", ["chunks"], "outer_trips"),
        ]
    )
    maps = [f"chunks_{kind}" for kind in kinds]
    nodes.append(helper.make_node("Loop", ["outer_trips", ""], maps, name="loop", body=outer))
    for kind in kinds:
        deep = kind in DEEP
        nodes.append(
            helper.make_node(
                "Transpose",
                [f"chunks_{kind}"],
                [f"rows_{kind}"],
                perm=[1, 0, 2, 3] if deep else [1, 0, 2],
            )
        )
        nodes += _nodes(
            [
                ("Reshape", [f"rows_{kind}", "grid_of_all" if deep else "grid"], f"wide_{kind}"),
                ("Slice", [f"wide_{kind}", "zero", "width", "axis_column"], kind),
            ]
        )
    element = helper.np_dtype_to_tensor_dtype(card.numpy_dtype)
    tile = helper.make_tensor_value_info("tile", element, ["tile_rows", "tile_columns", card.bands])
    return helper.make_graph(
        nodes, "scene", [tile], [_map(kind, kind, ["H", "W"], card) for kind in kinds]
    )


def _chunk_body(
    traced: onnx.GraphProto, inner: onnx.GraphProto, kinds: Sequence[str], card: ModelCard
) -> onnx.GraphProto:
    """Return the outer loop's body: take a chunk out of the tile, and classify its pieces."""
    before: list[_Step] = [
        ("Reshape", ["chunk_number", "one"], "chunk_at"),
        ("Mul", ["chunk_at", "chunk_width"], "chunk_left"),
        ("Add", ["chunk_left", "chunk_columns"], "chunk_right"),
        ("Squeeze", ["chunk_left"], "chunk_first"),
        ("Squeeze", ["chunk_right"], "chunk_last"),
        ("Range", ["chunk_first", "chunk_last", "scalar_one"], "chunk_free"),
        ("Min", ["chunk_free", "last_column"], "chunk_taken"),
    ]
    nodes = [
        *_nodes(before),
        helper.make_node("Gather", ["tile", "chunk_taken"], ["chunk"], name="chunk", axis=1),
        *traced.node,
    ]
    pieces = [f"pieces_{kind}" for kind in kinds]
    nodes.append(helper.make_node("Loop", ["inner_trips", ""], pieces, name="pieces", body=inner))
    grids = {kind: "grid_of_all" if kind in DEEP else "grid" for kind in kinds}
    nodes += _nodes(
        [("Reshape", [f"pieces_{kind}", grids[kind]], f"chunk_{kind}") for kind in kinds]
    )
    return _loop_body("chunk", nodes, ["rows", "columns"], kinds, card, traced)


def _piece_body(traced: onnx.GraphProto, kinds: Sequence[str], card: ModelCard) -> onnx.GraphProto:
    """Return the inner loop's body: cut a strip out of a chunk's features, and classify it."""
    steps: list[_Step] = [
        ("Reshape", ["piece_number", "one"], "piece_at"),
        ("Div", ["piece_at", "pieces"], "piece_row"),
        ("Mod", ["piece_at", "pieces"], "piece_column"),
        ("Mul", ["piece_column", "piece_width"], "piece_left"),
        ("Concat", ["piece_row", "piece_left"], "strip_start"),
        ("Add", ["strip_start", "strip_size"], "strip_end"),
        ("Slice", ["features", "strip_start", "strip_end"], "strip"),
    ]
    nodes = [*_nodes(steps), *traced.node]
    return _loop_body("piece", nodes, ["columns"], kinds, card, traced)


def _loop_body(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[str],
    kinds: Sequence[str],
    card: ModelCard,
    traced: onnx.GraphProto,
) -> onnx.GraphProto:
    """Return a loop's body with the maps of one step as outputs, and the weights of `traced`."""
    number = helper.make_tensor_value_info(f"{name}_number", TensorProto.INT64, [])
    going, on = (
        helper.make_tensor_value_info(f"{name}_{word}", TensorProto.BOOL, [])
        for word in ("keep_going", "goes_on")
    )
    onward = helper.make_node("Identity", [going.name], [on.name], name=on.name)
    maps = [
        _map(f"{name}_{kind}", kind, [f"{name}_{size}" for size in shape], card) for kind in kinds
    ]
    return helper.make_graph(
        [*nodes, onward], name, [number, going], [on, *maps], initializer=list(traced.initializer)
    )
