"""Hooks that record the linear layers of K networks for the proxies.

One network runs as it is, several as one batch by `torch.func.vmap`. The forward pass records the
inputs and outputs of each layer. The backward pass hands a layer to the proxies as soon as the
gradients of its outputs are known. Autograd computes no gradient of a weight, and no memory is used
beyond the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils.checkpoint import checkpoint

from hytas.models.layers import QueryKeyValue, attention_written_out
from hytas.proxies.initial import Start, Values
from hytas.proxies.kinds import Layer, is_linear, layers_of
from hytas.proxies.layer_records import LayerRecord, Product

Visitor = Callable[[LayerRecord], None]
Scale = float | Tensor
"""Of the weight in a product: one number, or one of each network, (K,)."""


class TooLargeError(Exception):
    """The activations of a graph exceed the available memory."""


class Probe:
    """Networks whose linear layers are recorded.

    Args:
        start: the networks, in eval mode; each takes (N, P, P, bands), gives (N, classes) or a
            tuple that begins with them, and mixes no samples.
        classes: C, to recognise the head.

    Attributes:
        count: K.
        values: name -> weights (K, ...) of the pass that runs.
    """

    def __init__(self, start: Start, classes: int) -> None:
        self.network, self.count, self.real = start.network, start.count, start.real
        self.values: Values = {}
        self._start = start
        self._differing: list[tuple[nn.Module, str, Tensor]] = []
        self._slots: list[tuple[dict[str, Any], str, str]] = []
        if start.frame is not None:
            pool = start.sources[0].pool
            self._differing = start.frame.lend(pool.device, pool.dtype)
        elif start.slots:
            self._slots = [(each.module._parameters, each.own, each.name) for each in start.slots]
        else:
            self._slots = list(_slots_of(self.network))
        modules = [(each.name[:-7], each.module) for each in start.slots if each.own == "weight"]
        self.layers = list(layers_of(modules or self.network.named_modules(), classes))

    def use(self, values: Values, leaves: Values | None = None) -> None:
        """Set the weights of the networks to `values`, some replaced by `leaves`."""
        leaves = leaves or {}
        if self.count > 1:
            self.values = values | leaves
            return
        self.values = values
        rows = self._start.rows if values is self._start.values else {}
        rows = (rows or {name: value[0] for name, value in values.items()}) | leaves
        for parameters, own, name in self._slots:
            parameters[own] = rows[name]

    def leaf(self, value: Tensor) -> Tensor:
        """Return a value (K, ...) as a leaf of autograd, in the shape that the networks read."""
        return (value[0] if self.count == 1 else value).detach().requires_grad_()

    @contextmanager
    def recorded(self, recorder: Recorder) -> Iterator[None]:
        """Record every layer within the context."""
        handles = [
            layer.module.register_forward_hook(partial(recorder.note, layer))
            for layer in recorder.layers
        ]
        again = blocks(self.network) if recorder.recompute else []
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
        """(N, P, P, bands), or (K, N, P, P, bands) of each network's own -> (K, N, classes)."""
        own = patches.ndim == 5
        if self.count == 1:
            outputs = self.network(patches[0] if own else patches)
            logits: Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
            return logits[None]
        differing = [values for _, _, values in self._differing]
        together = vmap(self._one, in_dims=(0, 0, 0 if own else None))
        with attention_written_out():
            batched: Tensor = together(self.values, differing, patches)
        return batched

    def _one(self, values: Values, differing: Sequence[Tensor], patches: Tensor) -> Tensor:
        """Return the logits of one network; `vmap` calls it for all."""
        for (module, name, _), value in zip(self._differing, differing, strict=True):
            setattr(module, name, value)
        logits: Tensor = functional_call(self.network, values, (patches,))
        return logits

    def weight(self, layer: Layer) -> Tensor:
        """Return the weights of a layer, (K, out, in)."""
        weight = self.values.get(f"{layer.name}.weight")
        if weight is None:  # of a module that another one shares its weight with
            assert isinstance(layer.module.weight, Tensor)
            weight = layer.module.weight[None]
        return weight.detach().flatten(2)


class _Seen(NamedTuple):
    """One product of a layer in a pass.

    Attributes:
        inputs: (K, ...), or (1, ...) where the networks share them.
        outputs: (K, ...).
        leaf: tensor that the next layer reads.
    """

    inputs: Tensor
    outputs: Tensor
    scale: Scale
    leaf: Tensor


def _seen(inputs: Tensor, outputs: Tensor, scale: Scale) -> _Seen:
    if torch.is_grad_enabled() and not outputs.requires_grad:
        outputs.requires_grad_()  # the first layer: no parameter has a gradient
    return _Seen(inputs.detach(), outputs.detach(), scale, outputs)


class _Batched(torch.autograd.Function):
    """Identity that passes the values of all networks in a `vmap` to a function."""

    @staticmethod
    def forward(outputs: Tensor, *_: Any) -> Tensor:
        return outputs.view_as(outputs)

    @staticmethod
    def setup_context(*_: Any) -> None:
        pass

    @staticmethod
    def backward(_: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return grad, None, None, None

    @staticmethod
    def vmap(info: Any, dims: Any, *args: Any) -> tuple[Tensor, int]:
        outputs, inputs, scale, receive = args
        if dims[0] is None:
            outputs = outputs.expand(info.batch_size, *outputs.shape)
        else:
            outputs = outputs.movedim(dims[0], 0)
        inputs = inputs[None] if dims[1] is None else inputs.movedim(dims[1], 0)
        receive(_seen(inputs, outputs, scale))
        return outputs, 0


@dataclass
class _Pending:
    """A layer that waits for the gradients of its outputs."""

    layer: Layer
    weight: Tensor
    seen: list[_Seen]
    versions: list[int]
    grads: dict[int, Tensor] = field(default_factory=dict)


def _slots_of(network: nn.Module) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield (dictionary of a module, key, full name) of each parameter of a network."""
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    for module in network.modules():
        for own, parameter in module._parameters.items():
            if parameter is not None:
                yield module._parameters, own, names[id(parameter)]


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
        self._orders: dict[nn.Module, Tensor] = {}
        self._met = torch.zeros(probe.count, device=next(iter(probe.values.values())).device)

    def note(self, layer: Layer, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """Record a layer, and the gradients of its outputs later; a forward hook of torch.

        Returns:
            None; for a batch of networks, the replacement of the output.

        Raises:
            TooLargeError: the activations exceed the memory.
        """
        products = _products(module, args, output)
        seen: list[_Seen] = []
        if self.probe.count > 1:
            replaced = tuple(
                _Batched.apply(outputs, inputs, scale, seen.append)  # type: ignore[no-untyped-call]
                for inputs, outputs, scale in products
            )
            self._note(layer, seen)
            return replaced if isinstance(output, tuple) else replaced[0]
        for inputs, outputs, scale in products:
            each = _seen(inputs, outputs, scale)
            seen.append(each._replace(inputs=each.inputs[None], outputs=each.outputs[None]))
        self._note(layer, seen)
        return None

    def _note(self, layer: Layer, seen: list[_Seen]) -> None:
        if not self.backward:
            self._count(layer, seen)
        if not torch.is_grad_enabled() or (self.backward and self.late is None):
            return
        if self.memory is not None and self.kept > self.memory:
            raise TooLargeError
        kept = [each._replace(leaf=each.outputs) for each in seen]  # a hook on itself would leak
        versions = [each.outputs._version for each in seen]
        pending = _Pending(layer, self.probe.weight(layer), kept, versions)
        for place, each in enumerate(seen):
            each.leaf.register_hook(partial(self._arrived, pending, place))  # type: ignore[no-untyped-call]

    def _count(self, layer: Layer, seen: Sequence[_Seen]) -> None:
        """Count a layer in the forward pass, and hand it to `early`."""
        if layer.module not in self._orders:
            real = self.probe.real(f"{layer.name}.weight")
            self._met = self._met + (1 if real is None else real.outputs > 0)
            self._orders[layer.module] = self._met
        for each in seen:
            kept = each.inputs.numel() + each.outputs.numel()
            self.kept += kept * each.outputs.element_size()
        if self.early is not None:
            self.early(self._record(layer, self.probe.weight(layer), seen, {}))

    def _arrived(self, pending: _Pending, place: int, grad: Tensor) -> None:
        """Record the gradient of an output; hand over the layer after the last one."""
        if self.late is None:
            return
        if pending.seen[place].outputs._version != pending.versions[place]:
            raise RuntimeError(
                f"a layer ({pending.layer.kind}) whose output is changed in place: not scored"
            )
        pending.grads[place] = grad[None] if self.probe.count == 1 else grad
        if len(pending.grads) < len(pending.seen):
            return
        with torch.no_grad():
            self.late(self._record(pending.layer, pending.weight, pending.seen, pending.grads))
        pending.seen.clear()
        pending.grads.clear()

    def _record(
        self, layer: Layer, weight: Tensor, seen: Sequence[_Seen], grads: dict[int, Tensor]
    ) -> LayerRecord:
        exact = weight.dtype  # reduced precision ends at the matrix products
        module, recorded = layer.module, []
        for place, each in enumerate(seen):
            # Outputs and gradients are those of the product before its scale.
            scale = _broadcast(each.scale, each.outputs)
            outputs = each.outputs if scale is None else each.outputs / scale
            product = Product(
                self._stacked(module, each.inputs).to(exact), self._rows(module, outputs).to(exact)
            )
            if place in grads:
                grad = grads[place] if scale is None else grads[place] * scale
                product.output_grad = self._rows(module, grad).to(exact)
            recorded.append(product)
        real = self.probe.real(f"{layer.name}.weight")
        return LayerRecord(
            layer.kind, layer.name, self._orders[module], weight, recorded, real=real
        )

    def _rows(self, module: nn.Module, outputs: Tensor) -> Tensor:
        """Outputs of a layer -> (K, N, T, out)."""
        if not isinstance(module, nn.Linear):
            outputs = outputs.flatten(3).transpose(2, 3)
        return outputs.reshape(len(outputs), self.samples, -1, outputs.shape[-1])

    def _stacked(self, module: nn.Module, inputs: Tensor) -> Tensor:
        """Inputs of a layer -> (K, N, T, in); those of a convolution as it stacks them."""
        networks = len(inputs)
        if not isinstance(module, nn.Linear):
            inputs = unfolded(module, inputs.flatten(0, 1))
        return inputs.reshape(networks, self.samples, -1, inputs.shape[-1])


def _broadcast(scale: Scale, outputs: Tensor) -> Scale | None:
    """Return a scale that multiplies outputs (K, ...); None for 1."""
    if isinstance(scale, Tensor):
        return scale.view(-1, *[1] * (outputs.ndim - 1))
    return None if scale == 1.0 else scale


def _products(
    module: nn.Module, args: tuple[Any, ...], output: Any
) -> list[tuple[Tensor, Tensor, Scale]]:
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


def blocks(network: nn.Module) -> list[nn.Module]:
    """Return the layers that a network repeats.

    They are the members of its outermost lists of modules, if they hold linear layers.
    """
    repeated: list[nn.Module] = []
    for module in network.children():
        if isinstance(module, nn.ModuleList | nn.Sequential):
            repeated += [m for m in module if any(map(is_linear, m.modules()))]
        else:
            repeated += blocks(module)
    return repeated


def _recomputed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `forward`; drop its activations, and compute them again in the backward pass."""
    inputs = [each for each in args if isinstance(each, Tensor)]
    plain = not torch.is_grad_enabled() or not any(each.requires_grad for each in inputs)
    if plain or any(isinstance(each, Tensor) for each in kwargs.values()):
        return forward(*args, **kwargs)
    again = partial(forward, **kwargs)
    return checkpoint(again, *args, use_reentrant=True, preserve_rng_state=False)
