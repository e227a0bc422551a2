"""w' H g of a group, by a forward pass that carries derivatives along two directions.

With every linear weight moved to w (1 + a) + b g, the mean cross-entropy L(a, b) has
d2L / da db = w' H g at the origin: GraSP's sum over weights of (H g) * w. A value, its derivative
by a, by b and by both travel together (a "jet", axis 0 of size 4), so nothing is stored for a
backward pass: the memory is that of one layer, and samples are taken a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt

import torch
import torch.nn.functional as F
from torch import Tensor

from hytas.proxies.network import Group, Share, is_one, pick, stack_bands

Grads = Mapping[int, Tensor]
"""id of a stacked weight -> its gradient, of the same shape."""

_Branch = Callable[[Tensor, "Share", Grads], Tensor]

NORM_EPSILON = 1e-5  # of torch's layer norm
CACHED_BYTES = 2 * 2**20  # of attention scores taken at a time on a CPU


def curvature_along(
    group: Group, patches: Tensor, labels: Tensor, grads: Grads, samples: int = 4
) -> Tensor:
    """w' H g, H the Hessian of the mean cross-entropy by the linear weights.

    Args:
        group: A networks.
        patches: (N, P, P, bands); labels: (N,).
        grads: g, the direction, for the stacked weight of every linear layer.
        samples: patches taken together.

    Returns:
        (A,).
    """
    total = group.head.new_zeros(len(group.networks))
    with torch.no_grad():
        for some, wanted in zip(
            torch.split(patches, samples), torch.split(labels, samples), strict=True
        ):
            total += _entropy(_logits(group, some, grads), wanted).sum(1)
    return total / len(patches)


def _logits(group: Group, patches: Tensor, grads: Grads) -> Tensor:
    """Jets of the logits, (4, A, N, classes)."""
    stacked = stack_bands(patches, group.band_group)
    networks, (count, bands, _) = len(group.networks), stacked.shape
    flat = stacked.flatten(0, 1)
    value = flat @ group.embed.transpose(1, 2)  # (A, N * bands, E)
    along = flat @ grads[id(group.embed)].transpose(1, 2)
    first = value if group.embed_bias is None else value + group.embed_bias[:, None]
    jet = torch.stack([first, value, along, torch.zeros_like(value)])
    jet = F.pad(jet.view(4, networks, count, bands, -1), (0, 0, 1, 0))
    jet[0, :, :, 0] = group.class_token[:, None]
    jet[0] += group.position[:, None]
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
            busy = busy + _shared(group.attention[layer], _norm(busy), grads, _attend)
            busy = busy + _shared(group.mlp[layer], _norm(busy), grads, _mlp)
            jet = busy if active == jet.shape[1] else torch.cat([busy, jet[:, active:]], dim=1)
        leaving.append(jet[:, group.alive(layer + 1) :, :, 0])
    normed = _norm(torch.cat(leaving[::-1], dim=1))
    return _linear(normed, group.head, grads)


def _shared(shares: list[Share], jet: Tensor, grads: Grads, branch: _Branch) -> Tensor:
    """Run a branch on the networks of each share and put the results back in order."""
    parts = [branch(pick(jet, share, 1), share, grads) for share in shares]
    if len(parts) == 1:
        return parts[0]
    places = torch.cat([share.members for share in shares])
    return torch.cat(parts, dim=1)[:, torch.argsort(places)]


def _attend(jet: Tensor, share: Share, grads: Grads) -> Tensor:
    """Multi-head attention, (4, A, N, T, E) -> the same."""
    networks, count, tokens = jet.shape[1:4]
    qkv = _linear(jet, share.first, grads)
    qkv = qkv.view(4, networks * count, tokens, 3, share.heads, -1).permute(3, 0, 1, 4, 2, 5)
    heads = qkv.reshape(3, 4, networks * count * share.heads, tokens, -1)
    blocks = torch.split(heads, _heads_at_once(heads), dim=2)
    mixed = torch.cat([_mix(*block) for block in blocks], dim=1)  # (4, A * N * h, T, D)
    joined = mixed.view(4, networks, count, share.heads, tokens, -1).transpose(3, 4)
    return _linear(joined.flatten(4), share.second, grads)


def _heads_at_once(heads: Tensor) -> int:
    """How many of (3, 4, B, T, D) heads to take together, for a CPU to find their scores cached."""
    count, tokens = heads.shape[2:4]
    if heads.is_cuda:
        return count
    return max(1, CACHED_BYTES // (4 * tokens**2 * heads.element_size()))


def _mix(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Jets of softmax(q k' / sqrt D) v, each (4, B, T, D)."""
    return _mean_of(_softmax(_similarity(query * query.shape[-1] ** -0.5, key)), value)


def _mlp(jet: Tensor, share: Share, grads: Grads) -> Tensor:
    return _linear(_gelu(_linear(jet, share.first, grads)), share.second, grads)


def _linear(jet: Tensor, weight: Tensor, grads: Grads) -> Tensor:
    """Jet of x w, w moved to w (1 + a) + b g: (4, A, ..., in), (A, out, in) -> (4, A, ..., out)."""
    along = jet.clone(memory_format=torch.contiguous_format)
    along[1::2] += jet[::2]  # the derivative of w by a is w
    result = _rows(along, weight)
    result[2:] += _rows(jet[:2], grads[id(weight)])
    return result


def _rows(inputs: Tensor, weight: Tensor) -> Tensor:
    """(J, A, ..., in), (A, out, in) -> (J, A, ..., out)."""
    if is_one(weight):
        return F.linear(inputs, weight[0])
    first = inputs.movedim(1, 0)
    flat = torch.bmm(first.flatten(1, -2), weight.transpose(1, 2))
    return flat.view(*first.shape[:-1], -1).movedim(0, 1).contiguous()


# A product's jet is nine products; those that share an operand or a result are taken as one.
def _similarity(query: Tensor, key: Tensor) -> Tensor:
    """Jet of q k', from two of (4, B, T, D), (4, B, T, T): the sums run inside the products."""
    depth = query.shape[-1]
    queries = torch.cat([query[3], query[2], query[1], query[0]], dim=-1)
    keys = torch.cat(list(key), dim=-1).transpose(1, 2)
    result = query.new_empty(4, len(queries), query.shape[2], key.shape[2])
    torch.bmm(query[0], keys[:, :depth], out=result[0])
    torch.bmm(queries[..., 2 * depth :], keys[:, : 2 * depth], out=result[1])
    by_b = torch.cat([key[0], key[2]], dim=-1).transpose(1, 2)
    torch.bmm(torch.cat([query[2], query[0]], dim=-1), by_b, out=result[2])
    torch.bmm(queries, keys, out=result[3])
    return result


def _mean_of(chances: Tensor, value: Tensor) -> Tensor:
    """Jet of p v, (4, B, T, T) and (4, B, T, D) -> (4, B, T, D): each p is read once."""
    depth = value.shape[-1]
    result = torch.stack(torch.bmm(chances[0], torch.cat(list(value), dim=-1)).chunk(4, dim=-1))
    by_a = torch.bmm(chances[1], torch.cat([value[0], value[2]], dim=-1))
    by_b = torch.bmm(chances[2], torch.cat([value[0], value[1]], dim=-1))
    result[1] += by_a[..., :depth]
    result[2] += by_b[..., :depth]
    result[3] += by_a[..., depth:] + by_b[..., depth:]
    result[3].baddbmm_(chances[3], value[0])
    return result


def _softmax(scores: Tensor) -> Tensor:
    """Jet of the softmax over the last axis; overwrites `scores`."""
    chance = scores[0].softmax(-1)
    by_a, by_b, both = scores[1], scores[2], scores[3]
    by_a -= (chance * by_a).sum(-1, keepdim=True)
    by_b -= (chance * by_b).sum(-1, keepdim=True)
    both += by_a * by_b
    both -= (chance * both).sum(-1, keepdim=True)
    scores[0] = chance
    scores[1:] *= chance
    return scores


def _gelu(jet: Tensor) -> Tensor:
    """Jet of the exact GELU; overwrites `jet`."""
    value, by_a, by_b, both = jet
    below = (value * sqrt(0.5)).erf_().add_(1.0).mul_(0.5)  # the normal's distribution
    density = value.square().mul_(-0.5).exp_().mul_(1.0 / sqrt(2.0 * pi))
    slope = below + value * density
    bend = density.mul_(2.0 - value.square())
    both.mul_(slope).add_(bend.mul_(by_a).mul_(by_b))
    by_a.mul_(slope)
    by_b.mul_(slope)
    value.mul_(below)
    return jet


def _mean(values: Tensor) -> Tensor:
    return torch.mean(values, -1, keepdim=True)


def _norm(jet: Tensor) -> Tensor:
    """Jet of the layer norm with gain 1, over the last axis."""
    centred = jet - _mean(jet)
    value, by_a, by_b, both = centred
    inverse = (_mean(value.square()) + NORM_EPSILON).rsqrt()
    spread_a = 2.0 * _mean(value * by_a)
    spread_b = 2.0 * _mean(value * by_b)
    spread_both = 2.0 * _mean(torch.addcmul(by_a * by_b, value, both))
    cube = -0.5 * inverse**3
    inverse_a, inverse_b = cube * spread_a, cube * spread_b
    inverse_both = 0.75 * inverse**5 * spread_a * spread_b + cube * spread_both
    result = centred * inverse
    result[1].addcmul_(value, inverse_a)
    result[2].addcmul_(value, inverse_b)
    result[3].addcmul_(by_a, inverse_b).addcmul_(by_b, inverse_a).addcmul_(value, inverse_both)
    return result


def _entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mixed derivative of each sample's cross-entropy, (4, A, N, classes) -> (A, N)."""
    value, by_a, by_b, both = logits
    chance = value.softmax(-1)
    mean_a, mean_b = (chance * by_a).sum(-1), (chance * by_b).sum(-1)
    right: Tensor = both.gather(-1, labels.expand(len(both), -1)[..., None])[..., 0]
    mixed: Tensor = (chance * (both + by_a * by_b)).sum(-1) - mean_a * mean_b
    return mixed - right
