"""Exported files against torch: values, types, bytes, and what is refused."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnxruntime import InferenceSession
from small_model import Exported

from hytas.deploy import DeployedModel
from hytas.export.onnx_file import OPSET, seal, take_dtype, trace
from hytas.model_card import DTYPES
from hytas.models import build_network
from hytas.spaces.shape import ImageShape


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_of_a_cube(exported: Exported, dtype: str, tmp_path: Path) -> None:
    """The graph retyped, and TorchScript as it is, against torch on the same values."""
    patches = exported.patches(60).astype(dtype)
    expected = exported.probabilities(patches.astype(np.float32))
    graph = onnx.load(exported.onnx)
    _back_to_float(graph)
    take_dtype(graph, dtype)
    card = dataclasses.replace(exported.card, dtype=dtype)
    del graph.metadata_props[:]
    for name, text in card.to_properties().items():
        graph.metadata_props.add(key=name, value=text)
    seal(graph)
    onnx.save(graph, tmp_path / "model.onnx")
    deployed = DeployedModel.load(tmp_path / "model.onnx", "cpu")
    assert np.abs(deployed.predict_patches(patches) - expected).max() < 1e-5
    script = torch.jit.load(str(exported.files["torchscript"]))
    with torch.no_grad():
        assert np.abs(script(torch.from_numpy(patches)).numpy() - expected).max() < 1e-5


def _back_to_float(graph: onnx.ModelProto) -> None:
    cast = graph.graph.node[0]
    assert (cast.op_type, cast.input[0]) == ("Cast", "patches")
    for node in graph.graph.node[1:]:
        node.input[:] = ["patches" if name == cast.output[0] else name for name in node.input]
    del graph.graph.node[0]
    graph.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def test_a_file_has_the_oldest_version_that_its_operators_allow(exported: Exported) -> None:
    """Operator set 20 begins at version 9; onnxruntime 1.17 refuses version 10."""
    assert onnx.load(exported.onnx).ir_version == 9


POOLED = {"base_dim": 16, "depth": [1, 1, 1], "num_heads": [1, 1, 1], "mlp_ratio": 1}
SHIFTED = {"space": "s3", "embed_dim": 32, "window": [2, 2, 2, 2]}
for stage, depth in enumerate((2, 1, 1, 1), start=1):
    SHIFTED |= {f"num_heads_{stage}": [1] * depth, f"mlp_ratio_{stage}": [1] * depth}


@pytest.mark.parametrize("genes", [{"space": "pit-tiny", **POOLED}, SHIFTED], ids=["pit", "s3"])
def test_a_network_of_images_takes_any_number_of_them(genes: dict[str, Any]) -> None:
    shape = ImageShape.of(str(genes["space"]), channels=2, classes=3, image_size=12)
    network = build_network(genes, shape).eval().requires_grad_(False)
    free = {0: torch.export.Dim("N", min=1)}
    graph = trace(network, torch.zeros(2, 12, 12, 2), free, (["images"], ["logits"]), OPSET)
    session = InferenceSession(graph.SerializeToString())
    images = torch.randn(5, 12, 12, 2)
    (logits,) = session.run(None, {"images": images.numpy()})
    np.testing.assert_allclose(logits, network(images), atol=1e-5)
