"""Fuzz targets of exported models: a small graph with its card, made by code."""

from pathlib import Path
from random import Random

import numpy as np
from fuzz_mutator import Sample
from onnx import GraphProto, TensorProto, helper, numpy_helper

from hytas.deploy import DeployedModel, model_file
from hytas.export.onnx_file import finish_graph
from hytas.model_card import ModelCard

_SIDE, _BANDS, _CLASSES = 3, 5, 4


def corpus() -> list[Sample]:
    """A patch graph with one product, in two element types."""
    return [{"model.onnx": _model(dtype)} for dtype in ("uint16", "float32")]


def _model(dtype: str) -> bytes:
    weights = np.random.default_rng(0).normal(size=(_SIDE**2 * _BANDS, _CLASSES))
    constants = {"w": weights.astype(np.float32), "flat": np.array([0, -1], np.int64)}
    nodes = [
        helper.make_node("Cast", ["patches"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["real", "flat"], ["rows"]),
        helper.make_node("MatMul", ["rows", "w"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["N", _SIDE, _SIDE, _BANDS]
    graph = helper.make_graph(
        nodes,
        "patch",
        [helper.make_tensor_value_info("patches", element, shape)],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", _CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return _sealed(graph, dtype)


def _sealed(graph: GraphProto, dtype: str) -> bytes:
    card = ModelCard(
        class_names=tuple("abcd"),
        class_ids=(1, 2, 3, 9),
        patch_size=_SIDE,
        bands=_BANDS,
        dtype=dtype,
        preprocessing={"method": "standard", "bands": [0, 2, 4], "offset": [1.0] * 3},
        architecture={"space": "hytas", "depth": 2},
        band_group=1,
        palette=((0, 0, 0),) * _CLASSES,
        wavelengths=(400.0, 450.0, 500.0, 550.0, 600.0),
    )
    opset = [helper.make_opsetid("", 20)]
    model = finish_graph(
        helper.make_model(graph, opset_imports=opset, ir_version=10), card, "patch"
    )
    return bytes(model.SerializeToString(deterministic=True))


def run(path: Path) -> None:
    """Open the model and classify patches with it, as `hytas classify` does."""
    model = DeployedModel.load(path, "cpu", threads=1)
    side, bands = model.card.patch_size, model.card.bands
    model.predict_patches(np.zeros((3, side, side, bands), model.card.numpy_dtype))


def sealed(sample: Sample, rng: Random) -> Sample:
    """The damaged file with the checksum that it now has, so that what lies behind is reached."""
    content = sample["model.onnx"]
    return {"model.onnx": model_file.sealed(content)}
