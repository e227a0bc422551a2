"""A tile graph for QGIS: the plugin Deepness opens it without code.

Deepness divides the values of a layer by 255, whatever their type, so the graph multiplies by 255
first. It wants the score of each class, and takes the largest. The metadata are those that it
reads: kind of model, class names, size and overlap of tiles, and no threshold.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from hytas.data.patches import mirror
from hytas.errors import InputError
from hytas.export.evidence import SCENE_ROWS, Evidence
from hytas.export.onnx_file import save
from hytas.export.parity import compared, open_torch
from hytas.export.scene_graph import scene_graph
from hytas.model_card import ModelCard
from hytas.models import SensorModel
from hytas.tasks import Classes
from hytas.tasks.classes import largest_gap

TILE = 128
"""Pixels along the side of a tile."""
FULL = 255.0
"""Deepness divides every value by this."""
_NODATA_SLACK = 1e-6
"""Relative difference of a no-data value after a division and a product in float32."""


def export_qgis(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write `model` as an ONNX file for Deepness: (1, bands, 128, 128) -> (1, C, 128, 128).

    The input are raw values divided by 255. The output are the probabilities of the classes, of
    which the plugin takes the most probable one. Beyond the tile's edge the tile is mirrored.
    """
    if card.of_images:
        raise InputError("formats", "qgis", "needs a model of scenes; this one takes images")
    graph = scene_graph(model, replace(card, dtype="float32"), ["probabilities"])
    _take_layer(graph.graph, card)
    for key, value in deepness_metadata(card).items():
        graph.metadata_props.add(key=key, value=json.dumps(value))
    graph.producer_name, graph.producer_version = "hytas", card.version
    graph.ir_version = helper.find_min_ir_version_for(graph.opset_import)
    onnx.checker.check_model(graph)
    return save(graph, path)


def deepness_metadata(card: ModelCard) -> dict[str, Any]:
    """Return what Deepness reads from a model, by key; each value is stored as JSON.

    Its code reads `tile_size`, and its documentation says `tiles_size`.
    """
    metres = card.pixel_metres
    return {
        "model_type": "Segmentor",
        "class_names": {str(place): name for place, name in enumerate(card.class_names)},
        **dict.fromkeys(("tile_size", "tiles_size"), TILE),
        "tiles_overlap": math.ceil(100 * 2 * card.margin / TILE),  # percent
        "seg_thresh": 0.0,
        "seg_small_segment": 0,
        **({} if metres is None else {"resolution": 100 * metres}),  # cm
    }


def _take_layer(graph: onnx.GraphProto, card: ModelCard) -> None:
    """Put a tile as Deepness gives it before a scene graph, and scores of classes behind it."""
    whole, margin = card.numpy_dtype.kind != "f", card.margin
    steps: list[tuple[str, list[str], dict[str, Any]]] = [
        ("Squeeze", ["axis_batch"], {}),
        ("Transpose", [], {"perm": [1, 2, 0]}),
        ("Mul", ["full"], {}),
    ]
    steps += [("Round", [], {})] if whole else []
    nodes, name = [], "layer"
    for number, (operator, others, attributes) in enumerate(steps):
        nodes.append(helper.make_node(operator, [name, *others], [f"raw_{number}"], **attributes))
        name = f"raw_{number}"
    constants: dict[str, Any] = {"axis_batch": np.array([0]), "full": np.float32(FULL)}
    if not whole and card.nodata is not None:
        mark = np.float32(card.nodata)
        constants |= {"mark": mark, "slack": np.abs(mark) * np.float32(_NODATA_SLACK)}
        nodes += [
            helper.make_node("Sub", [name, "mark"], ["from_mark"]),
            helper.make_node("Abs", ["from_mark"], ["gap"]),
            helper.make_node("LessOrEqual", ["gap", "slack"], ["is_mark"]),
            helper.make_node("Where", ["is_mark", "mark", name], ["marked"]),
        ]
        name = "marked"
    constants["edges"] = np.array([margin, margin, 0, margin, margin, 0])
    nodes.append(helper.make_node("Pad", [name, "edges"], ["tile"], mode="reflect"))
    after = [
        helper.make_node("Transpose", ["probabilities"], ["by_class"], perm=[2, 0, 1]),
        helper.make_node("Unsqueeze", ["by_class", "axis_batch"], ["scores"]),
    ]
    inside = list(graph.node)
    del graph.node[:], graph.input[:], graph.output[:]
    graph.node.extend([*nodes, *inside, *after])
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()
    )
    for ends, name, channels in (
        (graph.input, "layer", card.bands),
        (graph.output, "scores", len(card.class_ids)),
    ):
        shape = [1, channels, TILE, TILE]
        ends.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))


def judge_qgis(name: str, path: Path, evidence: Evidence) -> dict[str, Any]:
    """Check a tile graph as Deepness runs it: labels and probabilities of torch on some lines."""
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    reference, cube = open_torch(evidence.model), evidence.cube
    height, width = cube.shape[:2]
    side = evidence.across.patch_size
    rows, columns = (mirror(np.arange(TILE) % (2 * size - 1), size) for size in (height, width))
    (scores,) = session.run(None, {"layer": as_deepness(cube[rows[:, None], columns])})
    inner = np.arange(side // 2, min(TILE, width) - side // 2)
    lines = np.linspace(side // 2, min(TILE, height) - 1 - side // 2, SCENE_ROWS).astype(np.int64)
    largest, changed = 0.0, 0
    for line in np.unique(lines):
        expected = reference(evidence.across(line * width + inner))
        probabilities = scores[0, :, line, inner]
        largest = max(largest, largest_gap(probabilities, expected))
        changed += Classes(1).changed(probabilities, expected)
    count = len(np.unique(lines)) * len(inner)
    return compared(name, count, largest, changed)


def as_deepness(tile: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return a tile (H, W, bands) of a layer as Deepness gives it to a model: (1, bands, H, W)."""
    return (tile * 1.0 / FULL).astype(np.float32).transpose(2, 0, 1)[None]
