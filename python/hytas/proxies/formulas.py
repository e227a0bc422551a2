"""One function a proxy: what one linear layer contributes to its score.

Each takes a `Tap` (network.py), the weights, inputs, outputs and gradients of the same layer in A
networks of one group, and returns one value (or array) a network, (A, ...); the pass adds up the
layers. `kinds` of layers: "embed", "qkv", "proj", "fc1", "fc2", "head".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from .network import Tap

MSA, MLP = ("qkv", "proj"), ("fc1", "fc2")
LINEAR = ("embed", *MSA, *MLP, "head")


def grad_norm(tap: Tap) -> Tensor:
    """Sum over layers of the norm of the weight gradient, ||dL/dw||_2.

    Source: HyTAS, supplementary table 1. Direction: larger is better. Data: labelled patches,
    cross-entropy. Cost: one forward and one backward pass.
    """
    return tap.grad.flatten(1).square().sum(1).sqrt()


def snip(tap: Tap) -> Tensor:
    """Sum over weights of |dL/dw * w|: what removing a weight would change.

    Source: Lee et al., ICLR 2019; HyTAS, supplementary table 1. Direction: larger is better. Data:
    labelled patches, cross-entropy. Cost: one forward and one backward pass.
    """
    return (tap.grad * tap.weight).abs().flatten(1).sum(1)


def synflow(tap: Tap) -> Tensor:
    """Sum over weights of dS/dw * w, S the sum of the logits of a patch of ones.

    Source: Tanaka et al., NeurIPS 2020; HyTAS, supplementary table 1. Direction: larger is better.
    Data: none. Cost: one forward and one backward pass of one patch. Option `sign=weights` is the
    original's |w| in place of w.
    """
    return (tap.grad * tap.weight).flatten(1).sum(1)


def dss(tap: Tap) -> Tensor:
    """Nuclear norms nuc(g) nuc(w) over attention matrices, |g * w| over MLP weights.

    Source: TF-TAS (Zhou et al., CVPR 2022), Algorithm 1, g the gradient of the sum of the logits of
    a patch of ones. The matrices are the layers' own weights: q, k and v stacked as one (3q, E)
    matrix, and the projection. Direction: larger is better. Data: none. Cost: one forward and one
    backward pass of one patch, and four nuclear norms a layer. Option `layers=all` adds the patch
    embedding and the head as |g * w|, as the HyTAS code does; `sign` the sign step.
    """
    if tap.kind in MSA:
        from .linalg import nuclear_norm

        return nuclear_norm(tap.grad) * nuclear_norm(tap.weight)
    return (tap.grad * tap.weight).abs().flatten(1).sum(1)
