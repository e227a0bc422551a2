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
from math import sqrt
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.models.shape import InputShape

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


def check_fits(architecture: Mapping[str, Any]) -> None:
    """Refuse a network that is no slice of the supernet.

    Raises:
        InputError: it is wider or deeper.
    """
    embed, ratios = int(architecture["embed_dim"]), list(architecture["mlp_ratio"])
    if embed > WIDTH or len(ratios) > DEPTH or max(ratios) > RATIO:
        raise InputError(
            f"init released: its supernet has width {WIDTH}, depth {DEPTH} and MLP ratio {RATIO}; "
            f"embed_dim {embed}, depth {len(ratios)}, mlp_ratio {max(ratios)} do not fit"
        )


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
