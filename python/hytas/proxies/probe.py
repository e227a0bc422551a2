"""Hooks that record the linear layers of a network for the proxies.

The network runs with weights by name (`torch.func.functional_call`). The forward pass records the
inputs and outputs of each layer. The backward pass hands a layer to the proxies as soon as the
gradients of its outputs are known. Autograd computes no gradient of a weight, and no memory is used
beyond the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from hytas.models.layers import QueryKeyValue
from hytas.proxies.initial import InitialNetwork, _Values
from hytas.proxies.kinds import ReadLayer, is_linear, layers_of
from hytas.proxies.layer_records import LayerProduct, LayerRecord

Visitor = Callable[[LayerRecord], None]
T = TypeVar("T")


class TooLargeError(Exception):
    """The activations of a graph exceed the available memory."""


class Probe:
    """A network whose linear layers are recorded.

    Args:
        start: the network, in eval mode; it takes (N, P, P, bands), gives (N, classes) or a tuple
            that begins with them, and mixes no samples.
        classes: C, to recognise the head.
    """

    def __init__(self, start: InitialNetwork, classes: int) -> None:
        self.network = start.network
        modules = [(s.name[:-7], s.module) for s in start.slots if s.name.endswith(".weight")]
        self.layers = list(layers_of(modules or self.network.named_modules(), classes))
        self._pass = _Pass(self.network)

    def run(self, values: _Values, function: Callable[[], T]) -> T:
        """Return what `function` returns while the network has the weights `values`."""
        weights = {f"network.{name}": value for name, value in values.items()}
        result: T = functional_call(self._pass, weights, (function,))
        return result

    @contextmanager
    def recorded(self, recorder: Recorder) -> Iterator[None]:
        """Record every layer within the context."""
        handles = [
            layer.module.register_forward_hook(partial(recorder.note, layer))
            for layer in recorder.layers
        ]
        again = repeated_layers(self.network) if recorder.recompute else []
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
        """(N, P, P, bands) -> (N, classes), by the weights of `run`."""
        outputs = self.network(patches)
        logits: Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
        return logits


class _Pass(nn.Module):
    """A network that has its weights in the backward pass, too, which may compute it again."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, function: Callable[[], T]) -> T:
        return function()


class _Seen(NamedTuple):
    """One product of a layer in a pass.

    Attributes:
        scale: of the weight.
        leaf: tensor that the next layer reads.
    """

    inputs: Tensor
    outputs: Tensor
    scale: float
    leaf: Tensor


def _seen(inputs: Tensor, outputs: Tensor, scale: float) -> _Seen:
    if torch.is_grad_enabled() and not outputs.requires_grad:
        outputs.requires_grad_()  # the first layer: no parameter has a gradient
    return _Seen(inputs.detach(), outputs.detach(), scale, outputs)


@dataclass
class _Pending:
    """A layer that waits for the gradients of its outputs."""

    layer: ReadLayer
    weight: Tensor
    seen: list[_Seen]
    versions: list[int]
    grads: dict[int, Tensor] = field(default_factory=dict)


class Recorder:
    """Records the layers in one pass, and hands them to the proxies.

    Args:
        samples: N, patches of the pass.
        early: receives the layers in the forward pass, without gradients.
        kinds: of layers that are recorded; None for all.
        memory: most bytes of activations of a forward pass.
        recompute: whether activations inside blocks are computed again in the backward pass; then
            `memory` does not apply.

    Attributes:
        late: receives the layers in the backward pass, with gradients, or None.
        backward: whether the forward pass has ended.
        kept: bytes of the activations of the forward pass.
    """

    def __init__(
        self,
        probe: Probe,
        samples: int,
        early: Visitor | None = None,
        *,
        kinds: Collection[str] | None = None,
        memory: int | None = None,
        recompute: bool = False,
    ) -> None:
        self.probe, self.samples, self.early = probe, samples, early
        self.layers = [each for each in probe.layers if kinds is None or each.kind in kinds]
        self.memory = None if recompute else memory
        self.recompute = recompute
        self.late: Visitor | None = None
        self.backward = False
        self.kept = 0
        self._orders: dict[nn.Module, int] = {}

    def note(self, layer: ReadLayer, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Record a layer, and the gradients of its outputs later; a forward hook of torch.

        Raises:
            TooLargeError: the activations exceed the memory.
        """
        seen = [_seen(*product) for product in _products(module, args, output)]
        weight = layer.module.weight
        assert isinstance(weight, Tensor)
        weight = weight.detach().flatten(1)
        if not self.backward:
            self._count(layer, weight, seen)
        if not torch.is_grad_enabled() or (self.backward and self.late is None):
            return
        if self.memory is not None and self.kept > self.memory:
            raise TooLargeError
        kept = [each._replace(leaf=each.outputs) for each in seen]  # a hook on itself would leak
        versions = [each.outputs._version for each in seen]
        pending = _Pending(layer, weight, kept, versions)
        for place, each in enumerate(seen):
            each.leaf.register_hook(partial(self._arrived, pending, place))  # type: ignore[no-untyped-call]

    def _count(self, layer: ReadLayer, weight: Tensor, seen: Sequence[_Seen]) -> None:
        """Count a layer in the forward pass, and hand it to `early`."""
        self._orders.setdefault(layer.module, len(self._orders) + 1)
        for each in seen:
            kept = each.inputs.numel() + each.outputs.numel()
            self.kept += kept * each.outputs.element_size()
        if self.early is not None:
            self.early(self._record(layer, weight, seen, {}))

    def _arrived(self, pending: _Pending, place: int, grad: Tensor) -> None:
        """Record the gradient of an output; hand over the layer after the last one."""
        if self.late is None:
            return
        if pending.seen[place].outputs._version != pending.versions[place]:
            raise RuntimeError(
                f"a layer ({pending.layer.kind}) whose output is changed in place: not scored"
            )
        pending.grads[place] = grad
        if len(pending.grads) < len(pending.seen):
            return
        with torch.no_grad():
            self.late(self._record(pending.layer, pending.weight, pending.seen, pending.grads))
        pending.seen.clear()
        pending.grads.clear()

    def _record(
        self, layer: ReadLayer, weight: Tensor, seen: Sequence[_Seen], grads: dict[int, Tensor]
    ) -> LayerRecord:
        exact = weight.dtype  # reduced precision ends at the matrix products
        module, recorded = layer.module, []
        for place, each in enumerate(seen):
            # Outputs and gradients are those of the product before its scale.
            outputs = each.outputs if each.scale == 1.0 else each.outputs / each.scale
            product = LayerProduct(
                self._stacked(module, each.inputs).to(exact), self._rows(module, outputs).to(exact)
            )
            if place in grads:
                grad = grads[place] if each.scale == 1.0 else grads[place] * each.scale
                product.output_grad = self._rows(module, grad).to(exact)
            recorded.append(product)
        return LayerRecord(layer.kind, layer.name, self._orders[module], weight, recorded)

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


def _products(
    module: nn.Module, args: tuple[Any, ...], output: Any
) -> list[tuple[Tensor, Tensor, float]]:
    """Return the products of a layer: inputs, outputs, and the scale of the weight in each."""
    if isinstance(module, QueryKeyValue):
        tokens, asking, scale = args
        query, key, value = output
        return [(asking, query, scale), (tokens, key, 1.0), (tokens, value, 1.0)]
    return [(args[0], output, 1.0)]


def unfolded(module: nn.Module, inputs: Tensor) -> Tensor:
    """Return the unfolded inputs of a convolution, (N, channels, ...) -> (N, T, in)."""
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


def repeated_layers(network: nn.Module) -> list[nn.Module]:
    """Return the layers that a network repeats.

    They are the members of its outermost lists of modules, if they hold linear layers.
    """
    repeated: list[nn.Module] = []
    for module in network.children():
        if isinstance(module, nn.ModuleList | nn.Sequential):
            repeated += [m for m in module if any(map(is_linear, m.modules()))]
        else:
            repeated += repeated_layers(module)
    return repeated


def _recomputed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `forward`; drop its activations, and compute them again in the backward pass."""
    inputs = [each for each in args if isinstance(each, Tensor)]
    plain = not torch.is_grad_enabled() or not any(each.requires_grad for each in inputs)
    if plain or any(isinstance(each, Tensor) for each in kwargs.values()):
        return forward(*args, **kwargs)
    again = partial(forward, **kwargs)
    return checkpoint(again, *args, use_reentrant=True, preserve_rng_state=False)
