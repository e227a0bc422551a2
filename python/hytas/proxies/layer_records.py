"""The record of a linear layer, which proxies read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from hytas.proxies.kinds import ReadLayer

_NONE = torch.empty(0)


@dataclass
class LayerProduct:
    """One product of a layer with some rows of its weight.

    Attributes:
        inputs: (N, T, in).
        outputs: (N, T, out).
        output_grad: (N, T, out) gradient of the scalar; absent before the backward pass.
    """

    inputs: Tensor
    outputs: Tensor
    output_grad: Tensor | None = None


@dataclass
class LayerRecord:
    """The weight, inputs, outputs and gradients of one linear layer.

    Two more kinds are not linear layers: "input", whose `output_grad` is that of the sum of the
    logits by the patches, and "curvature", whose activation is w' H g.

    Attributes:
        kind: "embed", "qkv", "proj", "fc1", "fc2" or "head".
        name: of the layer in its network.
        order: place of the layer among the linear layers of its network, from 1.
        weight: (out, in).
        products: one, or three for the rows of queries, keys and values. They hold only the tokens
            that the layer computes.
        twin: the same layer of the perturbed network on perturbed patches, or None.
        norms: nuclear norms of gradient and weight, for a proxy that reads them.
    """

    kind: str
    name: str
    order: int
    weight: Tensor
    products: Sequence[LayerProduct]
    twin: LayerRecord | None = None
    norms: tuple[Tensor, Tensor] = (_NONE, _NONE)

    @classmethod
    def of_weight(cls, layer: ReadLayer, weight: Tensor, grad: Tensor) -> Self:
        """Return a record without products, of a weight and its gradient."""
        record = cls(layer.kind, layer.name, 0, weight.flatten(1), ())
        record.grad = grad.flatten(1)
        return record

    @cached_property
    def grad(self) -> Tensor:
        """Gradient of the weight, (out, in)."""
        if "sample_grads" in self.__dict__:
            return self.sample_grads.sum(0)
        grads = [
            torch.einsum("nto,nti->oi", _output_grad(product), product.inputs)
            for product in self.products
        ]
        return _joined(grads, 0).to(self.weight)

    @cached_property
    def sample_grads(self) -> Tensor:
        """Gradient of the weight from each sample alone, (N, out, in); they sum to `grad`."""
        return _joined([_output_grad(p).mT @ p.inputs for p in self.products], 1).to(self.weight)

    @property
    def activations(self) -> Tensor:
        """Outputs of the layer, every token and unit, (N, units)."""
        return _joined([p.outputs.flatten(1) for p in self.products], 1)

    @property
    def activation_grads(self) -> Tensor:
        """The gradient by each of `activations`, (N, units)."""
        return _joined([_output_grad(p).flatten(1) for p in self.products], 1)


def _output_grad(product: LayerProduct) -> Tensor:
    if product.output_grad is None:
        raise RuntimeError("a record has gradients after the backward pass")
    return product.output_grad


def _joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), axis)
