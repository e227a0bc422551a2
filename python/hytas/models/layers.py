"""The layers that networks are made of: embeddings, attention, MLP, fusion, and streams of them.

Every formula of a network stands here once. Training, scoring and export run these modules.
Sources: HyTAS (Zhou et al., 2024), after SpectralFormer (Hong et al., TGRS 2022): group-wise
spectral embedding (GSE) and cross-layer adaptive fusion (CAF).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from hytas.spaces import mlp_width

DEVIATION = 0.02
"""Of tokens and linear maps, as ViT and HyTAS start."""

_WRITTEN_OUT = ContextVar("attention written out", default=False)


class Law(NamedTuple):
    """How the initial values of a parameter are drawn.

    Attributes:
        name: "normal" or "uniform" around zero, or "constant".
        scale: deviation, bound, or the value itself.
    """

    name: str
    scale: float


@contextmanager
def attention_written_out(foreign: bool = False) -> Iterator[None]:
    """Compute attention by plain products while the context lasts, in this thread.

    The fused kernels cannot be differentiated twice, and ONNX has none of them in its older
    operator sets.

    Args:
        foreign: also in networks that do not attend by `attend`; torch then uses its plain kernel
            in all threads.
    """
    token = _WRITTEN_OUT.set(True)
    try:
        with sdpa_kernel(SDPBackend.MATH) if foreign else nullcontext():
            yield
    finally:
        _WRITTEN_OUT.reset(token)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return softmax(q k') v for q (N, h, Q, d), k and v (N, h, T, d), the scale inside q."""
    if _WRITTEN_OUT.get():
        return torch.softmax(query @ key.transpose(-2, -1), dim=-1) @ value
    return F.scaled_dot_product_attention(query, key, value, scale=1.0)


def probabilities(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Return class probabilities (N, C) for logits (N, C).

    Args:
        logits: of a network.
        temperature: what they are divided by first. The order of the classes stays.
    """
    return torch.softmax(logits if temperature == 1.0 else logits / temperature, dim=1)


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
        self.patch_size, self.margin = patch_size, width // 2
        self.project = nn.Conv1d(patch_size**2, embed_dim, width, stride)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, ceil(bands / stride), E)."""
        pixels = repeat_ends(patches.flatten(1, 2), self.margin)  # (N, P * P, bands + 2 margins)
        tokens: Tensor = self.project(pixels)
        return tokens.transpose(1, 2)

    def of_strip(self, strip: Tensor) -> Tensor:
        """Embed every pixel of a row: scaled bands (P, W + P - 1, bands) -> (W, tokens, E).

        The map of a patch is a convolution over (column, band) whose channels are the P rows, so
        no patch is copied.
        """
        side, project = self.patch_size, self.project
        kernel = project.weight.view(-1, side, side, project.weight.shape[2])
        rows = repeat_ends(strip, self.margin)[None]
        stride = (1, project.stride[0])
        tokens = F.conv2d(rows, kernel, project.bias, stride)  # (1, E, W, tokens)
        return tokens[0].permute(1, 2, 0)


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
        """Add to projected pixels (N, P * P, E) what their neighbours tell."""
        side = self.patch_size
        grid = tokens.transpose(1, 2).reshape(tokens.shape[0], -1, side, side)
        near: Tensor = self.near(grid)
        return tokens + near.flatten(2).transpose(1, 2)

    def of_strip(self, strip: Tensor) -> Tensor:
        """Embed every pixel of a row: projected pixels (P, W + P - 1, E) -> (W, P * P, E)."""
        side = self.patch_size
        width = strip.shape[1] - side + 1
        windows = [strip[:, column : column + width] for column in range(side)]
        patches = torch.stack(windows, dim=2)  # (row, W, column, E)
        return self.place(patches.transpose(0, 1).flatten(1, 2))


class QueryKeyValue(nn.Linear):
    """One weight (3 q, E) for queries, keys and values, applied as three products.

    So queries may be asked of fewer tokens than there are, and no product is cut apart again.
    """

    def forward(  # type: ignore[override]
        self, tokens: Tensor, asking: Tensor, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (N, T, E), those that ask (N, Q, E) -> (N, Q, q), (N, T, q), (N, T, q).

        `scale` multiplies the queries' weight, which is smaller than the queries.
        """
        inner = self.out_features // 3
        query, key = self.weight[:inner], self.weight[inner : 2 * inner]
        value = self.weight[2 * inner :]
        return F.linear(asking, query * scale), F.linear(tokens, key), F.linear(tokens, value)


class Attention(nn.Module):
    """Multi-head self-attention of inner width q = heads * (E // heads), as HyTAS truncates it."""

    def __init__(self, embed_dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_dim = embed_dim // heads
        inner = heads * self.head_dim
        self.qkv = QueryKeyValue(embed_dim, 3 * inner, bias=False)
        self.proj = nn.Linear(inner, embed_dim)

    def forward(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """(N, T, E) -> (N, Q, E): the tokens of `read`, all without it, each attending to all."""
        asking = tokens if read is None else tokens[:, read]
        query, key, value = map(self._split, self.qkv(tokens, asking, self.head_dim**-0.5))
        joined: Tensor = self.proj(attend(query, key, value).transpose(1, 2).flatten(2))
        return joined

    def _split(self, projected: Tensor) -> Tensor:
        """(N, T, q) -> (N, h, T, q // h)."""
        split = projected.reshape(*projected.shape[:2], self.heads, self.head_dim)
        return split.transpose(1, 2)


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

    def forward(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """(N, T, E) -> (N, Q, E): the tokens of `read`, all without it."""
        return self.mix(self.attend(tokens, read))

    def attend(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """The attention and its residual: (N, T, E) -> (N, Q, E)."""
        kept = tokens if read is None else tokens[:, read]
        return kept + self._drop(self.attention(self.norm1(tokens), read))

    def mix(self, tokens: Tensor) -> Tensor:
        """The MLP and its residual: (N, Q, E) -> (N, Q, E)."""
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
        self.bound = (2 * tokens) ** -0.5  # of the papers' 1 x 2 convolution
        self.weight = nn.Parameter(torch.empty(2, tokens, tokens).uniform_(-self.bound, self.bound))
        self.bias = nn.Parameter(torch.empty(tokens).uniform_(-self.bound, self.bound))

    def forward(self, now: Tensor, before: Tensor) -> Tensor:
        """(N, T, E), (N, T, E) -> (N, T, E)."""
        return self.weight[0] @ now + self.weight[1] @ before + self.bias[:, None]


class TokenStream(nn.Module):
    """Class token, positions, and transformer layers, with CAF before each from the third on.

    The last layer computes only the tokens that are read: their queries, and their rows of the MLP.

    Args:
        tokens: T, the class token included.
        embed_dim: width E of a token.
        num_heads: heads of each layer; its length is the depth.
        mlp_ratio: MLP width of each layer over E.
        fusion: whether there is CAF.
        drop_path: stochastic depth of the last layer, growing linearly from 0 at the first.
        read: the tokens that are read of the stream.

    Attributes:
        observer: called with all tokens (N, T, E) of the last layer, which are then all computed.
    """

    def __init__(
        self,
        tokens: int,
        embed_dim: int,
        num_heads: Sequence[int],
        mlp_ratio: Sequence[float],
        fusion: bool,
        drop_path: float,
        read: slice,
    ) -> None:
        super().__init__()
        depth = len(num_heads)
        self.read = read
        self.observer: Callable[[Tensor], None] | None = None
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.position = nn.Parameter(torch.zeros(1, tokens, embed_dim))
        self.blocks = nn.ModuleList(
            Block(embed_dim, heads, ratio, drop_path * layer / max(1, depth - 1))
            for layer, (heads, ratio) in enumerate(zip(num_heads, mlp_ratio, strict=True))
        )
        fused = max(depth - 2, 0) if fusion else 0
        self.fusions = nn.ModuleList(CrossLayerFusion(tokens) for _ in range(fused))

    def forward(self, embedded: Tensor, context: Tensor | None = None) -> Tensor:
        """Embedded tokens (N, T - 1, E) -> the tokens that are read, (N, Q, E).

        `context` (N, 1, E), of another stream, is added to the class token.
        """
        tokens = self.enter(embedded, context)
        inputs: list[Tensor] = []
        last = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            if layer >= 2 and len(self.fusions):
                tokens = self.fusions[layer - 2](tokens, inputs[layer - 2])
            inputs.append(tokens)
            reads = layer == last and self.observer is None
            tokens = block(tokens, self.read if reads else None)
        if self.observer is None and inputs:
            return tokens
        if self.observer is not None:
            self.observer(tokens)
        return tokens[:, self.read]

    def enter(self, embedded: Tensor, context: Tensor | None) -> Tensor:
        """What enters the first layer: (N, T, E)."""
        class_token = self.class_token.expand(embedded.shape[0], -1, -1)
        if context is not None:
            class_token = class_token + context
        return torch.cat([class_token, embedded], dim=1) + self.position


def initialise(network: nn.Module) -> None:
    """Draw tokens and linear maps from a truncated normal of deviation 0.02, as ViT and HyTAS do.

    Convolutions and fusions keep torch's own uniform draws.
    """
    for module in network.modules():
        if isinstance(module, TokenStream):
            nn.init.trunc_normal_(module.class_token, std=DEVIATION)
            nn.init.trunc_normal_(module.position, std=DEVIATION)
        elif isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=DEVIATION)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def laws_of(network: nn.Module) -> dict[str, Law]:
    """Return parameter name -> the law that construction and `initialise` draw it by."""
    found: dict[str, Law] = {}
    for name, module in network.named_modules():
        for part, _ in module.named_parameters(recurse=False):
            law = _law(module, part)
            if law is not None:
                found[f"{name}.{part}" if name else part] = law
    return found


def _law(module: nn.Module, part: str) -> Law | None:
    if isinstance(module, TokenStream):
        return Law("normal", DEVIATION)
    if isinstance(module, nn.Linear):
        return Law("normal", DEVIATION) if part == "weight" else Law("constant", 0.0)
    if isinstance(module, nn.LayerNorm):
        return Law("constant", 1.0 if part == "weight" else 0.0)
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        return Law("uniform", module.weight[0].numel() ** -0.5)
    return Law("uniform", module.bound) if isinstance(module, CrossLayerFusion) else None
