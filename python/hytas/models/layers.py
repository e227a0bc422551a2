"""The parts of spectral transformers: embeddings, attention, layers, fusion, and a stream of them.

Sources: HyTAS (Zhou et al., 2024), after SpectralFormer (Hong et al., TGRS 2022): group-wise
spectral embedding (GSE) and cross-layer adaptive fusion (CAF).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.spaces import mlp_width


def repeat_ends(pixels: Tensor, margin: int) -> Tensor:
    """(..., bands) -> (..., bands + 2 margins): the first and last band again beyond either end."""
    if not margin:
        return pixels
    if not pixels.requires_grad:
        return F.pad(pixels, (margin, margin), mode="replicate")
    # The gradient of that is summed by atomics on a GPU, in an order that no seed fixes.
    first, last = pixels[..., :1], pixels[..., -1:]
    size = (*pixels.shape[:-1], margin)
    return torch.cat([first.expand(size), pixels, last.expand(size)], dim=-1)


class SpectralEmbedding(nn.Module):
    """GSE: a token every `stride` bands, from the patch of that band and its neighbours.

    A linear map of the `width` stacked neighbours, written as the convolution over bands that it
    is, so the stack is never built. Bands beyond either end repeat the end band.
    """

    def __init__(self, patch_size: int, width: int, embed_dim: int, stride: int = 1) -> None:
        super().__init__()
        self.margin = width // 2
        self.project = nn.Conv1d(patch_size**2, embed_dim, width, stride)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, ceil(bands / stride), E)."""
        pixels = repeat_ends(patches.flatten(1, 2), self.margin)  # (N, P * P, bands + 2 margins)
        tokens: Tensor = self.project(pixels)
        return tokens.transpose(1, 2)


class PixelEmbedding(nn.Module):
    """A token a pixel of the patch: a linear map of all its bands, and of where it lies.

    Where it lies is told by its neighbours, through a depthwise 3 x 3 convolution with a residual
    (conditional positional encoding; Chu et al., ICLR 2023), zeros beyond the patch.
    """

    def __init__(self, bands: int, patch_size: int, embed_dim: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.project = nn.Linear(bands, embed_dim)
        self.near = nn.Conv2d(embed_dim, embed_dim, 3, padding=1, groups=embed_dim)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, P * P, E), row by row."""
        return self.place(self.project(patches.flatten(1, 2)))

    def place(self, tokens: Tensor) -> Tensor:
        """Projected pixels (N, P * P, E) and what their neighbours add."""
        side = self.patch_size
        grid = tokens.transpose(1, 2).reshape(tokens.shape[0], -1, side, side)
        near: Tensor = self.near(grid)
        return tokens + near.flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Multi-head self-attention of inner width q = heads * (E // heads), as HyTAS truncates it."""

    def __init__(self, embed_dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_dim = embed_dim // heads
        inner = heads * self.head_dim
        self.qkv = nn.Linear(embed_dim, 3 * inner, bias=False)
        self.proj = nn.Linear(inner, embed_dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, T, E) -> (N, T, E)."""
        batch, count, _ = tokens.shape
        qkv = self.qkv(tokens).view(batch, count, 3, self.heads, self.head_dim)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (N, h, T, E // h)
        mixed = F.scaled_dot_product_attention(query, key, value)
        joined: Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, count, -1))
        return joined


class Block(nn.Module):
    """A pre-norm transformer layer: attention, then a GELU MLP of width floor(E * mlp_ratio)."""

    def __init__(self, embed_dim: int, heads: int, mlp_ratio: float, drop_path: float) -> None:
        super().__init__()
        hidden = mlp_width(embed_dim, mlp_ratio)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.attention = Attention(embed_dim, heads)
        self.norm2 = nn.LayerNorm(embed_dim)
        self.fc1 = nn.Linear(embed_dim, hidden)
        self.fc2 = nn.Linear(hidden, embed_dim)
        self.drop_path = drop_path

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, T, E) -> (N, T, E)."""
        tokens = tokens + self._drop(self.attention(self.norm1(tokens)))
        return tokens + self._drop(self.fc2(F.gelu(self.fc1(self.norm2(tokens)))))

    def _drop(self, branch: Tensor) -> Tensor:
        """Stochastic depth: drop the branch of whole samples, rescaled to keep its mean."""
        if not self.training or self.drop_path == 0.0:
            return branch
        keep = 1.0 - self.drop_path
        mask = branch.new_empty(branch.shape[0], 1, 1).bernoulli_(keep)
        return branch * (mask / keep)


class CrossLayerFusion(nn.Module):
    """CAF: a learned T x T mix of the tokens now and two layers ago (2 T^2 + T parameters)."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        bound = (2 * tokens) ** -0.5  # that of the 1 x 2 convolution which the papers write it as
        self.weight = nn.Parameter(torch.empty(2, tokens, tokens).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(tokens).uniform_(-bound, bound))

    def forward(self, now: Tensor, before: Tensor) -> Tensor:
        """(N, T, E), (N, T, E) -> (N, T, E)."""
        return self.weight[0] @ now + self.weight[1] @ before + self.bias[:, None]


class TokenStream(nn.Module):
    """Class token, positions, and transformer layers, with CAF before each from the third on.

    Args:
        tokens: T, the class token included.
        embed_dim: width E of a token.
        num_heads: heads of each layer; its length is the depth.
        mlp_ratio: MLP width of each layer over E.
        fusion: whether there is CAF.
        drop_path: stochastic depth of the last layer, growing linearly from 0 at the first.
    """

    def __init__(
        self,
        tokens: int,
        embed_dim: int,
        num_heads: Sequence[int],
        mlp_ratio: Sequence[float],
        fusion: bool,
        drop_path: float,
    ) -> None:
        super().__init__()
        depth = len(num_heads)
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.position = nn.Parameter(torch.zeros(1, tokens, embed_dim))
        self.blocks = nn.ModuleList(
            Block(embed_dim, heads, ratio, drop_path * layer / max(1, depth - 1))
            for layer, (heads, ratio) in enumerate(zip(num_heads, mlp_ratio, strict=True))
        )
        fused = max(depth - 2, 0) if fusion else 0
        self.fusions = nn.ModuleList(CrossLayerFusion(tokens) for _ in range(fused))

    def forward(self, embedded: Tensor, context: Tensor | None = None) -> Tensor:
        """Embedded tokens (N, T - 1, E) -> (N, T, E), the class token first.

        `context` (N, 1, E), of another stream, is added to the class token.
        """
        tokens = self.enter(embedded, context)
        inputs: list[Tensor] = []
        for layer, block in enumerate(self.blocks):
            tokens = self.fuse(layer, tokens, inputs)
            inputs.append(tokens)
            tokens = block(tokens)
        return tokens

    def enter(self, embedded: Tensor, context: Tensor | None) -> Tensor:
        """What enters the first layer: (N, T, E)."""
        class_token = self.class_token.expand(embedded.shape[0], -1, -1)
        if context is not None:
            class_token = class_token + context
        return torch.cat([class_token, embedded], dim=1) + self.position

    def fuse(self, layer: int, tokens: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """What enters a layer, from what left the one before and what entered all before."""
        if layer < 2 or not len(self.fusions):
            return tokens
        fused: Tensor = self.fusions[layer - 2](tokens, inputs[layer - 2])
        return fused


def initialise(network: nn.Module) -> None:
    """Truncated normal of deviation 0.02 for tokens and linear maps, as ViT and HyTAS do."""
    for module in network.modules():
        if isinstance(module, TokenStream):
            nn.init.trunc_normal_(module.class_token, std=0.02)
            nn.init.trunc_normal_(module.position, std=0.02)
        elif isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
