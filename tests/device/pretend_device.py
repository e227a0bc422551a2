"""A device that computes on the CPU but, as a GPU does, refuses what lies elsewhere.

With it a machine without a GPU can tell whether every tensor of a computation is where it must be:
tensors of two devices in one operation, or a generator of another device than its tensor, raise.
Registering a device is for a whole process, so tests use it in one of their own.
"""

from typing import Any

import torch
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "pretend"
LIBRARY = torch.library.Library("aten", "IMPL")
aten = torch.ops.aten
# Operations that read indices from the CPU, or copy from one device to another, on a GPU too.
MIXED = {aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default}
COPIES = {aten._to_copy.default, aten.copy_.default}


class PretendTensor(torch.Tensor):
    """A tensor that says it is on the device; `held` has its values."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "PretendTensor":
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
        )
        tensor.held = held
        return tensor

    def tolist(self) -> Any:
        """The values; torch itself has none for a tensor that is only a wrapper."""
        return self.held.tolist()

    @property
    def data(self) -> torch.Tensor:
        """A view without a graph."""
        return self.detach()

    @data.setter
    def data(self, other: "PretendTensor") -> None:
        torch.Tensor.data.__set__(self, other)
        self.held = other.held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an operation, on the device that a GPU would leave it on."""
    leaves = tree.tree_leaves((args, kwargs))
    here = [leaf for leaf in leaves if isinstance(leaf, PretendTensor)]
    asked = kwargs.get("device")
    if func not in COPIES:
        check(func, leaves, bool(here))
    inside = {k: v for k, v in kwargs.items() if k != "device"}
    if asked is not None:  # a meta tensor stays one
        is_pretended = torch.device(asked).type == NAME
        inside["device"] = torch.device("cpu") if is_pretended else asked
    given = tree.tree_map_only(PretendTensor, lambda t: t.held, (args, inside))
    result = func(*given[0], **given[1])
    if func is aten._local_scalar_dense.default:
        return result
    if func._schema.is_mutable and args and isinstance(args[0], torch.Tensor):
        return args[0] if isinstance(result, torch.Tensor) else result
    on_device = bool(here) if asked is None else torch.device(asked).type == NAME
    if func is aten.copy_.default:
        on_device = isinstance(args[0], PretendTensor)
    return tree.tree_map_only(torch.Tensor, PretendTensor, result) if on_device else result


def check(func: Any, leaves: list[Any], here: bool) -> None:
    """Refuse tensors and generators of another device; numbers (0 axes) may come from the CPU."""
    if not here:
        return
    for leaf in leaves:
        if isinstance(leaf, torch.Generator):
            raise RuntimeError(f"{func}: a generator on {leaf.device} for a tensor on {NAME}")
        elsewhere = isinstance(leaf, torch.Tensor) and not isinstance(leaf, PretendTensor)
        if elsewhere and leaf.ndim and func not in MIXED:
            raise RuntimeError(f"{func}: tensors on {NAME} and on {leaf.device}")


class PretendDevice(TorchDispatchMode):
    """While it is entered, the device is there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        return computed(func, args, kwargs or {})


class _Module(_DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


def register() -> torch.device:
    """Make the device known to this process."""
    _setup_privateuseone_for_python_backend(NAME, _Module())
    # `torch.tensor(..., device=...)` passes modes and subclasses by.
    for name in ("empty_strided", "copy_"):
        kernel = getattr(aten, name).default
        LIBRARY.impl(name, lambda *a, _op=kernel, **k: computed(_op, a, k), "PrivateUse1")
    return torch.device(NAME, 0)
