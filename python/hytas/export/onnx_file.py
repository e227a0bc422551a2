"""Write a model as one ONNX file that takes raw pixels in the cube's element type."""

import contextlib
import copy
import hashlib
import io
import logging
import pickle
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxscript import optimizer
from torch import nn

from hytas.deploy.model_file import checksum_of
from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.model_card import CHECKSUM, IMAGE, ModelCard
from hytas.models import SensorModel
from hytas.models.layers import attention_written_out
from hytas.tasks import task_of_card

OPSET = 20
OPSETS = range(18, 25)
"""ONNX operator sets that hytas writes."""
_TALKATIVE = ("torch.onnx", "torch.export", "torch._export", "onnxscript", "onnx_ir", "root")
_ANY_SIZE = 2**62
_KEPT = 4
_TRACED: dict[tuple[object, ...], bytes] = {}
"""The last graphs: several formats of one model have the same."""


def export_onnx(
    model: SensorModel, path: str | Path, card: ModelCard, *, opset: int = OPSET
) -> Path:
    """Write `model` as an ONNX file: patches (N, P, P, bands) -> probabilities (N, C).

    The same model and card give the same bytes. Weights are inside the file.

    Args:
        model: in any mode, on any device; it is not changed.
        card: the metadata of the file; its dtype is the input type of the graph.
        opset: ONNX operator set, 18 to 24.

    Raises:
        InputError: the operator set is unknown, or the card does not describe the model.
        OSError: the file cannot be written.
    """
    return save(to_onnx(model, card, opset=opset), path)


def save(graph: onnx.ModelProto, path: str | Path) -> Path:
    """Write a model file; equal models give equal bytes."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(graph.SerializeToString(deterministic=True))
    return Path(path)


def to_onnx(model: SensorModel, card: ModelCard, *, opset: int = OPSET) -> onnx.ModelProto:
    """Return the ONNX model that `export_onnx` writes."""
    if opset not in OPSETS:
        raise InputError("opset", opset, f"must be {OPSETS[0]} to {OPSETS[-1]}")
    graph = patch_graph(inference_copy(model, card), model, card, opset)
    return finish_graph(graph, card, graph_kind(card))


def patch_graph(
    inner: nn.Module, model: SensorModel, card: ModelCard, opset: int = OPSET
) -> onnx.ModelProto:
    """Return the graph of `inner`, a form of `model` that maps patches to probabilities."""
    example, most = example_patches(model, card), largest_fold(model, card)
    names = (["patches"], [task_of_card(card).output_name])
    graph = trace(inner, example, {0: torch.export.Dim("N", min=1)}, names, opset, most)
    take_dtype(graph, card.dtype)
    return graph


def graph_kind(card: ModelCard) -> str:
    """Return the kind of the graph that takes the patches, or images, of a card."""
    return IMAGE if card.of_images else "patch"


def largest_fold(model: nn.Module, card: ModelCard) -> int:
    """Return how many elements a value may have that is computed now, not when the model runs.

    The relative positions of every two patches of an image are far larger than their tables.
    """
    return max(each.numel() for each in model.parameters()) if card.of_images else _ANY_SIZE


def finish_graph(graph: onnx.ModelProto, card: ModelCard, kind: str) -> onnx.ModelProto:
    """Set the name and the card of a graph, and check it.

    The file gets the oldest IR version that its operators allow: older runtimes refuse later ones.
    """
    graph.producer_name, graph.producer_version = "hytas", version("hytas")
    graph.ir_version = helper.find_min_ir_version_for(graph.opset_import)
    graph.graph.name = kind
    _store_narrow(graph.graph)
    set_card(graph, replace(card, graph=kind))
    onnx.checker.check_model(graph)
    return graph


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph, and the graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs_of(attribute.g)


def _store_narrow(graph: onnx.GraphProto) -> None:
    """Store double matrices that are float32 or float16 in truth as these, with a cast."""
    for inside in graphs_of(graph):
        for weight in list(inside.initializer):
            if weight.data_type != TensorProto.DOUBLE or len(weight.dims) != 2:
                continue
            values = numpy_helper.to_array(weight)
            with np.errstate(over="ignore"):
                narrow = [values.astype(kind) for kind in (np.float16, np.float32)]
            equal = [each for each in narrow if np.array_equal(each, values)]
            if not equal:
                continue
            stored, wide = f"{weight.name}_stored", weight.name
            weight.CopyFrom(numpy_helper.from_array(equal[0], stored))
            cast = helper.make_node("Cast", [stored], [wide], name=wide, to=TensorProto.DOUBLE)
            inside.node.insert(0, cast)


def set_card(graph: onnx.ModelProto, card: ModelCard) -> None:
    """Make `card` the metadata of an ONNX model, and seal it; a later change needs a new seal."""
    del graph.metadata_props[:]
    for name, text in card.to_properties().items():
        graph.metadata_props.add(key=name, value=text)
    seal(graph)


def seal(graph: onnx.ModelProto) -> None:
    """Write the SHA-256 of a model's file, without this entry, into its metadata."""
    others = [entry for entry in graph.metadata_props if entry.key != CHECKSUM]
    kept = [(entry.key, entry.value) for entry in others]
    del graph.metadata_props[:]
    for key, value in kept:
        graph.metadata_props.add(key=key, value=value)
    digest = checksum_of(graph.SerializeToString(deterministic=True))
    graph.metadata_props.add(key=CHECKSUM, value=digest)


def inference_copy(model: SensorModel, card: ModelCard | None = None) -> SensorModel:
    """Return a copy for tracing: on the CPU, in float32, in evaluation mode, without gradients.

    With a card, its scaling has only the steps that the card's element type and bands need.
    """
    plain = copy.deepcopy(model).to("cpu", torch.float32).eval().requires_grad_(False)
    if card is not None:
        plain.scaling.finite = card.numpy_dtype.kind != "f"
        plain.scaling.whole = len(plain.scaling.bands) == card.bands
    return plain


def example_patches(model: SensorModel, card: ModelCard) -> torch.Tensor:
    """Return patches for tracing, (2, P, P, bands) float32, with the centre of every band."""
    scaling = model.scaling
    side, kept = card.patch_size, int(scaling.bands.max()) + 1
    if kept > card.bands:
        raise InputError(
            "card", rule=f"must describe the model: it has {card.bands} bands and the model {kept}"
        )
    patches = torch.zeros(2, side, side, card.bands)
    patches[..., scaling.bands.cpu()] = scaling.offset.cpu()
    with torch.no_grad():
        classes = inference_copy(model)(patches).shape[1]
    if classes != len(card.class_ids):
        raise InputError(
            "card",
            rule=f"must describe the model: it has {len(card.class_ids)} classes and the model "
            f"{classes}",
        )
    return patches


def trace(
    model: nn.Module,
    example: Any,
    dynamic: Any,
    names: tuple[list[str], list[str]],
    opset: int,
    most: int = _ANY_SIZE,
) -> onnx.ModelProto:
    """Trace a module of one argument into ONNX; the same module and arguments are traced once.

    Values that depend on weights only are computed now, even large ones.

    Args:
        model: on the CPU, in evaluation mode.
        example: the argument: a float32 tensor, or lists of them.
        dynamic: axes of free size, as `torch.export.Dim`, nested like `example`.
        names: of the inputs and of the outputs.
        most: elements of such a value, if it is not to be left to the runtime.
    """
    key = _key(model, example, (dynamic, names, opset, most))
    if key in _TRACED:
        copied = onnx.ModelProto()
        copied.ParseFromString(_TRACED[key])
        return copied
    with quiet(), torch.no_grad(), attention_written_out():
        program = torch.onnx.export(
            model,
            (example,),
            dynamo=True,
            opset_version=opset,
            input_names=names[0],
            output_names=names[1],
            dynamic_shapes=(dynamic,),
            verbose=False,
            optimize=most == _ANY_SIZE,
        )
    assert program is not None  # with dynamo=True there always is one
    graph: onnx.ModelProto = optimizer.optimize(
        program.model_proto, input_size_limit=_ANY_SIZE, output_size_limit=most
    )
    _forget_origin(graph)
    if key is not None:
        for oldest in list(_TRACED)[: 1 - _KEPT]:
            _TRACED.pop(oldest, None)
        _TRACED[key] = graph.SerializeToString()
    return graph


class _Contents(pickle.Pickler):
    """Pickles tensors by their values: torch's own form depends on addresses."""

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        return value.detach().numpy().tobytes(), tuple(value.shape), str(value.dtype)


def _key(model: nn.Module, example: Any, settings: Any) -> tuple[object, ...] | None:
    """Return all that a graph depends on; None if the module cannot be pickled."""
    file = io.BytesIO()
    try:
        _Contents(file, protocol=5).dump((model, example))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    digest = hashlib.sha256(file.getvalue()).digest()
    # A class by itself, because a notebook may define another of the same name.
    return digest, repr(settings), *(type(part).forward for part in model.modules())


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep messages about internals of torch and onnxscript off the user's terminal."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _forget_origin(model: onnx.ModelProto) -> None:
    """Drop source paths, stack traces and inferred shapes.

    Paths and traces reveal the exporting machine, and inferred shapes break `quantize_dynamic`.
    """
    model.doc_string = ""
    graph = model.graph
    del model.metadata_props[:], graph.metadata_props[:], graph.value_info[:]
    graph.doc_string = ""
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""


def take_dtype(model: onnx.ModelProto, dtype: str) -> None:
    """Change the float32 input of `model` to `dtype`, with a cast inside the graph.

    Tracing in float32 and casting afterwards works for every type. torch can trace only few
    operators of its unsigned types.
    """
    (patches,) = model.graph.input
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    if element == TensorProto.FLOAT:
        return
    patches.type.tensor_type.elem_type = element
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == patches.name:
                node.input[index] = "patches_float"
    cast = helper.make_node(
        "Cast", [patches.name], ["patches_float"], name="cast_patches", to=TensorProto.FLOAT
    )
    model.graph.node.insert(0, cast)
