"""Hooks that show the linear layers of any network to the proxies.

A forward pass notes the inputs and outputs of each layer. The backward pass shows a layer to the
proxies as soon as it has the gradients of the outputs. Autograd computes no gradient of a weight,
and nothing is kept that is not in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from hytas.models.layers import QueryKeyValue
from hytas.proxies.initial import Values
from hytas.proxies.kinds import Layer, is_linear, layers_of
from hytas.proxies.taps import Product, Tap

Visitor = Callable[[Tap], None]


class TooLargeError(Exception):
    """The activations of a kept graph exceed the memory that there is for them."""


class _Work(nn.Module):
    """Calls a function while `functional_call` lends weights to the network inside."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, work: Callable[[], None]) -> None:
        work()


class Probe:
    """A network whose linear layers can be looked at.

    Args:
        network: in eval mode; it takes (N, P, P, bands), gives (N, classes) or a tuple that begins
            with them, and mixes no samples.
        classes: C, to tell the head.
    """

    def __init__(self, network: nn.Module, classes: int) -> None:
        self.network = network
        self.layers = list(layers_of(network, classes))
        self.blocks = blocks(network)
        self._work = _Work(network)

    def run(self, values: Values, work: Callable[[], None]) -> None:
        """Call `work` while the network has the weights `values`, for backward passes too."""
        lent = {f"network.{name}": value for name, value in values.items()}
        functional_call(self._work, lent, (work,))

    @contextmanager
    def watched(self, look: Look) -> Iterator[None]:
        """Let `look` note every layer while the context lasts."""
        handles = [
            layer.module.register_forward_hook(partial(look.note, layer)) for layer in self.layers
        ]
        again = self.blocks if look.recompute else []
        for block in again:
            block.forward = partial(_recomputed, block.forward)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            for block in again:
                del block.forward

    def logits(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        found = self.network(patches)
        logits: Tensor = found[0] if isinstance(found, tuple) else found
        return logits


@dataclass
class _Output:
    """What a layer gave, before it is scaled back, and how often it had been changed by then."""

    tensor: Tensor
    version: int
    scale: float


@dataclass
class _Pending:
    """A layer that waits for the gradients of its outputs."""

    layer: Layer
    weight: Tensor
    products: list[Product] = field(default_factory=list)
    outputs: list[_Output] = field(default_factory=list)
    waiting: int = 0


class Look:
    """What one pass notes of the layers, and who is shown them.

    Args:
        samples: N, patches of the pass.
        early: is shown the layers in the forward pass, without gradients.
        memory: bytes of activations; a forward pass that would keep more is given up.
        recompute: whether activations inside blocks are computed again in the backward pass; then
            there is no limit.

    Attributes:
        late: is shown the layers in the backward pass, with gradients; None where nobody looks.
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

    def note(self, layer: Layer, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Note a layer and await the gradients of its outputs; a forward hook of torch.

        Raises:
            TooLargeError: the activations exceed the memory.
        """
        products = _products(module, args, output)
        if not self.backward:
            self._count(layer, products)
        if not torch.is_grad_enabled() or (self.backward and self.late is None):
            return
        if self.memory is not None and self.kept > self.memory:
            raise TooLargeError
        pending = _Pending(layer, _weight(module))
        for place, (inputs, outputs, scale) in enumerate(products):
            pending.products.append(Product(inputs.detach(), _unscaled(outputs, scale)))
            pending.outputs.append(_Output(outputs.detach(), outputs._version, scale))
            pending.waiting += 1
            leaf = outputs if outputs.requires_grad else outputs.requires_grad_()
            leaf.register_hook(partial(self._arrived, pending, place))  # type: ignore[no-untyped-call]

    def _count(self, layer: Layer, products: Sequence[tuple[Tensor, Tensor, float]]) -> None:
        """Count a layer that the forward pass meets, and show it early."""
        self.order.setdefault(layer.module, len(self.order) + 1)
        for inputs, outputs, _ in products:
            self.kept += (inputs.numel() + outputs.numel()) * outputs.element_size()
        if self.early is not None:
            seen = [Product(x.detach(), _unscaled(y, scale)) for x, y, scale in products]
            self.early(self._tap(layer, _weight(layer.module), seen))

    def _arrived(self, pending: _Pending, place: int, grad: Tensor) -> None:
        """Note the gradient of an output; show the layer once all have arrived."""
        if self.late is None:
            return
        output = pending.outputs[place]
        if output.tensor._version != output.version:
            raise RuntimeError(
                f"a layer ({pending.layer.kind}) whose output is changed in place: not scored"
            )
        # The gradient by the output before its scale.
        pending.products[place].output_grad = grad if output.scale == 1.0 else grad * output.scale
        pending.waiting -= 1
        if pending.waiting:
            return
        with torch.no_grad():
            self.late(self._tap(pending.layer, pending.weight, pending.products))
        pending.products.clear()
        pending.outputs.clear()

    def _tap(self, layer: Layer, weight: Tensor, products: Sequence[Product]) -> Tap:
        exact = weight.dtype  # reduced precision ends at the matrix products
        shown = []
        for each in products:
            product = Product(
                self._stacked(layer.module, each.inputs).to(exact),
                self._rows(layer.module, each.outputs).to(exact),
            )
            if each.output_grad is not None:
                product.output_grad = self._rows(layer.module, each.output_grad).to(exact)
            shown.append(product)
        order = self.order[layer.module]
        return Tap(layer.kind, layer.name, order, weight.flatten(1), shown)

    def _rows(self, module: nn.Module, outputs: Tensor) -> Tensor:
        """Outputs of a layer -> (N, T, out)."""
        if not isinstance(module, nn.Linear):
            outputs = outputs.flatten(2).transpose(1, 2)
        return outputs.reshape(self.samples, -1, outputs.shape[-1])

    def _stacked(self, module: nn.Module, inputs: Tensor) -> Tensor:
        """Inputs of a layer -> (N, T, in); those of a convolution as it stacks them."""
        if not isinstance(module, nn.Linear):
            inputs = unfolded(module, inputs)
        return inputs.reshape(self.samples, -1, inputs.shape[-1])


def _weight(module: nn.Module) -> Tensor:
    weight = module.weight
    assert isinstance(weight, Tensor)
    return weight.detach()


def _products(
    module: nn.Module, args: tuple[Any, ...], output: Any
) -> list[tuple[Tensor, Tensor, float]]:
    """Return the products of a layer: inputs, outputs, and the scale of the weight in each."""
    if isinstance(module, QueryKeyValue):
        tokens, asking, scale = args
        query, key, value = output
        return [(asking, query, scale), (tokens, key, 1.0), (tokens, value, 1.0)]
    return [(args[0], output, 1.0)]


def _unscaled(outputs: Tensor, scale: float) -> Tensor:
    return outputs.detach() if scale == 1.0 else outputs.detach() / scale


def unfolded(module: nn.Module, inputs: Tensor) -> Tensor:
    """Return what a convolution multiplies by its weights, (N, channels, ...) -> (N, T, in)."""
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


def blocks(network: nn.Module) -> list[nn.Module]:
    """Return the layers that a network repeats.

    They are the members of its outermost lists of modules, if they hold linear layers.
    """
    found: list[nn.Module] = []
    for module in network.children():
        if isinstance(module, nn.ModuleList | nn.Sequential):
            found += [m for m in module if any(map(is_linear, m.modules()))]
        else:
            found += blocks(module)
    return found


def _recomputed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `forward`; drop its activations, and compute them again in the backward pass."""
    inputs = [each for each in args if isinstance(each, Tensor)]
    plain = not torch.is_grad_enabled() or not any(each.requires_grad for each in inputs)
    if plain or any(isinstance(each, Tensor) for each in kwargs.values()):
        return forward(*args, **kwargs)
    again = partial(forward, **kwargs)
    return checkpoint(again, *args, use_reentrant=True, preserve_rng_state=False)
