"""The layers of a stream: how tokens are mixed, and how each of them is then transformed.

A layer of attention without a gate is the transformer's: attention, then an MLP. Every other one is
a single residual branch: expand each token, mix the tokens, gate them, and project back. Sources:
the gated block of MambaOut (Yu and Wang, CVPR 2025) and of S2Mamba (Wang et al., TGRS 2025), whose
state-space scan is left out.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.layers import Attention, depthwise, holding, over_grid
from hytas.models.numberless import shared
from hytas.models.positions import RelativePositions
from hytas.spaces import mlp_width

ATTENTION, NO_MIXER = "attention", "none"
KERNELS = {"conv3": 3, "conv5": 5}
"""Mixer -> side of the kernel of its depthwise convolution over the tokens' grid."""
MIXERS = (ATTENTION, *KERNELS, NO_MIXER)


class Drop(NamedTuple):
    """What training drops at random from the branches of layers.

    Attributes:
        path: stochastic depth: probability that a sample skips the branch of the last layer; it
            grows linearly from 0 at the first.
        values: dropout: probability that a value of a branch is set to 0.
    """

    path: float = 0.0
    values: float = 0.0


NO_DROP = Drop()

_part: ContextVar[tuple[slice, int] | None] = ContextVar("part of a batch", default=None)


def part_of_batch(rows: slice, samples: int) -> AbstractContextManager[None]:
    """Let layers drop from a part of a batch what they drop of it in a pass of the whole batch.

    Args:
        rows: of the batch that a pass inside this context gets.
        samples: in the whole batch.
    """
    return holding(_part, (rows, samples))


class Layers(NamedTuple):
    """The layers of a stream.

    Attributes:
        heads: of each layer's attention; its length is the depth.
        mlp: width of each layer's MLP, or of its expanded tokens, over E.
        mixer: "attention", "conv3", "conv5" (depthwise convolutions) or "none".
        gate: whether expanded tokens are multiplied by a gate.
        head_dim: width of a head of attention without a gate; see `Attention`.
        reach: of its relative positions on a square grid of tokens behind a class token, in
            tokens; 0 for none.
    """

    heads: Sequence[int]
    mlp: Sequence[float]
    mixer: str = ATTENTION
    gate: bool = False
    head_dim: int | None = None
    reach: int = 0

    @property
    def attends(self) -> bool:
        """Whether tokens attend to one another; then there is a class token."""
        return self.mixer == ATTENTION


class ResidualLayer(nn.Module):
    """A layer with residual branches, of which training may drop samples and values."""

    def __init__(self, drop: Drop) -> None:
        super().__init__()
        self.drop = drop

    def dropped(self, branch: Tensor) -> Tensor:
        """Drop from a branch (N, T, E), rescaled to keep its mean."""
        if not self.training:
            return branch
        rows, samples = _part.get() or (slice(None), len(branch))
        if self.drop.values:
            whole = branch.new_ones(samples, *branch.shape[1:])
            branch = branch * F.dropout(whole, self.drop.values)[rows]
        if not self.drop.path:
            return branch
        keep = 1.0 - self.drop.path
        mask = branch.new_empty(samples, 1, 1).bernoulli_(keep)[rows]
        return branch * (mask / keep)


class Block(ResidualLayer):
    """A pre-norm transformer layer: attention, then a GELU MLP of width floor(E * mlp_ratio).

    Args:
        embed_dim: width E of a token.
        mlp_ratio: width of the MLP over E.
    """

    def __init__(self, embed_dim: int, attention: Attention, mlp_ratio: float, drop: Drop) -> None:
        super().__init__(drop)
        hidden = mlp_width(embed_dim, mlp_ratio)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.attention = attention
        self.norm2 = nn.LayerNorm(embed_dim)
        self.fc1 = nn.Linear(embed_dim, hidden)
        self.fc2 = nn.Linear(hidden, embed_dim)

    def forward(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """(N, T, E) -> (N, Q, E): the tokens of `read`, all without it."""
        return self.mix(self.attend(tokens, read))

    def attend(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """Apply the attention with its residual: (N, T, E) -> (N, Q, E)."""
        kept = tokens if read is None else tokens[:, read]
        return kept + self.dropped(self.attention(self.norm1(tokens), read))

    def mix(self, tokens: Tensor) -> Tensor:
        """Apply the MLP with its residual: (N, Q, E) -> (N, Q, E)."""
        return tokens + self.dropped(self.fc2(F.gelu(self.fc1(self.norm2(tokens)))))


class MixerBlock(ResidualLayer):
    """A pre-norm layer of one branch: x + fc2(norm(silu(mix(fc1(x)))) * gelu(gate(x))).

    fc1 and the gate expand a normalised token to floor(E * expansion) values; without a gate there
    is no product. The mixer is attention, a depthwise convolution over the grid of tokens, or
    nothing.

    Args:
        embed_dim: width E of a token.
        mixer: one of `MIXERS`.
        expansion: width of the expanded tokens over E.
        grid: sizes of the grid that the tokens lie on, for convolutions; its product is T.
    """

    def __init__(
        self,
        embed_dim: int,
        mixer: str,
        gate: bool,
        heads: int,
        expansion: float,
        grid: Sequence[int],
        drop: Drop = NO_DROP,
    ) -> None:
        super().__init__(drop)
        if mixer not in MIXERS:
            raise InputError("mixer", mixer, f"must be one of {', '.join(MIXERS)}")
        inner = mlp_width(embed_dim, expansion)
        self.grid = tuple(grid)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.fc1 = nn.Linear(embed_dim, inner, bias=False)
        self.gate = nn.Linear(embed_dim, inner, bias=False) if gate else None
        self.attention = Attention(inner, heads) if mixer == ATTENTION else None
        kernel = KERNELS.get(mixer)
        self.near = depthwise(inner, kernel, len(self.grid)) if kernel else None
        self.norm2 = nn.LayerNorm(inner)
        self.fc2 = nn.Linear(inner, embed_dim, bias=False)

    def forward(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """(N, T, E) -> (N, Q, E): the tokens of `read`, all without it."""
        kept = tokens if read is None else tokens[:, read]
        normed = self.norm1(tokens)
        mixed = self.norm2(F.silu(self._mix(normed, read)))
        if self.gate is not None:
            asking = normed if read is None else normed[:, read]
            mixed = mixed * F.gelu(self.gate(asking))
        return kept + self.dropped(self.fc2(mixed))

    def _mix(self, normed: Tensor, read: slice | None) -> Tensor:
        """Expand tokens (N, T, E) and mix them: those of `read`, (N, Q, f)."""
        if self.attention is not None:
            return self.attention(self.fc1(normed), read)  # type: ignore[no-any-return]
        if self.near is None:
            return self.fc1(normed if read is None else normed[:, read])  # type: ignore[no-any-return]
        mixed = over_grid(self.near, self.fc1(normed), self.grid)
        return mixed if read is None else mixed[:, read]


def of_layer(drop: Drop, index: int, depth: int) -> Drop:
    """Return the drop rates of layer `index` of `depth`, from those of the last."""
    return drop._replace(path=drop.path * index / max(1, depth - 1))


def through_stages(tokens: Tensor, stages: nn.ModuleList, between: nn.ModuleList) -> list[Tensor]:
    """Run tokens through stages of layers, with a module between each two; return all outputs."""
    outputs: list[Tensor] = []
    for stage, layers in enumerate(stages):
        if stage:
            tokens = between[stage - 1](tokens)
        for layer in layers:  # type: ignore[attr-defined]
            tokens = layer(tokens)
        outputs.append(tokens)
    return outputs


def layer_of(
    layers: Layers, index: int, embed_dim: int, grid: Sequence[int], drop: Drop = NO_DROP
) -> Block | MixerBlock:
    """Return one layer of a stream.

    Args:
        index: of the layer, from 0.
        embed_dim: width E of a token.
        grid: sizes of the grid that the tokens lie on; () where neither a convolution nor a
            relative position reads it.
        drop: what training drops in the last layer.
    """
    own = of_layer(drop, index, len(layers.heads))
    place = (index, len(grid))  # a network has one stream at most of each number of axes
    heads, ratio = layers.heads[index], layers.mlp[index]
    if layers.attends and not layers.gate:
        side, layer = grid[0] if layers.reach else 0, layers._replace(heads=(heads,), mlp=(ratio,))
        return shared(place, _transformer, embed_dim, layer, side, own)
    mixer = (layers.mixer, layers.gate, heads)
    return shared(place, MixerBlock, embed_dim, *mixer, ratio, tuple(grid), own)


def _transformer(embed_dim: int, layer: Layers, side: int, drop: Drop) -> Block:
    """Return a layer of attention and an MLP, with relative positions if they reach anywhere."""
    (heads,), (ratio,) = layer.heads, layer.mlp
    width = layer.head_dim or embed_dim // heads
    places = RelativePositions(side, layer.reach, width) if layer.reach else None
    return Block(embed_dim, Attention(embed_dim, heads, layer.head_dim, places), ratio, drop)
