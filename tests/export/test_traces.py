"""The graphs that the tests reuse are those that torch would trace."""

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from small_model import small_model, small_scene

import traces
from hytas.data import extract_patches
from hytas.export.onnx_file import to_onnx


@pytest.mark.skipif("HYTAS_TRACE_ANEW" in os.environ, reason="no graph is reused")
def test_a_graph_with_other_weights_is_that_of_its_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = small_scene()
    model, card = small_model(scene)
    patches = extract_patches(scene.cube, np.arange(0, 300, 7), 5)

    def exported() -> onnx.ModelProto:
        graph = to_onnx(model, card)
        session = onnxruntime.InferenceSession(graph.SerializeToString())
        (found,) = session.run(None, {"patches": patches})
        with torch.no_grad():
            assert abs(found - model(torch.from_numpy(patches)).numpy()).max() < 1e-5
        return graph

    def kept() -> int:
        return len(list(Path(os.environ[traces.VARIABLE]).iterdir()))

    first = exported()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(0.9)
    before = kept()
    second = exported()
    assert kept() == before
    monkeypatch.delenv(traces.VARIABLE)
    traced = exported()
    operators = [[node.op_type for node in one.graph.node] for one in (first, second, traced)]
    assert operators[0] == operators[1] == operators[2]
