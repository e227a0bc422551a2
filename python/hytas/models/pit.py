"""PiT, a ViT whose tokens are pooled between stages, as TF-TAS searches it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hytas.models.blocks import NO_DROP, Block, Drop, of_layer, through_stages
from hytas.models.layers import Attention, Placed
from hytas.models.network import Network
from hytas.models.streams import initialise
from hytas.models.vit import PatchEmbedding, class_first
from hytas.spaces.shape import ImageShape

STAGES = 3


class PatchEntry(Placed):
    """The class token, and the positions of the other tokens, with which the first stage begins."""

    def __init__(self, tokens: int, embed_dim: int) -> None:
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.position = nn.Parameter(torch.zeros(1, tokens, embed_dim))

    def forward(self, embedded: Tensor) -> Tensor:
        """(N, T, E) -> (N, 1 + T, E)."""
        return class_first(self.class_token, embedded + self.position)


class TokenPooling(nn.Module):
    """Half the rows and columns of tokens, and another width, between two stages.

    A 3 x 3 convolution in groups: as many as the narrower side is wide. The class token has a
    linear map of its own.

    Args:
        side: of the grid of tokens that enters.
        narrow: width of a token that enters.
        wide: width of a token that leaves.
    """

    def __init__(self, side: int, narrow: int, wide: int) -> None:
        super().__init__()
        self.side = side
        self.near = nn.Conv2d(narrow, wide, 3, 2, padding=1, groups=min(narrow, wide))
        self.embed_class = nn.Linear(narrow, wide)

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, 1 + side * side, narrow) -> (N, 1 + T, wide)."""
        laid = tokens[:, 1:].transpose(1, 2).reshape(tokens.shape[0], -1, self.side, self.side)
        pooled = self.near(laid).flatten(2).transpose(1, 2)
        return class_first(self.embed_class(tokens[:, :1]), pooled)


class PoolingTransformer(Network):
    """PiT (Heo et al., ICCV 2021).

    A stage is `base_dim` times its heads wide.

    Args:
        base_dim: width of a head.
        num_heads: of the three stages.
        mlp_ratio: width of every MLP over that of its tokens.

    Input: scaled images (N, H, W, channels), float. Output: logits (N, classes).
    """

    starts_by_streams = True

    def __init__(
        self,
        shape: ImageShape,
        *,
        base_dim: int,
        depth: Sequence[int],
        num_heads: Sequence[int],
        mlp_ratio: float,
        drop: Drop = NO_DROP,
    ) -> None:
        super().__init__()
        side = shape.overlapping_grid
        sides = [side, (side - 1) // 2 + 1, ((side - 1) // 2) // 2 + 1]
        widths = [base_dim * heads for heads in num_heads]
        self.patch_embed = PatchEmbedding(shape, widths[0], overlapping=True)
        self.entry = PatchEntry(side * side, widths[0])
        self.stages = nn.ModuleList()
        self.pools = nn.ModuleList(
            TokenPooling(sides[stage], widths[stage], widths[stage + 1])
            for stage in range(STAGES - 1)
        )
        for stage, (count, heads, width) in enumerate(zip(depth, num_heads, widths, strict=True)):
            before = sum(depth[:stage])
            self.stages.append(
                nn.ModuleList(
                    Block(
                        width,
                        Attention(width, heads, base_dim),
                        mlp_ratio,
                        of_layer(drop, before + layer, sum(depth)),
                    )
                    for layer in range(count)
                )
            )
        self.norm = nn.LayerNorm(widths[-1])
        self.head = nn.Linear(widths[-1], shape.classes)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """(N, H, W, channels) -> (N, classes)."""
        tokens = through_stages(self.entry(self.patch_embed(images)), self.stages, self.pools)[-1]
        logits: Tensor = self.head(self.norm(tokens[:, 0]))
        return logits

    def stage_tokens(self, images: Tensor) -> list[Tensor]:
        """Return the tokens (N, T, E) of each stage, on square grids, the finest first."""
        tokens = through_stages(self.entry(self.patch_embed(images)), self.stages, self.pools)
        return [stage[:, 1:] for stage in tokens]
