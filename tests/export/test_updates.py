"""A model whose update was rounded, on pixels that no training saw."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from small_model import Exported

from hytas.deploy.delta import round_difference
from hytas.export.onnx_file import graphs_of, seal
from hytas.export.scene_graph import to_scene_onnx
from hytas.export.updates import check_rounded


def changed(old: bytes, by: float) -> bytes:
    """The model with random changes of its read-out."""
    graph, rng = onnx.load_from_string(old), np.random.default_rng(0)
    for part in graphs_of(graph.graph):
        for tensor in part.initializer:
            if "head" in tensor.name:
                values = numpy_helper.to_array(tensor)
                values = values + (by * rng.standard_normal(values.shape)).astype("f4")
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    seal(graph)
    return graph.SerializeToString(deterministic=True)


@pytest.mark.parametrize("kind", ["patch", "scene"])
def test_a_rounded_model_is_checked(kind: str, exported: Exported) -> None:
    old = exported.onnx.read_bytes()
    if kind == "scene":
        graph = to_scene_onnx(exported.model, exported.card)
        old = graph.SerializeToString(deterministic=True)
    new = changed(old, 0.05)
    rounded, what = round_difference(old, new, 8)
    assert what
    pixels = np.arange(0, exported.scene.labels.size, 2)
    found = check_rounded(rounded, new, exported.scene, pixels, 8)
    assert found["agreement"] >= 0.99
    assert found["pixels"] == len(pixels)


def test_a_run_s_folder_is_found(tmp_path: Path) -> None:
    from hytas.cli.update import run_of

    assert run_of(tmp_path / "model.onnx") is None
    (tmp_path / "config.json").write_text("{}")
    assert run_of(tmp_path / "model.onnx") == run_of(tmp_path) == tmp_path
