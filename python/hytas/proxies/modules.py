"""Proxies of any network: hooks on its linear layers show them as the stacked networks do.

What network.py and passes.py do for HyTAS networks, one at a time and for every search space: a
forward pass notes inputs and outputs, and each layer is shown to the proxies as soon as the
backward pass has the gradient of its output. No gradient of a weight is computed by autograd, and
nothing is kept that is not in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from hytas.proxies.initial import is_linear
from hytas.proxies.network import Tap

Visitor = Callable[[Tap], None]

NAMED = ("qkv", "proj", "fc1", "fc2", "head")


class TooLargeError(Exception):
    """The activations of a kept graph exceed the memory that there is for them."""


class Probe:
    """A network whose linear layers can be looked at.

    Args:
        network: in eval mode, parameters without gradients; it takes (N, P, P, bands), gives
            (N, classes) or a tuple that begins with them, and mixes no samples.
        classes: C, to tell the head.
    """

    def __init__(self, network: nn.Module, classes: int) -> None:
        self.network = network
        self.layers = dict(layer_kinds(network, classes))
        self.blocks = blocks(network)

    @contextmanager
    def watched(self, look: Look) -> Iterator[None]:
        """Hooks on the linear layers while the context lasts; `look` says who sees what."""
        handles = [
            module.register_forward_hook(partial(look.forward, kind))
            for module, kind in self.layers.items()
        ]
        if look.recompute:
            for block in self.blocks:
                block.forward = partial(_recomputed, block.forward)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            for block in self.blocks if look.recompute else ():
                del block.forward

    def logits(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        found = self.network(patches)
        logits: Tensor = found[0] if isinstance(found, tuple) else found
        return logits


class Look:
    """What a pass looks at.

    Args:
        samples: N, patches of the pass.
        early: sees the layers as the forward pass meets them.
        memory: bytes of activations above which a forward pass that keeps its graph is given up.
        recompute: activations inside blocks are computed again in the backward pass.

    Attributes:
        late: sees the layers as a backward pass meets them; None in one that nobody watches.
        backward: whether the forward pass is over.
        kept: bytes of the activations met in the forward pass.
        order: the layers met, with their places from 1.
    """

    def __init__(
        self,
        samples: int,
        early: Visitor | None = None,
        *,
        memory: int | None = None,
        recompute: bool = False,
    ) -> None:
        self.samples, self.early = samples, early
        self.memory = None if recompute else memory
        self.recompute = recompute
        self.late: Visitor | None = None
        self.backward = False
        self.kept = 0
        self.order: dict[nn.Module, int] = {}
        self._pending: dict[int, tuple[str, nn.Module, Tensor, Tensor, int]] = {}
        self._count = 0

    def forward(self, kind: str, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        """A forward hook of torch: note a layer, and await the gradient of its output."""
        inputs: Tensor = args[0]
        if not self.backward:
            self.order.setdefault(module, len(self.order) + 1)
            self.kept += (inputs.numel() + output.numel()) * output.element_size()
            if self.early is not None:
                self.early(self._tap(kind, module, inputs.detach(), output.detach()))
        if not torch.is_grad_enabled() or (self.backward and self.late is None):
            return
        if self.memory is not None and self.kept > self.memory:
            raise TooLargeError
        self._count += 1
        self._pending[self._count] = (
            kind,
            module,
            inputs.detach(),
            output.detach(),
            output._version,
        )
        leaf = output if output.requires_grad else output.requires_grad_()
        leaf.register_hook(partial(self._arrived, self._count))  # type: ignore[no-untyped-call]

    def _arrived(self, place: int, grad: Tensor) -> None:
        if self.late is None:
            return
        kind, module, inputs, outputs, version = self._pending.pop(place)
        if outputs._version != version:
            raise RuntimeError(f"a layer ({kind}) whose output is changed in place: not scored")
        with torch.no_grad():
            self.late(self._tap(kind, module, inputs, outputs, grad))

    def _tap(
        self,
        kind: str,
        module: nn.Module,
        inputs: Tensor,
        outputs: Tensor,
        grad: Tensor | None = None,
    ) -> Tap:
        weight = module.weight
        assert isinstance(weight, Tensor)
        exact = weight.dtype  # reduced precision ends at the matrix products
        return Tap(
            kind,
            torch.full((1,), float(self.order[module]), device=weight.device),
            torch.zeros(1, dtype=torch.int64, device=weight.device),
            weight.detach().flatten(1)[None],
            self._stacked(module, inputs).to(exact),
            self._rows(module, outputs).to(exact),
            None if grad is None else self._rows(module, grad).to(exact),
        )

    def _rows(self, module: nn.Module, outputs: Tensor) -> Tensor:
        """Outputs of a layer -> (1, N, T, out)."""
        if not isinstance(module, nn.Linear):
            outputs = outputs.flatten(2).transpose(1, 2)
        return outputs.reshape(1, self.samples, -1, outputs.shape[-1])

    def _stacked(self, module: nn.Module, inputs: Tensor) -> Tensor:
        """Inputs of a layer -> (1, N, T, in); those of a convolution as it stacks them."""
        if isinstance(module, nn.Linear):
            return inputs.reshape(1, self.samples, -1, inputs.shape[-1])
        columns = unfolded(module, inputs)
        return columns.reshape(1, self.samples, -1, columns.shape[-1])


def unfolded(module: nn.Module, inputs: Tensor) -> Tensor:
    """What a convolution multiplies by its weights, (N, channels, ...) -> (N, T, in)."""
    assert isinstance(module, nn.Conv1d | nn.Conv2d)
    assert not isinstance(module.padding, str)
    kernel, dilation = module.kernel_size, module.dilation
    padding, stride = module.padding, module.stride
    if isinstance(module, nn.Conv1d):
        inputs = inputs[:, :, None]
        kernel, dilation = (1, *kernel), (1, *dilation)
        padding, stride = (0, *padding), (1, *stride)
    columns = F.unfold(inputs, kernel, dilation=dilation, padding=padding, stride=stride)
    return columns.transpose(1, 2)


def layer_kinds(network: nn.Module, classes: int) -> Iterator[tuple[nn.Module, str]]:
    """The linear layers of a network with their kinds, told by name and place.

    "embed": a convolution, or a part of what is named so; "qkv", "proj", "fc1", "fc2", "head": what
    is named so. Otherwise: in an attention (by its name), the last linear layer is "proj", the
    others "qkv"; the last of all, if it gives the classes, is "head"; elsewhere the first of a
    module is "fc1", what follows "fc2".
    """
    named = [(n.split("."), m) for n, m in network.named_modules() if is_linear(m)]
    for place, (path, module) in enumerate(named):
        above = ".".join(path[:-1])
        brothers = [m for p, m in named if ".".join(p[:-1]) == above]
        if isinstance(module, nn.Conv1d | nn.Conv2d) or any("embed" in part for part in path):
            kind = "embed"
        elif path[-1] in NAMED:
            kind = path[-1]
        elif "att" in above.lower():
            kind = "proj" if module is brothers[-1] and len(brothers) > 1 else "qkv"
        elif place == len(named) - 1 and module.weight.shape[0] == classes:
            kind = "head"
        else:
            kind = "fc1" if module is brothers[0] else "fc2"
        yield module, kind


def blocks(network: nn.Module) -> list[nn.Module]:
    """The layers that a network repeats: members of its outermost lists that hold linear layers."""
    found: list[nn.Module] = []
    for module in network.children():
        if isinstance(module, nn.ModuleList | nn.Sequential):
            found += [m for m in module if any(map(is_linear, m.modules()))]
        else:
            found += blocks(module)
    return found


def _recomputed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`forward`, its activations dropped and computed again in the backward pass."""
    inputs = [each for each in args if isinstance(each, Tensor)]
    plain = not torch.is_grad_enabled() or not any(each.requires_grad for each in inputs)
    if plain or any(isinstance(each, Tensor) for each in kwargs.values()):
        return forward(*args, **kwargs)
    again = partial(forward, **kwargs)
    return checkpoint(again, *args, use_reentrant=True, preserve_rng_state=False)
