"""Networks of which only names and sizes are read, or which run with parameters of others."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from hytas.models.layers import holding

Module = TypeVar("Module", bound=nn.Module)


class MadeTensor:
    """Modules that networks without numbers share.

    Attributes:
        modules: by place and sizes.
        members: the same modules.
        patterns: by sizes, of which they are copies.
    """

    def __init__(self) -> None:
        self.modules: dict[Hashable, nn.Module] = {}
        self.members: set[nn.Module] = set()
        self.patterns: dict[Hashable, nn.Module] = {}

    def forget(self, most: int) -> bool:
        """Drop the modules if there are more than `most`; return whether that was so."""
        if len(self.patterns) > most:
            self.patterns.clear()
        if len(self.members) <= most:
            return False
        self.modules.clear()
        self.members.clear()
        return True


_made: ContextVar[MadeTensor | None] = ContextVar("modules made without numbers", default=None)


@contextmanager
def without_numbers(made: MadeTensor) -> Iterator[None]:
    """Build networks on the meta device, and draw no number for them.

    Args:
        made: modules that these networks share, and to which new ones are added.
    """
    with holding(_made, made), _Meta():
        yield


def is_without_numbers() -> bool:
    """Return whether a network is being built in `without_numbers`."""
    return _made.get() is not None


def shared(place: Hashable, kind: Callable[..., Module], *sizes: Hashable) -> Module:
    """Return `kind(*sizes)`; in `without_numbers`, the one that was made for an equal network.

    Args:
        place: distinguishes the modules of one network that have equal sizes.
        kind: class of the module, or a function that returns it.
    """
    if (made := _made.get()) is None:
        return kind(*sizes)
    key = (place, kind, *sizes)
    if key not in made.modules:
        if key[1:] not in made.patterns:
            made.patterns[key[1:]] = kind(*sizes)
        made.modules[key] = _copied(made.patterns[key[1:]])
        made.members.add(made.modules[key])
    return made.modules[key]  # type: ignore[return-value]


def _copied(module: nn.Module) -> nn.Module:
    """Return a module with parameters, forward hooks and modules inside of its own."""
    copied = module.__class__.__new__(module.__class__)
    vars(copied).update(
        vars(module),
        _parameters={
            name: None if parameter is None else nn.Parameter(parameter.detach())
            for name, parameter in module._parameters.items()
        },
        _forward_hooks=module._forward_hooks.copy(),
        _modules={name: child and _copied(child) for name, child in module._modules.items()},
    )
    return copied


class _Meta(TorchFunctionMode):
    """Make tensors on the meta device, and draw no number for them."""

    _MAKE = frozenset({torch.empty, torch.zeros, torch.ones})
    _DRAW = frozenset(
        {
            *("uniform_", "normal_", "fill_", "zero_", "erfinv_", "mul_", "add_", "clamp_"),
            *("trunc_normal_", "kaiming_uniform_", "zeros_", "ones_"),
        }
    )

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in self._MAKE:
            return func(*args, **{**kwargs, "device": "meta"})
        if getattr(func, "__name__", "") in self._DRAW:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
