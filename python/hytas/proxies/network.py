"""The HyTAS network as a function of stacked weights: many networks of one width at once.

It computes what `SpectralTransformer` computes with the weights of weights.py (norms with gain 1,
linear biases 0), with a leading axis for the network (A), deepest first, so that the networks still
running at a layer are a prefix. Within a layer, networks of equal heads (equal MLP width) share one
matrix product, so a ragged layer costs no wasted work. A group of one takes views and copies
nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hytas.models.layers import repeat_ends
from hytas.proxies.weights import Weights


@dataclass
class Tap:
    """One linear layer of A networks, as a proxy sees it.

    Two more kinds are not linear layers: "input", whose output_grad is that of the sum of the
    logits by the patches, and "curvature", whose outputs (A,) are w' H g.

    Attributes:
        kind: "embed", "qkv", "proj", "fc1", "fc2" or "head".
        order: (A,) place of the layer among the network's linear layers, from 1.
        members: (A,) places of the networks in their group.
        weight: (A, out, in).
        inputs: (A or 1, N, T, in); outputs: (A, N, T, out); the head has T = 1.
        output_grad: (A, N, T, out) gradient of the pass's scalar; absent before the backward pass.
        entered: `inputs` with their graph, while there is one.
        input_grad: (A, N, T, in) gradient by the inputs, from a backward pass asked for them.
        twin: the same layer of the perturbed networks on perturbed patches, where it was asked for.
        norms: nuclear norms (A,) of gradient and weight, where they were taken beforehand.
        key: of the weight, where it is the same slice of a supernet in all A networks.
    """

    kind: str
    order: Tensor
    members: Tensor
    weight: Tensor
    inputs: Tensor
    outputs: Tensor
    output_grad: Tensor | None = None
    entered: Tensor | None = None
    input_grad: Tensor | None = None
    twin: Tap | None = None
    norms: tuple[Tensor, Tensor] | None = None
    key: Hashable | None = None

    @cached_property
    def grad(self) -> Tensor:
        """Gradient of the weight, (A, out, in)."""
        if "sample_grads" in self.__dict__:
            return self.sample_grads.sum(1)
        rows, inputs = self.known_grad.flatten(1, 2), self.inputs.flatten(1, 2)
        if len(rows) == 1:
            return (rows[0].T @ inputs[0])[None].to(self.weight)
        return (rows.transpose(1, 2) @ inputs.expand(len(rows), -1, -1)).to(self.weight)

    @cached_property
    def sample_grads(self) -> Tensor:
        """Gradient of the weight from each sample alone, (A, N, out, in); they sum to `grad`."""
        return (self.known_grad.transpose(2, 3) @ self.inputs).to(self.weight)

    @property
    def known_grad(self) -> Tensor:
        """`output_grad`, which must be there."""
        if self.output_grad is None:
            raise RuntimeError("a tap has gradients after the backward pass")
        return self.output_grad

    @property
    def entering(self) -> Tensor:
        """`input_grad`, which must be there."""
        if self.input_grad is None:
            raise RuntimeError("a tap has its inputs' gradients if the backward pass is asked")
        return self.input_grad


@dataclass(frozen=True)
class Share:
    """Networks of a layer whose matrices have one shape: their places and stacked weights."""

    members: Tensor  # (A',)
    first: Tensor  # (A', rows, E): qkv, or fc1
    second: Tensor  # (A', E, columns): proj, or fc2
    heads: int = 0
    key: tuple[Hashable, ...] | None = None  # where the weights are slices of a supernet


class _Permute(torch.autograd.Function):
    """Networks (A, ...) in another order. The gradient is gathered back; that of an index_select
    would be a sum into zeros for every share."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, order: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(order, back)
        return tokens.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        order, back = ctx.saved_tensors
        return _permute(grads[0], back, order), None, None


def _permute(tokens: Tensor, order: Tensor, back: Tensor) -> Tensor:
    """Networks (A, ...) by their places `order`; `back` is its inverse."""
    moved: Tensor = _Permute.apply(tokens, order, back)  # type: ignore[no-untyped-call]
    return moved


@dataclass(frozen=True)
class Branch:
    """The attention or the MLP of a layer, its A' networks in shares.

    Attributes:
        shares: those of one shape each.
        order: (A',) places of the networks, share after share.
        back: (A',) where the network of each place then stands.
    """

    shares: list[Share]
    order: Tensor
    back: Tensor

    def each(self, tokens: Tensor) -> Iterator[tuple[Share, Tensor]]:
        """(A', ...) -> each share, and the tokens of its networks."""
        if len(self.shares) == 1:
            return zip(self.shares, [tokens], strict=True)
        moved = _permute(tokens, self.order, self.back)
        sizes = [len(share.members) for share in self.shares]
        return zip(self.shares, torch.split(moved, sizes), strict=True)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """The networks of all shares, each at its place again, (A', ...)."""
        if len(parts) == 1:
            return parts[0]
        return _permute(torch.cat(list(parts)), self.back, self.order)


class Group:
    """Networks of one embedding width with their weights stacked.

    Args:
        networks: weights, deepest first, all of one embed_dim and one input shape.
        band_group: bands a token stacks.
    """

    def __init__(self, networks: Sequence[Weights], band_group: int) -> None:
        self.networks = networks
        self.depths = [len(network.layers) for network in networks]
        if self.depths != sorted(self.depths, reverse=True):
            raise ValueError("networks: the deepest must come first")
        self.band_group = band_group
        self.device = networks[0].embed.device
        self.supernet = networks[0].supernet
        self.embed = self._stack([n.embed for n in networks])
        self.class_token = self._stack([n.class_token for n in networks])
        self.position = self._stack([n.position for n in networks])
        self.head = self._stack([n.head for n in networks])
        has_bias = networks[0].embed_bias is not None
        self.embed_bias = self._stack([n.embed_bias for n in networks]) if has_bias else None
        self.skips_fusion = networks[0].skips_fusion
        self.attention = [self._branch(layer, "heads") for layer in range(self.depths[0])]
        self.mlp = [self._branch(layer, "hidden") for layer in range(self.depths[0])]

    def alive(self, layer: int) -> int:
        """Networks that have a layer of this index."""
        return sum(depth > layer for depth in self.depths)

    def active(self, layer: int) -> int:
        """Networks that attend in the layer of this index: the first of those alive."""
        return sum(n.layers[layer].heads > 0 for n in self.networks[: self.alive(layer)])

    def everyone(self) -> Tensor:
        """(A,) places of all networks."""
        return torch.arange(len(self.networks), device=self.device)

    def _branch(self, index: int, by: str) -> Branch:
        layers = [network.layers[index] for network in self.networks[: self.active(index)]]
        width = self.networks[0].embed_dim
        places: dict[int, list[int]] = {}
        for place, layer in enumerate(layers):
            places.setdefault(layer.heads if by == "heads" else len(layer.fc1), []).append(place)
        pair = ("qkv", "proj") if by == "heads" else ("fc1", "fc2")
        shares = [
            Share(
                torch.tensor(members, device=self.device),
                self._stack([getattr(layers[m], pair[0]) for m in members]),
                self._stack([getattr(layers[m], pair[1]) for m in members]),
                size if by == "heads" else 0,
                None if self.supernet is None else (self.supernet, index, width, size),
            )
            for size, members in places.items()
        ]
        order = [place for members in places.values() for place in members]  # none: all are idle
        back = sorted(range(len(order)), key=order.__getitem__)
        places_of = partial(torch.tensor, dtype=torch.int64, device=self.device)
        return Branch(shares, places_of(order), places_of(back))

    def _stack(self, tensors: Sequence[Tensor | None]) -> Tensor:
        """Tensors of one shape, stacked; those of one supernet are equal, and one is shown to all.

        The networks are of one width, and slices of one shape then start at the same place.
        """
        present = [tensor for tensor in tensors if tensor is not None]
        if self.supernet is not None:
            return present[0][None].expand(len(present), *present[0].shape)
        return present[0][None] if len(present) == 1 else torch.stack(present)

    def run_embedding(self, stacked: Tensor, taps: list[Tap]) -> Tensor:
        """Stacked bands (N, bands, P * P * c) -> tokens (A, N, T, E)."""
        count, (samples, bands, _) = len(self.networks), stacked.shape
        flat = stacked.flatten(0, 1).expand(count, -1, -1)
        tokens = _apply(flat, self.embed).view(count, samples, bands, -1)
        if self.embed_bias is not None:
            tokens = tokens + self.embed_bias[:, None, None]
        if torch.is_grad_enabled() and not tokens.requires_grad:
            tokens.requires_grad_()
        order = torch.ones(count, device=self.device)
        taps.append(Tap("embed", order, self.everyone(), self.embed, stacked[None], tokens))
        start = self.class_token[:, None, None].expand(-1, samples, 1, -1)
        return torch.cat([start, tokens], dim=2) + self.position[:, None]

    def run_layer(
        self, layer: int, now: Tensor, before: Tensor | None, taps: list[Tap]
    ) -> tuple[Tensor, Tensor]:
        """Tokens (A', N, T, E), and those that entered two layers ago -> (entered, left)."""
        if before is not None:
            now = self.fuse(layer, now, before)
        active = self.active(layer)
        if active == len(now):
            return now, self._attend_and_mix(layer, now, taps)
        left = [self._attend_and_mix(layer, now[:active], taps)] if active else []
        return now, torch.cat([*left, now[active:]])

    def _attend_and_mix(self, layer: int, now: Tensor, taps: list[Tap]) -> Tensor:
        """The attention and the MLP of a layer, each with its residual, (A', N, T, E)."""
        order = torch.full((len(now),), 2.0 + 4 * layer, device=self.device)
        width = (now.shape[-1],)
        parts, branch = [], self.attention[layer]
        for share, normed in branch.each(F.layer_norm(now, width)):
            parts.append(self._attend(share, normed, order, taps))
        middle = now + branch.join(parts)
        parts, branch = [], self.mlp[layer]
        for share, normed in branch.each(F.layer_norm(middle, width)):
            hidden = self._linear("fc1", order + 2, share.members, share.first, normed, taps)
            gated = F.gelu(hidden)
            parts.append(self._linear("fc2", order + 3, share.members, share.second, gated, taps))
        return middle + branch.join(parts)

    def run_head(self, class_tokens: Tensor, taps: list[Tap]) -> Tensor:
        """(A, N, E) -> logits (A, N, classes)."""
        order = torch.tensor(
            [2.0 + 4 * sum(layer.heads > 0 for layer in n.layers) for n in self.networks]
        )
        order = order.to(self.device)
        normed = F.layer_norm(class_tokens, (class_tokens.shape[-1],))[:, :, None]
        logits = self._linear("head", order, self.everyone(), self.head, normed, taps)
        return logits[:, :, 0]

    def _attend(self, share: Share, normed: Tensor, order: Tensor, taps: list[Tap]) -> Tensor:
        count, samples, tokens, _ = normed.shape
        qkv = self._linear("qkv", order, share.members, share.first, normed, taps, share.key)
        split = qkv.view(count * samples, tokens, 3, share.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = split.unbind(0)  # each (A * N, h, T, E // h)
        mixed = _attention(query, key, value)
        joined = mixed.transpose(1, 2).reshape(count, samples, tokens, -1)
        last = (order + 1, share.members, share.second, joined, taps, share.key)
        return self._linear("proj", *last)

    def _linear(
        self,
        kind: str,
        order: Tensor,
        members: Tensor,
        weight: Tensor,
        inputs: Tensor,
        taps: list[Tap],
        key: tuple[Hashable, ...] | None = None,
    ) -> Tensor:
        outputs = _apply(inputs.flatten(1, 2), weight).view(*inputs.shape[:3], -1)
        # `order` belongs to all networks of the layer, or already to these members.
        mine = order if len(order) == len(members) else order[members]
        seen = Tap(kind, mine, members, weight, inputs.detach(), outputs, entered=inputs)
        seen.key = key and (kind, *key)
        taps.append(seen)
        return outputs

    def fuse(self, layer: int, now: Tensor, before: Tensor) -> Tensor:
        """Cross-layer fusion of tokens (..., A', N, T, E) with those of two layers ago."""
        networks = self.networks[: now.shape[-4]]
        weight = self._stack([n.layers[layer].fusion for n in networks])  # (A', 2, T, T)
        mixed = weight[:, :1] @ now + weight[:, 1:] @ before
        return mixed + self.fusion_bias(layer)

    def fusion_bias(self, layer: int) -> Tensor:
        """(A', 1, T, 1)."""
        networks = self.networks[: self.alive(layer)]
        return self._stack([n.layers[layer].fusion_bias for n in networks])[:, None, :, None]


def stack_bands(patches: Tensor, band_group: int) -> Tensor:
    """Patches (N, P, P, bands) -> (N, bands, P * P * c): each band with its neighbours.

    Bands beyond either end repeat the end band.
    """
    pixels = repeat_ends(patches.flatten(1, 2), band_group // 2)  # (N, P * P, bands + 2 margins)
    return pixels.unfold(2, band_group, 1).permute(0, 2, 1, 3).flatten(2)


def _attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(q k' / sqrt D) v, each (B, h, T, D)."""
    if query.device.type != "cpu" and query.dtype != torch.bfloat16:
        # torch's plain kernel looks, forward and back, for rows whose scores are all -inf.
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
        mixed: Tensor = scores.softmax(-1) @ value
        return mixed
    return F.scaled_dot_product_attention(query, key, value)


def _apply(inputs: Tensor, weight: Tensor) -> Tensor:
    """(A, rows, in), (A, out, in) -> (A, rows, out)."""
    if is_one(weight):
        return F.linear(inputs, weight[0])
    return torch.bmm(inputs, weight.transpose(1, 2))


def is_one(stacked: Tensor) -> bool:
    """Whether what is stacked is one tensor, if shown to many networks: one product serves all."""
    return len(stacked) == 1 or stacked.stride(0) == 0


def pick(tokens: Tensor, share: Share, dim: int = 0) -> Tensor:
    """The networks of a share, from an axis over all networks of the layer."""
    if len(share.members) == tokens.shape[dim]:
        return tokens
    return tokens.index_select(dim, share.members)
