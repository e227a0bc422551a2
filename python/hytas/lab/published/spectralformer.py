"""SpectralFormer of the published size: a fixed network to compare with, not a search space."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.models.layers import Attention, CrossLayerFusion
from hytas.models.network import Network
from hytas.spaces.shape import InputShape

EMBED_DIM = 64
DEPTH = 5
HEADS = 4
HIDDEN = 8
DROPOUT = 0.1


class SpectralFormerLayer(nn.Module):
    """A pre-norm layer with dropout: attention, then a GELU MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.Sequential(
            nn.LayerNorm(EMBED_DIM), Attention(EMBED_DIM, HEADS), nn.Dropout(DROPOUT)
        )
        self.feed = nn.Sequential(
            nn.LayerNorm(EMBED_DIM),
            nn.Linear(EMBED_DIM, HIDDEN),
            nn.GELU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, EMBED_DIM),
            nn.Dropout(DROPOUT),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, T, E) -> (N, T, E)."""
        tokens = tokens + self.attend(tokens)
        attended: Tensor = tokens + self.feed(tokens)
        return attended


class SpectralFormer(Network):
    """Patch-wise SpectralFormer with group-wise embedding and cross-layer adaptive fusion.

    Depth 5, width 64, 4 heads of 16, MLP of 8 units, dropout 0.1; 7 x 7 patches and groups of 3
    bands (7 on Pavia U) as published. Where the paper and its released code differ, the code is
    followed: the spectrum is closed to a ring for the groups at its ends, and fusion mixes with
    the tokens as they were before the fusion two layers ago.
    Source: Hong et al., SpectralFormer, IEEE TGRS 60, 2022.

    Input: patches (N, P, P, bands), scaled to 0..1. Output: logits (N, classes).
    """

    def __init__(self, shape: InputShape) -> None:
        super().__init__()
        self.margin = shape.band_group // 2
        self.embed = nn.Conv1d(shape.patch_size**2, EMBED_DIM, shape.band_group)
        self.class_token = nn.Parameter(torch.randn(1, 1, EMBED_DIM))
        self.position = nn.Parameter(torch.randn(1, shape.tokens, EMBED_DIM))
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(SpectralFormerLayer() for _ in range(DEPTH))
        self.fusions = nn.ModuleList(CrossLayerFusion(shape.tokens) for _ in range(DEPTH - 2))
        self.norm = nn.LayerNorm(EMBED_DIM)
        self.head = nn.Linear(EMBED_DIM, shape.classes)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        pixels = patches.flatten(1, 2)  # (N, P * P, bands)
        pixels = F.pad(pixels, (self.margin, self.margin), mode="circular")
        embedded = self.embed(pixels).transpose(1, 2)  # (N, bands, E)
        class_token = self.class_token.expand(embedded.shape[0], -1, -1)
        tokens = self.dropout(torch.cat([class_token, embedded], dim=1) + self.position)
        before: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            before.append(tokens)
            if index >= 2:
                tokens = self.fusions[index - 2](tokens, before[index - 2])
            tokens = layer(tokens)
        logits: Tensor = self.head(self.norm(tokens[:, 0]))
        return logits
