"""The record of a linear layer of K networks, which proxies read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from hytas.models.outline import Real
from hytas.proxies.kinds import Layer

_NONE = torch.empty(0)


@dataclass
class Product:
    """One product of a layer with some rows of its weight.

    Attributes:
        inputs: (K, N, T, in).
        outputs: (K, N, T, out).
        output_grad: (K, N, T, out) gradient of each network's scalar; absent before the backward
            pass.
    """

    inputs: Tensor
    outputs: Tensor
    output_grad: Tensor | None = None


@dataclass
class LayerRecord:
    """The weight, inputs, outputs and gradients of one linear layer of K networks.

    Smaller networks, and networks that lack the layer, are padded with zeros. Two more kinds are
    not linear layers: "input", whose `output_grad` is that of the sum of the
    logits by the patches, and "curvature", whose activation is w' H g.

    Attributes:
        kind: "embed", "qkv", "proj", "fc1", "fc2" or "head".
        name: of the layer in its network.
        order: place of the layer among the linear layers of each network, from 1, (K,).
        weight: (K, out, in).
        products: one, or three for the rows of queries, keys and values. They hold only the tokens
            that the layer computes.
        twin: the same layer of the perturbed network on perturbed patches, or None.
        norms: nuclear norms of gradient and weight, (K,) each, for a proxy that reads them.
        real: sizes of the weight without padding; None if nothing is padded.
    """

    kind: str
    name: str
    order: Tensor
    weight: Tensor
    products: Sequence[Product]
    twin: LayerRecord | None = None
    norms: tuple[Tensor, Tensor] = (_NONE, _NONE)
    real: Real | None = None

    @classmethod
    def of_weight(cls, layer: Layer, weight: Tensor, grad: Tensor, real: Real | None) -> Self:
        """Return a record without products, of a weight (K, ...) and its gradient."""
        record = cls(layer.kind, layer.name, _NONE, weight.flatten(2), (), real=real)
        record.grad = record._own(grad.flatten(2))
        return record

    @property
    def count(self) -> int:
        """The number of networks, K."""
        return len(self.weight) or len(self.products[0].outputs)

    @cached_property
    def there(self) -> Tensor | None:
        """Networks that have the layer, (K,) bool; None for all."""
        return None if self.real is None else self.real.outputs > 0

    @cached_property
    def grad(self) -> Tensor:
        """Gradient of the weight, (K, out, in)."""
        if "sample_grads" in self.__dict__:
            return self.sample_grads.sum(1)
        parts = [_output_grad(p).flatten(1, 2).mT @ p.inputs.flatten(1, 2) for p in self.products]
        return self._own(_joined(parts, 1).to(self.weight))

    @cached_property
    def sample_grads(self) -> Tensor:
        """Gradient of the weight from each sample alone, (K, N, out, in); they sum to `grad`."""
        parts = [_output_grad(p).mT @ p.inputs for p in self.products]
        grads = _joined(parts, 2).to(self.weight)
        return self._own(grads.transpose(0, 1)).transpose(0, 1)

    def _own(self, grads: Tensor) -> Tensor:
        """Gradients (..., K, out, in), zero where a network has no weight."""
        columns = None if self.real is None else self.real.columns
        return grads if columns is None else grads * columns[:, None]

    @property
    def activations(self) -> Tensor:
        """Outputs of the layer, every token and unit, (K, N, units)."""
        return _joined([p.outputs.flatten(2) for p in self.products], 2)

    @property
    def activation_grads(self) -> Tensor:
        """The gradient by each of `activations`, (K, N, units)."""
        return _joined([_output_grad(p).flatten(2) for p in self.products], 2)


def _output_grad(product: Product) -> Tensor:
    if product.output_grad is None:
        raise RuntimeError("a record has gradients after the backward pass")
    return product.output_grad


def _joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), axis)
