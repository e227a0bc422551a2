"""The initial weights behind the published HyTAS scores, draw by draw.

They come from one supernet of width 360, depth 10 and MLP ratio 6, whose generator torch seeds
with 0 and which then draws, in this order: one number a class (the pixels of the batch); the patch
embedding (a convolution, so uniform, with a bias); for every linear layer of the ten, weights and
a bias that are overwritten, and weights again; the eight fusions; positions; class token; the head,
twice like the others; and at last the truncated normal weights of all linear layers in order. A
network's weights are its leading rows and columns; those of query, key and value every third row.
Where scores are to be set beside the published ones, this takes the luck of the draw out of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from hytas.models import InputShape, Network
from hytas.models.blocks import NO_DROP, Block
from hytas.models.layers import Attention, CrossLayerFusion, SpectralEmbedding
from hytas.proxies import Evaluator
from hytas.proxies.initial import DrawnPool, InitialNetwork, InitialSource
from hytas.proxies.passes import score_network

WIDTH, DEPTH, RATIO = 360, 10, 6
DEVIATION = 0.02
MATRICES = {
    "qkv": (3 * WIDTH, WIDTH),
    "proj": (WIDTH, WIDTH),
    "fc1": (RATIO * WIDTH, WIDTH),
    "fc2": (WIDTH, RATIO * WIDTH),
}


class ReleasedSupernet:
    """The supernet's tensors by name: "embed", "embed bias", "position", "class token", "head",
    and for layer i "i qkv", "i proj", "i fc1", "i fc2", "i fusion" (2, T, T), "i fusion bias".

    Args:
        shape: what the scene fixes.
        seed: of torch's generator; the published scores have 0.
    """

    def __init__(self, shape: InputShape, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        tokens, classes = shape.tokens, shape.classes
        fan_in, pair = shape.patch_size**2 * shape.band_group, (2 * tokens) ** -0.5
        for _ in range(classes):
            torch.randint(0, 2, (1,), generator=self.generator)
        self.tensors = {
            "embed": self._uniform(fan_in**-0.5, WIDTH, fan_in),
            "embed bias": self._uniform(fan_in**-0.5, WIDTH),
        }
        for _ in range(DEPTH):
            for rows, columns in MATRICES.values():
                self._skip(2 * rows * columns + rows)
        for layer in range(2, DEPTH):
            weight = self._uniform(pair, tokens, tokens, 2)
            self.tensors[f"{layer} fusion"] = weight.permute(2, 0, 1).contiguous()
            self.tensors[f"{layer} fusion bias"] = self._uniform(pair, tokens)
        self.tensors["position"] = self._normal(tokens, WIDTH)
        self.tensors["class token"] = self._normal(WIDTH)
        self._skip(2 * classes * WIDTH + classes)
        for layer in range(DEPTH):
            for name, sizes in MATRICES.items():
                self.tensors[f"{layer} {name}"] = self._normal(*sizes)
        self.tensors["head"] = self._normal(classes, WIDTH)

    def _uniform(self, bound: float, *sizes: int) -> Tensor:
        return torch.empty(sizes).uniform_(-bound, bound, generator=self.generator)

    def _normal(self, *sizes: int) -> Tensor:
        """Normal by the inverse of the distribution, cut at 2 (a hundred deviations)."""
        drawn = self._uniform(1.0, *sizes).erfinv_()
        return drawn.mul_(DEVIATION * sqrt(2.0)).clamp_(-2.0, 2.0)

    def _skip(self, count: int) -> None:
        torch.empty(count).uniform_(generator=self.generator)


class ReleasedNetwork(Network):
    """The network behind the published scores: ten fusions whatever the depth, each with what
    entered two layers before, not yet fused itself."""

    def __init__(self, architecture: Mapping[str, Any], shape: InputShape) -> None:
        super().__init__()
        embed = architecture["embed_dim"]
        genes = zip(architecture["num_heads"], architecture["mlp_ratio"], strict=True)
        self.embed = SpectralEmbedding(shape.patch_size, shape.band_group, embed)
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed))
        self.position = nn.Parameter(torch.zeros(1, shape.tokens, embed))
        self.blocks = nn.ModuleList(
            Block(embed, Attention(embed, heads), ratio, NO_DROP) for heads, ratio in genes
        )
        self.fusions = nn.ModuleList(CrossLayerFusion(shape.tokens) for _ in range(DEPTH - 2))
        self.norm = nn.LayerNorm(embed)
        self.head = nn.Linear(embed, shape.classes)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        tokens = self.embed(patches)
        first = self.class_token.expand(len(tokens), -1, -1)
        tokens = torch.cat([first, tokens], dim=1) + self.position
        entered = []
        for layer in range(DEPTH):
            entered.append(tokens)
            if layer >= 2:
                tokens = self.fusions[layer - 2](tokens, entered[layer - 2])
            if layer < len(self.blocks):
                tokens = self.blocks[layer](tokens)
        return self.head(self.norm(tokens[:, 0]))


def released_start(
    architecture: Mapping[str, Any], shape: InputShape, seed: int, dtype: torch.dtype
) -> InitialNetwork:
    """The network and its slices of the released supernet."""
    get = released_supernet(shape, seed)
    embed = architecture["embed_dim"]
    network = ReleasedNetwork(architecture, shape).eval().requires_grad_(False).to(dtype)
    values = dict(network.state_dict())
    values["embed.project.weight"] = get["embed"][:embed].view_as(values["embed.project.weight"])
    values["embed.project.bias"] = get["embed bias"][:embed]
    values["class_token"] = get["class token"][None, None, :embed]
    values["position"] = get["position"][None, :, :embed]
    values["head.weight"] = get["head"][:, :embed]
    for layer in range(2, DEPTH):
        values[f"fusions.{layer - 2}.weight"] = get[f"{layer} fusion"]
        values[f"fusions.{layer - 2}.bias"] = get[f"{layer} fusion bias"]
    genes = zip(architecture["num_heads"], architecture["mlp_ratio"], strict=True)
    for layer, (heads, ratio) in enumerate(genes):
        inner, hidden, name = heads * (embed // heads), embed * ratio, f"blocks.{layer}"
        thirds = [get[f"{layer} qkv"][part : 3 * inner : 3, :embed] for part in range(3)]
        values[f"{name}.attention.qkv.weight"] = torch.cat(thirds)
        values[f"{name}.attention.proj.weight"] = get[f"{layer} proj"][:embed, :inner]
        values[f"{name}.fc1.weight"] = get[f"{layer} fc1"][:hidden, :embed]
        values[f"{name}.fc2.weight"] = get[f"{layer} fc2"][:embed, :hidden]
    zeros = {
        n: torch.zeros_like(v)
        for n, v in values.items()
        if n.endswith(("fc1.bias", "fc2.bias", "proj.bias", "head.bias"))
    }
    values = {name: value.to(dtype) for name, value in (values | zeros).items()}
    pool = DrawnPool(0, torch.device("cpu"), dtype)  # of noise, which no proxy here reads
    return InitialNetwork(network, values, InitialSource(pool, {}))


@lru_cache(maxsize=4)
def released_supernet(shape: InputShape, seed: int) -> dict[str, Tensor]:
    """The supernet's tensors, the patch embedding's columns as the network orders them."""
    tensors = ReleasedSupernet(shape, seed).tensors
    return tensors | {"embed": bands_together(tensors["embed"], shape)}


def score(
    architectures: list[dict[str, Any]], scorer: Evaluator, seed: int = 0
) -> list[dict[str, float]]:
    """The scores that `scorer` gives the released networks."""
    dtype = scorer.setting.pool.dtype
    found = []
    for each in architectures:
        start = released_start(each, scorer.shape, seed, dtype)
        found.append(score_network(start, scorer.specs, scorer.setting))
    return found


def bands_together(weight: Tensor, shape: InputShape) -> Tensor:
    """The patch embedding (E, fan_in) with its columns as `stack_bands` orders them.

    There they are ordered by neighbour (those before, nearest first, the band itself, those
    after), then pixel; here by pixel, then band.
    """
    margin = shape.band_group // 2
    before = list(range(margin))[::-1]
    order = [*before, margin, *range(margin + 1, shape.band_group)]
    blocks = weight.view(len(weight), shape.band_group, -1)[:, order]
    return blocks.transpose(1, 2).flatten(1)
