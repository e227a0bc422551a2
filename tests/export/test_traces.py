"""Graphs that are traced once: by formats of one model, and by all tests of one structure."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from small_model import small_model, small_scene

import traces
from hytas.data import PatchReader
from hytas.export import export_formats
from hytas.export.onnx_file import to_onnx


@pytest.mark.skipif("HYTAS_TRACE_ANEW" in os.environ, reason="no graph is reused")
def test_a_graph_with_other_weights_is_that_of_its_network(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = small_scene()
    model, card = small_model(scene)
    patches = PatchReader(scene.cube, 5)(np.arange(0, 300, 7))

    def exported() -> onnx.ModelProto:
        graph = to_onnx(model, card)
        session = onnxruntime.InferenceSession(graph.SerializeToString())
        (found,) = session.run(None, {"patches": patches})
        with torch.no_grad():
            assert abs(found - model(torch.from_numpy(patches)).numpy()).max() < 1e-5
        return graph

    def kept() -> int:
        return len(list(Path(os.environ[traces.VARIABLE]).iterdir()))

    model.temperature = 0.6
    first = exported()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(0.9)
    model.temperature = 0.8
    before = kept()
    second = exported()
    assert kept() == before
    monkeypatch.delenv(traces.VARIABLE)
    traced = exported()
    operators = [[node.op_type for node in one.graph.node] for one in (first, second, traced)]
    assert operators[0] == operators[1] == operators[2]


def test_formats_of_one_model_trace_it_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, card = small_model(small_scene())
    with torch.no_grad():
        next(model.parameters()).mul_(0.7)  # a model that no other test traces
    traced: list[Any] = []
    export: Any = torch.onnx.export

    def counted(*arguments: Any, **options: Any) -> Any:
        traced.append(arguments[0])
        return export(*arguments, **options)

    monkeypatch.setattr(torch.onnx, "export", counted)
    export_formats(model, tmp_path, card, ["onnx", "onnx-w8", "onnx-scene", "onnx-scene-w8"])
    assert len(traced) == 3  # a patch, and the two parts of a scene
