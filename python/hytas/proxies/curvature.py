"""w' H g of a group, by a forward pass that carries derivatives along two directions.

With every linear weight moved to w (1 + a) + b g, the mean cross-entropy L(a, b) has
d2L / da db = w' H g at the origin: GraSP's sum over weights of (H g) * w. A value and its
derivatives by a and by b travel together (a "jet", axis 0 of size 3). The mixed derivative does
not: what an operation adds to it acts linearly on the loss, so it is weighed at once by the
gradient that the backward pass found there. Values are that pass's too: no product is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import pi, sqrt

import torch
import torch.nn.functional as F
from torch import Tensor

from hytas.proxies.network import Branch, Group, Share, Tap, is_one, pick
from hytas.proxies.passes import Pass, cross_entropy_grad

Grads = Mapping[int, Tensor]
"""id of a stacked weight -> its gradient, of the same shape."""

Layers = Mapping[int, Tap]
"""id of a stacked weight -> its layer, with the gradients of what entered and left it."""

NORM_EPSILON = 1e-5  # of torch's layer norm
CACHED_BYTES = 2 * 2**20  # of attention scores taken at a time on a CPU


def curvature_along(
    group: Group,
    patches: Tensor,
    labels: Tensor,
    grads: Grads,
    samples: int = 4,
    layers: Layers | None = None,
) -> Tensor:
    """w' H g, H the Hessian of the mean cross-entropy by the linear weights.

    Args:
        group: A networks.
        patches: (N, P, P, bands); labels: (N,).
        grads: g, the direction, for the stacked weight of every linear layer.
        samples: patches taken together.
        layers: of all samples, from the backward pass of that cross-entropy; None passes again,
            a few samples at a time, which takes half as long again and less memory.

    Returns:
        (A,), float64.
    """
    total = group.head.new_zeros(len(group.networks), dtype=torch.float64)
    for start in range(0, len(patches), samples):
        some = slice(start, start + samples)
        if layers is None:
            seen = _pass_again(group, patches[some], labels[some], len(patches))
        else:
            seen = {key: _of_samples(tap, some) for key, tap in layers.items()}
        with torch.no_grad():
            _Portion(group, seen, grads, len(patches), total).run()
    return total


def _pass_again(group: Group, patches: Tensor, labels: Tensor, count: int) -> Layers:
    """The layers on some samples of a batch of `count`."""
    with torch.enable_grad():
        run = Pass(group, patches)
        grad = cross_entropy_grad(run.logits, labels) * (len(patches) / count)
        steps = run.backward(grad.detach(), entering=True)
        return {id(tap.weight): tap for taps in steps for tap in taps}


def _of_samples(tap: Tap, some: slice) -> Tap:
    entering = tap.input_grad
    return replace(
        tap,
        inputs=tap.inputs[:, some],
        outputs=tap.outputs[:, some],
        output_grad=tap.known_grad[:, some],
        input_grad=None if entering is None else entering[:, some],
    )


@dataclass(frozen=True)
class _Portion:
    """Some samples on their way through a group of networks.

    Attributes:
        layers: of these samples.
        count: samples of the whole batch.
        total: (A,), to which every operation adds its part.
    """

    group: Group
    layers: Layers
    grads: Grads
    count: int
    total: Tensor

    def run(self) -> None:
        """Add what these samples contribute to `total`."""
        group = self.group
        jet = self._embed()
        entered: list[Tensor] = []
        leaving: list[Tensor] = []
        for layer in range(group.depths[0]):
            jet = jet[:, : group.alive(layer)]
            if group.skips_fusion:
                entered.append(jet)
            if layer >= 2:
                jet = group.fuse(layer, jet, entered[layer - 2][:, : group.alive(layer)])
                jet[1:] -= group.fusion_bias(layer)  # a constant has no derivative
            if not group.skips_fusion:
                entered.append(jet)
            active = group.active(layer)
            if active:
                busy = jet[:, :active]
                busy = busy + self._pass(group.attention[layer], busy)
                busy = busy + self._pass(group.mlp[layer], busy)
                jet = busy if active == jet.shape[1] else torch.cat([busy, jet[:, active:]], dim=1)
            leaving.append(jet[:, group.alive(layer + 1) :, :, :1])
        self._classify(torch.cat(leaving[::-1], dim=1))

    def _embed(self) -> Tensor:
        """Jets of the tokens, (3, A, n, T, E)."""
        group = self.group
        seen = self.layers[id(group.embed)]
        inputs = seen.inputs.expand(len(group.networks), -1, -1, -1)
        by_b = _rows(inputs, self.grads[id(group.embed)])
        value = by_a = seen.outputs
        if group.embed_bias is not None:
            by_a = value - group.embed_bias[:, None, None]
        jet = F.pad(torch.stack([value, by_a, by_b]), (0, 0, 1, 0))
        jet[0, :, :, 0] = group.class_token[:, None]
        jet[0] += group.position[:, None]
        return jet

    def _pass(self, branch: Branch, jet: Tensor) -> Tensor:
        """Through a branch, without its residual, (3, A, n, T, E) -> the same."""
        parts = []
        for share in branch.shares:
            normed = self._norm(pick(jet, share, 1), share.first, share.members)
            inside = self._linear(normed, share.first, share.members)
            between = self._attend(inside, share) if share.heads else self._gelu(inside, share)
            parts.append(self._linear(between, share.second, share.members))
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts, dim=1)[:, branch.back]

    def _classify(self, jet: Tensor) -> None:
        """From the class tokens (3, A, n, 1, E) to the cross-entropy of each sample."""
        everyone, head = self.group.everyone(), self.group.head
        logits = self._linear(self._norm(jet, head, everyone), head, everyone)[:, :, :, 0]
        value, by_a, by_b = logits
        chance = value.softmax(-1)
        mean_a, mean_b = (chance * by_a).sum(-1), (chance * by_b).sum(-1)
        self._add(everyone, ((chance * by_a * by_b).sum(-1) - mean_a * mean_b) / self.count)

    def _add(self, members: Tensor, terms: Tensor) -> None:
        """Add terms (A', ...) to the networks at `members`."""
        self.total.index_add_(0, members, terms.flatten(1).sum(1).double())

    def _linear(self, moving: Tensor, weight: Tensor, members: Tensor) -> Tensor:
        """Derivatives (2, A', n, T, in) of x -> the jet (3, A', n, T, out) of x w.

        w moves to w (1 + a) + b g, so by both there are g x_a, and w x_b, for w's derivative by a
        is w.
        """
        seen, along = self.layers[id(weight)], self.grads[id(weight)]
        by_a, by_b = _rows(moving, weight)
        self._add(members, seen.known_grad * (_rows(moving[0], along) + by_b))
        return torch.stack(
            [seen.outputs, by_a.add_(seen.outputs), by_b.add_(_rows(seen.inputs, along))]
        )

    def _norm(self, jet: Tensor, weight: Tensor, members: Tensor) -> Tensor:
        """Derivatives of the layer norm with gain 1 that enters the layer of `weight`."""
        seen = self.layers[id(weight)]
        value, gradient = seen.inputs, seen.entering
        inverse = (jet[0].var(-1, correction=0, keepdim=True) + NORM_EPSILON).rsqrt()
        moving = jet[1:] - _mean(jet[1:])
        moving *= inverse
        by_a, by_b = moving
        slopes = _mean(moving * value)
        slope_a, slope_b = slopes
        bend = _mean(by_a * by_b) - 3.0 * slope_a * slope_b
        both = torch.addcmul(by_a * slope_b, by_b, slope_a).addcmul_(value, bend)
        self._add(members, -gradient * both)
        return moving.sub_(slopes * value)

    def _gelu(self, jet: Tensor, share: Share) -> Tensor:
        """Derivatives of the exact GELU, from those of what enters it."""
        value, by_a, by_b = jet
        below = (value * sqrt(0.5)).erf_().add_(1.0).mul_(0.5)  # the normal's distribution
        density = value.square().mul_(-0.5).exp_().mul_(1.0 / sqrt(2.0 * pi))
        slope = torch.addcmul(below, value, density)
        bend = density.mul_(2.0 - value.square())
        gradient = self.layers[id(share.second)].entering
        self._add(share.members, bend.mul_(by_a).mul_(by_b).mul_(gradient))
        return jet[1:].mul_(slope)

    def _attend(self, jet: Tensor, share: Share) -> Tensor:
        """Derivatives of multi-head attention, from the jet of queries, keys and values."""
        networks, count, tokens = jet.shape[1:4]
        split = jet.view(3, networks * count, tokens, 3, share.heads, -1)
        heads = split.permute(3, 0, 1, 4, 2, 5).reshape(3, 3, -1, tokens, split.shape[-1])
        gradient = self.layers[id(share.second)].entering
        leaving = gradient.reshape(networks * count, tokens, share.heads, -1).transpose(1, 2)
        size = _heads_at_once(heads)
        blocks = zip(
            torch.split(heads, size, dim=2),
            torch.split(leaving.reshape(-1, tokens, split.shape[-1]), size),
            strict=True,
        )
        mixed, terms = zip(*(_mix(block, wanted) for block, wanted in blocks), strict=True)
        self._add(share.members, torch.cat(terms).view(networks, -1))
        joined = torch.cat(mixed, dim=1).view(2, networks, count, share.heads, tokens, -1)
        return joined.transpose(3, 4).flatten(4)


def _rows(inputs: Tensor, weight: Tensor) -> Tensor:
    """(..., A, n, T, in), (A, out, in) -> (..., A, n, T, out)."""
    if is_one(weight):
        return F.linear(inputs, weight[0])
    first = inputs.movedim(-4, 0)
    flat = torch.bmm(first.flatten(1, -2), weight.transpose(1, 2))
    return flat.view(*first.shape[:-1], -1).movedim(0, -4).contiguous()


def _heads_at_once(heads: Tensor) -> int:
    """How many of (3, 3, B, T, D) heads to take together, for a CPU to find their scores cached."""
    count, tokens = heads.shape[2:4]
    if heads.device.type != "cpu":
        return count
    return max(1, CACHED_BYTES // (4 * tokens**2 * heads.element_size()))


def _mix(heads: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(q k' / sqrt D) v: its derivatives, and what it adds to the mixed one.

    Args:
        heads: jets of queries, keys and values, (3, 3, B, T, D).
        gradient: of the result, (B, T, D).

    Returns:
        (2, B, T, D) and (B,).
    """
    depth = heads.shape[-1]
    query, key, value = heads[0] * depth**-0.5, heads[1], heads[2]
    # Sums of products run inside one product of operands side by side.
    keys = torch.cat([key[1], key[0], key[2]], dim=-1).transpose(1, 2)
    chance = torch.bmm(query[0], keys[:, depth : 2 * depth]).softmax(-1)
    by_a = torch.bmm(torch.cat([query[0], query[1]], dim=-1), keys[:, : 2 * depth])
    by_b = torch.bmm(torch.cat([query[2], query[0]], dim=-1), keys[:, depth:])
    by_a -= (chance * by_a).sum(-1, keepdim=True)
    by_b -= (chance * by_b).sum(-1, keepdim=True)
    # The gradient of the scores, which weighs their mixed derivative.
    scores = torch.bmm(gradient, value[0].transpose(1, 2))
    scores -= (chance * scores).sum(-1, keepdim=True)
    scores *= chance
    pulled = torch.bmm(scores, torch.cat([key[2], key[1]], dim=-1))
    terms = (pulled * torch.cat([query[1], query[2]], dim=-1)).sum((1, 2))
    terms += scores.mul_(by_a).mul_(by_b).sum((1, 2))
    from_a = torch.bmm(by_a.mul_(chance), torch.cat([value[0], value[2]], dim=-1))
    from_b = torch.bmm(by_b.mul_(chance), torch.cat([value[0], value[1]], dim=-1))
    terms += (gradient * (from_a[..., depth:] + from_b[..., depth:])).sum((1, 2))
    moved = torch.bmm(chance, torch.cat([value[1], value[2]], dim=-1))
    mixed = torch.stack(
        [moved[..., :depth] + from_a[..., :depth], moved[..., depth:] + from_b[..., :depth]]
    )
    return mixed, terms


def _mean(values: Tensor) -> Tensor:
    return values.mean(-1, keepdim=True)
