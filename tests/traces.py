"""`torch.onnx.export` for tests: networks of one structure are traced once in a session.

Tracing takes most of the time of a small run. Its result depends on the weights only through the
values of the initializers, and on the temperature through one constant. `HYTAS_TRACES` names the
folder of the traced graphs, which all processes of a session share; without it each network is
traced anew. torch's table of operators, which it makes again for each graph, is made once in a
process.
"""

import hashlib
import io
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
import torch
from onnx import numpy_helper
from torch import nn
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.utils import _pytree as tree

from hytas.export.reduced import HalfModel
from hytas.export.scene_graph import StripModel
from hytas.models import SensorModel

VARIABLE = "HYTAS_TRACES"
MARK = float(np.float32(0.7182818))
"""Stands for the temperature in a graph that is kept."""
_EXPORT: Callable[..., Any] = torch.onnx.export
operators = cache(ONNXRegistry.from_torchlib)


def trace_once(patch: pytest.MonkeyPatch) -> None:
    """Take traced graphs from the folder of this session."""
    patch.setattr(torch.onnx, "export", export_once)
    patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(operators))


def export_once(
    model: nn.Module, example: Any, *, optimize: bool = True, **options: Any
) -> torch.onnx.ONNXProgram:
    """Return what `torch.onnx.export` returns, from a graph of the same structure if there is one.

    Args:
        model: any module; only those made of modules of hytas and torch are kept.
        example: its arguments.
        optimize: whether the graph is optimized, which is done anew: it computes with weights.
        options: of `torch.onnx.export`.
    """
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return _EXPORT(model, example, optimize=optimize, **options)
    temperatures = {
        part: part.temperature
        for part in model.modules()
        if isinstance(part, SensorModel | StripModel | HalfModel) and part.temperature != 1.0
    }
    try:
        for part in temperatures:
            part.temperature = MARK
        path = _traced(model, example, Path(folder), options)
    finally:
        for part, temperature in temperatures.items():
            part.temperature = temperature
    if path is None:
        return _EXPORT(model, example, optimize=optimize, **options)
    loaded = onnx.load(path)
    for temperature in set(temperatures.values()):
        _set_temperature(loaded, temperature)
    graph = onnx_ir.serde.deserialize_model(loaded)
    program = torch.onnx.ONNXProgram(graph, None)  # type: ignore[arg-type]
    weights = dict(_named(model))
    program.apply_weights(
        {name: value for name, value in weights.items() if name in graph.graph.initializers}
    )
    if optimize:
        program.optimize()
    return program


def _traced(model: nn.Module, example: Any, folder: Path, options: dict[str, Any]) -> Path | None:
    """Return the file of the graph of a model, traced if there is none; None if it has no key."""
    key = _key(model, example, options)
    if key is None:
        return None
    path = folder / f"{key}.onnx"
    if not path.exists():
        program = _EXPORT(model, example, optimize=False, **options)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(program.model_proto.SerializeToString())
        part.replace(path)
    return path


def _set_temperature(graph: onnx.ModelProto, temperature: float) -> None:
    """Write the temperature into the constants that have the value of `MARK`."""
    constants = [
        attribute.t
        for node in graph.graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    ]
    changed = 0
    for constant in (*constants, *graph.graph.initializer):
        values = numpy_helper.to_array(constant)
        if values.dtype == np.float32 and values.size == 1 and values.item() == MARK:
            new = np.full_like(values, temperature)
            constant.CopyFrom(numpy_helper.from_array(new, constant.name))
            changed += 1
    assert changed <= 1  # the part of a scene graph that all pixels share has none


def _named(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield all weights, those of shared parts by each of their names: a graph has any of these."""
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


class _Structure(pickle.Pickler):
    """Pickles a module with the shapes of its weights in place of their values."""

    def __init__(self, file: io.BytesIO, model: nn.Module) -> None:
        super().__init__(file, protocol=5)
        self._names = {id(value): name for name, value in _named(model)}

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        facts = (tuple(value.shape), str(value.dtype))
        name = self._names.get(id(value))
        return (name, *facts) if name else (value.detach().numpy().tobytes(), *facts)


def _key(model: nn.Module, example: Any, options: dict[str, Any]) -> str | None:
    """Return a digest of all that a graph depends on, or None for a module of unknown code."""
    packages = {type(part).__module__.partition(".")[0] for part in model.modules()}
    if not packages <= {"hytas", "torch"}:
        return None
    shapes = tree.tree_map_only(torch.Tensor, lambda each: (each.shape, each.dtype), example)
    file = io.BytesIO()
    with suppress(pickle.PicklingError, AttributeError, TypeError):
        _Structure(file, model).dump(model)
        return hashlib.sha256(file.getvalue() + repr((shapes, options)).encode()).hexdigest()
    return None
