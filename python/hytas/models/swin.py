"""The Swin-like transformer that S3 searches: four stages of attention inside windows."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.models.blocks import NO_DROP, Block, Drop, of_layer, through_stages
from hytas.models.network import Network
from hytas.models.positions import WindowAttention
from hytas.models.streams import initialise
from hytas.models.vit import PatchEmbedding
from hytas.spaces.shape import ImageShape

HEAD_DIM = 32


class WindowLayers(NamedTuple):
    """The layers of a stage.

    Attributes:
        mlp: width of each layer's MLP over that of its tokens.
        window: side of a window, in tokens.
    """

    heads: Sequence[int]
    mlp: Sequence[float]
    window: int


class Merge(nn.Module):
    """Four tokens side by side become one of twice their width (Swin's patch merging).

    Beyond the right and the lower end are zeros, where a grid has an odd side.

    Args:
        side: of the grid of tokens that enters.
        embed_dim: width E of a token that enters.
    """

    def __init__(self, side: int, embed_dim: int) -> None:
        super().__init__()
        self.side = side
        self.norm = nn.LayerNorm(4 * embed_dim)
        self.embed = nn.Linear(4 * embed_dim, 2 * embed_dim, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, side * side, E) -> (N, T, 2 E)."""
        odd = self.side % 2
        laid = F.pad(
            tokens.reshape(tokens.shape[0], self.side, self.side, -1), (0, 0, 0, odd, 0, odd)
        )
        corners = [laid[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        merged: Tensor = self.embed(self.norm(torch.cat(corners, dim=-1).flatten(1, 2)))
        return merged


class WindowTransformer(Network):
    """S3's network (Chen et al., NeurIPS 2021), after Swin (Liu et al., ICCV 2021).

    Every second layer of a stage has shifted windows. Each stage is twice as wide as the one
    before it. Where a grid of tokens is smaller than a window, it is one window.

    Args:
        embed_dim: width of a token in the first stage.

    Input: scaled images (N, H, W, channels), float. Output: logits (N, classes).
    """

    starts_by_streams = True

    def __init__(
        self,
        shape: ImageShape,
        *,
        embed_dim: int,
        stages: Sequence[WindowLayers],
        drop: Drop = NO_DROP,
    ) -> None:
        super().__init__()
        self.patch_embed = PatchEmbedding(shape, embed_dim)
        self.embed_norm = nn.LayerNorm(embed_dim)
        self.stages = nn.ModuleList()
        self.merges = nn.ModuleList()
        side, width, done = shape.grid, embed_dim, 0
        total = sum(len(stage.heads) for stage in stages)
        for stage in stages:
            if done:
                self.merges.append(Merge(side, width))
                side, width = (side + 1) // 2, 2 * width
            layers = nn.ModuleList()
            for layer, (heads, ratio) in enumerate(zip(stage.heads, stage.mlp, strict=True)):
                shifted = layer % 2 == 1
                attention = WindowAttention(width, heads, HEAD_DIM, side, stage.window, shifted)
                layers.append(Block(width, attention, ratio, of_layer(drop, done + layer, total)))
            self.stages.append(layers)
            done += len(layers)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, shape.classes)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """(N, H, W, channels) -> (N, classes)."""
        logits: Tensor = self.head(self.norm(self.stage_tokens(images)[-1]).mean(dim=1))
        return logits

    def stage_tokens(self, images: Tensor) -> list[Tensor]:
        """Return the tokens (N, T, E) of each stage, on square grids, the finest first."""
        tokens = self.embed_norm(self.patch_embed(images))
        return through_stages(tokens, self.stages, self.merges)
