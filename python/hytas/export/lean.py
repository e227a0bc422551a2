"""A network rewritten for inference: the same function with less work."""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.model_card import ModelCard
from hytas.models import SensorModel, SpectralTransformer
from hytas.models.layers import Attention, Block, TokenStream


class LeanAttention(nn.Module):
    """Attention with one matrix each for queries, keys and values, the scale inside the first.

    Three plain products replace one product, a five-dimensional transpose and three slices. If
    `fused`, what follows them is one operator, which ONNX has from operator set 23 on.
    """

    query: Tensor
    key: Tensor
    value: Tensor

    def __init__(self, attention: Attention, fused: bool = False) -> None:
        super().__init__()
        self.fused = fused
        self.heads, self.head_dim = attention.heads, attention.head_dim
        query, key, value = attention.qkv.weight.detach().chunk(3)  # each (q, E)
        self.register_buffer("query", (query * self.head_dim**-0.5).t().contiguous())
        self.register_buffer("key", key.t().contiguous())
        self.register_buffer("value", value.t().contiguous())
        self.proj = attention.proj

    def forward(self, asking: Tensor, tokens: Tensor) -> Tensor:
        """(N, Q, E) queries' tokens, (N, T, E) -> (N, Q, E)."""
        query = self._split(asking @ self.query).transpose(1, 2)  # (N, h, Q, E // h)
        key = self._split(tokens @ self.key)  # (N, T, h, E // h)
        value = self._split(tokens @ self.value).transpose(1, 2)  # (N, h, T, E // h)
        if self.fused:
            mixed = F.scaled_dot_product_attention(query, key.transpose(1, 2), value, scale=1.0)
        else:
            mixed = torch.softmax(query @ key.permute(0, 2, 3, 1), dim=-1) @ value
        joined: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return joined

    def _split(self, projected: Tensor) -> Tensor:
        return projected.reshape(*projected.shape[:2], self.heads, self.head_dim)


class LeanStream(nn.Module):
    """A stream whose last layer follows only the tokens that are read of it.

    Where the class token alone is read, the last layer computes its query, and the MLP its row,
    for that token: about 1 / depth of the work less.
    """

    def __init__(self, stream: TokenStream, read: slice, fused: bool = False) -> None:
        super().__init__()
        self.stream, self.read = stream, read
        blocks = (cast(Block, block) for block in stream.blocks)
        self.attentions = nn.ModuleList(LeanAttention(block.attention, fused) for block in blocks)

    def forward(self, embedded: Tensor, context: Tensor | None = None) -> Tensor:
        """(N, T - 1, E), (N, 1, E) or None -> the tokens that are read, (N, Q, E)."""
        stream = self.stream
        tokens = stream.enter(embedded, context)
        inputs: list[Tensor] = []
        last = len(stream.blocks) - 1
        for layer, attention in enumerate(self.attentions):
            block = cast(Block, stream.blocks[layer])
            tokens = stream.fuse(layer, tokens, inputs)
            inputs.append(tokens)
            normed = block.norm1(tokens)
            if layer == last:
                kept = tokens[:, self.read] + attention(normed[:, self.read], normed)
            else:
                kept = tokens + attention(normed, normed)
            tokens = kept + block.fc2(F.gelu(block.fc1(block.norm2(kept))))
        return tokens


class LeanEncoder(nn.Module):
    """From embedded tokens to logits."""

    def __init__(self, network: SpectralTransformer, fused: bool = False) -> None:
        super().__init__()
        self.network = network
        for name in network.streams:
            read = network.read_of(name)
            stream = LeanStream(getattr(network, f"{name}_stream"), read, fused)
            setattr(self, f"{name}_stream", stream)

    def forward(self, bands: Tensor | None, pixels: Tensor | None) -> Tensor:
        """Band tokens (N, B, E), pixel tokens (N, P * P, E), where there are any -> (N, C)."""
        return self.network.classify(bands, pixels, self)


class LeanNetwork(nn.Module):
    """A spectral transformer with the lean encoder: (N, P, P, bands) -> (N, classes)."""

    def __init__(self, network: SpectralTransformer, fused: bool = False) -> None:
        super().__init__()
        self.network = network
        self.encode = LeanEncoder(network, fused)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        logits: Tensor = self.encode(*self.network.embed(patches))
        return logits


MOST_RUNS = 16


class Scaling(nn.Module):
    """Band selection and scaling of float32 values: (..., sensor bands) -> (..., bands).

    Bands are cut out run by run, which copies memory where gathering them would look up each one.
    Values that came from integers are finite, so only cubes of floats are searched for others, and
    only models that know a value for no data look for it.
    """

    bands: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(self, model: SensorModel, card: ModelCard) -> None:
        super().__init__()
        for name in ("bands", "offset", "scale"):
            self.register_buffer(name, getattr(model, name))
        self.axis_is_whole = len(model.bands) == card.bands
        self.runs = runs_of(model.bands.tolist())
        self.finite = card.numpy_dtype.kind != "f"
        self.nodata, self.reach = model.nodata, model.reach

    def forward(self, values: Tensor) -> Tensor:
        """(..., sensor bands) -> (..., bands)."""
        if self.axis_is_whole:
            kept = values
        elif len(self.runs) <= MOST_RUNS:
            kept = torch.cat([values[..., start:stop] for start, stop in self.runs], dim=-1)
        else:
            kept = values.index_select(values.ndim - 1, self.bands)
        scaled = (kept - self.offset) / self.scale
        if not self.finite:
            scaled = torch.where(scaled - scaled == 0.0, scaled, torch.zeros_like(scaled))
        if self.nodata is not None:
            scaled = torch.where(kept == self.nodata, torch.zeros_like(scaled), scaled)
        return scaled if self.reach is None else scaled.clamp(-self.reach, self.reach)


def runs_of(bands: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending indices as (first, last + 1) of their runs."""
    runs: list[tuple[int, int]] = []
    for band in bands:
        if runs and runs[-1][1] == band:
            runs[-1] = (runs[-1][0], band + 1)
        else:
            runs.append((band, band + 1))
    return runs


class LeanModel(nn.Module):
    """A sensor model for inference: (N, P, P, sensor bands) float32 -> probabilities (N, C)."""

    def __init__(self, model: SensorModel, card: ModelCard, fused: bool = False) -> None:
        super().__init__()
        self.scaling = Scaling(model, card)
        network = model.network
        if isinstance(network, SpectralTransformer):
            network = LeanNetwork(network, fused)
        self.network = network

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, sensor bands) -> (N, classes)."""
        return torch.softmax(self.network(self.scaling(patches)), dim=1)
