"""`torch.onnx.export` for tests: networks of one structure are traced once in a session.

Tracing takes most of the time of a small run, and its result depends on the weights only through
the values of the initializers. `HYTAS_TRACES` names the folder of the traced graphs, which all
processes of a session share; without it each network is traced anew. torch's table of operators,
which it makes again for each graph, is made once in a process.
"""

import hashlib
import io
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnx_ir
import pytest
import torch
from torch import nn
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.utils import _pytree as tree

VARIABLE = "HYTAS_TRACES"
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
    key = _key(model, example, options) if folder else None
    if folder is None or key is None:
        return _EXPORT(model, example, optimize=optimize, **options)
    path = Path(folder) / f"{key}.onnx"
    if not path.exists():
        program = _EXPORT(model, example, optimize=False, **options)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(program.model_proto.SerializeToString())
        part.replace(path)
    graph = onnx_ir.serde.deserialize_model(onnx.load(path))
    program = torch.onnx.ONNXProgram(graph, None)  # type: ignore[arg-type]
    weights = dict(model.named_parameters()) | dict(model.named_buffers())
    program.apply_weights(
        {name: value for name, value in weights.items() if name in graph.graph.initializers}
    )
    if optimize:
        program.optimize()
    return program


class _Structure(pickle.Pickler):
    """Pickles a module with the shapes of its weights in place of their values."""

    def __init__(self, file: io.BytesIO, model: nn.Module) -> None:
        super().__init__(file, protocol=5)
        named = (*model.named_parameters(), *model.named_buffers())
        self._names = {id(value): name for name, value in named}

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
