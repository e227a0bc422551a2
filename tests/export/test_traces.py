"""Tests of `traces`, by which tests trace networks of one structure once."""

from pathlib import Path

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession
from torch import nn

import traces
from hytas.export.onnx_file import OPSET, trace


def test_a_kept_graph_takes_weights_that_have_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of the scene graph has parts of its network under names of its own."""
    monkeypatch.setenv(traces.VARIABLE, str(tmp_path))
    traces.trace_once(monkeypatch)
    values = torch.ones(2, 3)
    for _ in range(2):
        part = nn.Linear(3, 3)
        model = nn.Sequential(nn.Sequential(part), part).eval().requires_grad_(False)
        graph = trace(model, values, {}, (["values"], ["given"]), OPSET)
        session = InferenceSession(graph.SerializeToString())
        (given,) = session.run(None, {"values": values.numpy()})
        np.testing.assert_allclose(given, model(values), atol=1e-6)
    assert len(list(tmp_path.iterdir())) == 1
