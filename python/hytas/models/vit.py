"""The vision transformer that AutoFormer searches: patches as tokens, with relative positions."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.blocks import NO_DROP, Drop, Layers
from hytas.models.network import Network
from hytas.models.streams import TokenStream, initialise
from hytas.spaces.shape import ImageShape

CLASS, MEAN = POOLINGS = ("class", "mean")


class PatchEmbedding(nn.Module):
    """A token for each patch of an image: a linear map of its pixels.

    Args:
        embed_dim: width E of a token.
        overlapping: whether patches lie the shape's `stride` apart. The rest at the right and below
            is not read.
    """

    def __init__(self, shape: ImageShape, embed_dim: int, overlapping: bool = False) -> None:
        super().__init__()
        stride = shape.stride if overlapping else shape.patch_size
        self.project = nn.Conv2d(shape.channels, embed_dim, shape.patch_size, stride)

    def forward(self, images: Tensor) -> Tensor:
        """(N, H, W, channels) -> (N, T, E), row by row."""
        laid: Tensor = self.project(images.permute(0, 3, 1, 2))
        return laid.flatten(2).transpose(1, 2)


class VisionTransformer(Network):
    """A ViT as AutoFormer has it (Chen et al., ICCV 2021).

    Args:
        embed_dim: width E of a token.
        pooling: what the head reads: "class", the class token; or "mean", the mean of the other
            tokens. The class token is there in both.

    Input: scaled images (N, H, W, channels), float. Output: logits (N, classes).
    """

    starts_by_streams = True

    def __init__(
        self,
        shape: ImageShape,
        *,
        embed_dim: int,
        layers: Layers,
        pooling: str = MEAN,
        drop: Drop = NO_DROP,
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise InputError("pooling", pooling, f"must be one of {', '.join(POOLINGS)}")
        side = shape.grid
        read = slice(0, 1) if pooling == CLASS else slice(1, None)
        self.patch_embed = PatchEmbedding(shape, embed_dim)
        self.stream = TokenStream((side, side), embed_dim, layers, False, drop, read)
        self.norm = nn.LayerNorm(embed_dim)
        self.head = nn.Linear(embed_dim, shape.classes)
        initialise(self)

    @property
    def token_streams(self) -> Mapping[str, TokenStream]:
        """The one stream."""
        return {"patch": self.stream}

    def forward(self, images: Tensor) -> Tensor:
        """(N, H, W, channels) -> (N, classes)."""
        tokens = self.norm(self.stream(self.patch_embed(images)))
        logits: Tensor = self.head(tokens.mean(dim=1))
        return logits

    def stage_tokens(self, images: Tensor) -> list[Tensor]:
        """Return the tokens (N, T, E) of the one stage, on a square grid."""
        return [self.stream(self.patch_embed(images), read=slice(1, None))]


def class_first(token: Tensor, others: Tensor) -> Tensor:
    """Put a class token (1, 1, E) or (N, 1, E) before tokens (N, T, E)."""
    return torch.cat([token.expand(others.shape[0], -1, -1), others], dim=1)
