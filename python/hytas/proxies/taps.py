"""A linear layer as a proxy sees it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass
class Product:
    """One product of a layer with some rows of its weight.

    Attributes:
        inputs: (N, T, in).
        outputs: (N, T, out).
        output_grad: (N, T, out) gradient of the pass's scalar; absent before the backward pass.
    """

    inputs: Tensor
    outputs: Tensor
    output_grad: Tensor | None = None


@dataclass
class Tap:
    """One linear layer of a network, as a proxy sees it.

    Two more kinds are not linear layers: "input", whose `output_grad` is that of the sum of the
    logits by the patches, and "curvature", whose activation is w' H g.

    Attributes:
        kind: "embed", "qkv", "proj", "fc1", "fc2" or "head".
        name: of the layer in its network.
        order: place of the layer among the network's linear layers, from 1.
        weight: (out, in).
        products: one, or one for the rows of queries, of keys and of values each. A layer that
            computes only the tokens that are read has only these.
        twin: the same layer of the perturbed network on perturbed patches, where it was asked for.
        norms: nuclear norms of gradient and weight, where they were taken beforehand.
        key: of the weight, where other networks have the same.
    """

    kind: str
    name: str
    order: int
    weight: Tensor
    products: Sequence[Product]
    twin: Tap | None = None
    norms: tuple[Tensor, Tensor] | None = None
    key: Hashable | None = None

    @cached_property
    def grad(self) -> Tensor:
        """Gradient of the weight, (out, in)."""
        if "sample_grads" in self.__dict__:
            return self.sample_grads.sum(0)
        parts = [_known(p).flatten(0, 1).T @ p.inputs.flatten(0, 1) for p in self.products]
        return _joined(parts, 0).to(self.weight)

    @cached_property
    def sample_grads(self) -> Tensor:
        """Gradient of the weight from each sample alone, (N, out, in); they sum to `grad`."""
        parts = [_known(p).transpose(1, 2) @ p.inputs for p in self.products]
        return _joined(parts, 1).to(self.weight)

    @property
    def activations(self) -> Tensor:
        """What the layer gave, every token and unit, (N, units)."""
        return _joined([p.outputs.flatten(1) for p in self.products], 1)

    @property
    def activation_grads(self) -> Tensor:
        """The gradient by each of `activations`, (N, units)."""
        return _joined([_known(p).flatten(1) for p in self.products], 1)


def _known(product: Product) -> Tensor:
    if product.output_grad is None:
        raise RuntimeError("a tap has gradients after the backward pass")
    return product.output_grad


def _joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), axis)
