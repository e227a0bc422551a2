"""Networks of which only names and sizes are read, built in a fraction of the time."""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class WithoutNumbers(TorchFunctionMode):
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
