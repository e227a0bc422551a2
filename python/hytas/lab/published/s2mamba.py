"""S2Mamba of the published size: a fixed network to compare with, not a search space."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.models.blocks import Drop, ResidualLayer
from hytas.models.layers import depthwise, over_grid
from hytas.models.network import Network
from hytas.spaces.shape import InputShape

EMBED_DIM = 64
WIDTH = 2 * EMBED_DIM
STATES = 16
RANK = 4
DROPOUT = 0.4
LEAST_SHARE = 0.1


def selective_scan(
    inputs: Tensor, steps: Tensor, rates: Tensor, into: Tensor, out_of: Tensor
) -> Tensor:
    """Return y (L, ..., C) of a state-space model whose matrices change along the sequence.

    A channel has S states h, 0 before the sequence: h[t] = exp(steps[t] rates) h[t-1] +
    steps[t] into[t] inputs[t], and y[t] = out_of[t] h[t].
    Source: Gu & Dao, Mamba, 2023, algorithm 2 and equation 4, with their simpler input matrix.

    Args:
        inputs: (L, ..., C).
        steps: (L, ..., C), positive.
        rates: (..., C, S), negative.
        into, out_of: (L, ..., S).
    """
    state = torch.zeros_like(steps[0])[..., None] * rates
    outputs = []
    # Made one step at a time, all tensors stay in the processor's cache: three times as fast.
    each = (values.unbind() for values in (steps, steps * inputs, into, out_of))
    for step, new, enter, leave in zip(*each, strict=True):
        state = torch.addcmul(
            new[..., None] * enter[..., None, :], torch.exp(step[..., None] * rates), state
        )
        outputs.append((state @ leave[..., None]).squeeze(-1))
    return torch.stack(outputs)


class Scan(nn.Module):
    """Selective scans of K sequences at once, each with its own parameters.

    Args:
        sequences: K.
        channels: C of a value of a sequence.
    """

    def __init__(self, sequences: int, channels: int) -> None:
        super().__init__()
        reach, spread = 1 / math.sqrt(channels), 1 / math.sqrt(RANK)
        project = torch.empty(sequences, channels, RANK + 2 * STATES).uniform_(-reach, reach)
        first_steps = torch.empty(sequences, channels).uniform_(math.log(1e-3), math.log(0.1)).exp()
        rates = torch.arange(1.0, STATES + 1).repeat(sequences, channels, 1)
        self.project = nn.Parameter(project)
        self.widen = nn.Parameter(torch.empty(sequences, RANK, channels).uniform_(-spread, spread))
        self.bias = nn.Parameter(torch.log(torch.expm1(first_steps)))  # softplus gives the steps
        self.log_rates = nn.Parameter(torch.log(rates))
        self.skip = nn.Parameter(torch.ones(sequences, channels))

    def forward(self, sequences: Tensor) -> Tensor:
        """(N, K, L, C) -> (N, K, L, C)."""
        steps, into, out_of = torch.tensor_split(
            sequences @ self.project, (RANK, RANK + STATES), dim=-1
        )
        steps = F.softplus(steps @ self.widen + self.bias[:, None])
        inputs, steps, into, out_of = (
            values.permute(2, 0, 1, 3) for values in (sequences, steps, into, out_of)
        )
        scan = selective_scan(inputs, steps, -torch.exp(self.log_rates), into, out_of)
        scanned: Tensor = (scan + self.skip * inputs).permute(1, 2, 0, 3)
        return scanned


class Branch(nn.Module):
    """Expand, convolve, scan and gate tokens: `out(norm(scan(SiLU(conv(u)))) * GELU(z))`.

    Args:
        normed: values that are normalised together after the scan.
    """

    def __init__(self, side: int, scan: Scan, normed: int) -> None:
        super().__init__()
        self.grid = (side, side)
        self.expand = _linear(EMBED_DIM, 2 * WIDTH, bias=False)
        self.convolve = depthwise(WIDTH, 3, axes=2)
        self.scan = scan
        self.norm = nn.LayerNorm(normed)
        self.out = _linear(WIDTH, EMBED_DIM, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, T, E) -> (N, T, E)."""
        values, gate = self.expand(tokens).chunk(2, dim=-1)
        mixed = self.mix(F.silu(over_grid(self.convolve, values, self.grid)))
        return F.dropout(self.out(mixed * F.gelu(gate)), DROPOUT, self.training)

    def mix(self, values: Tensor) -> Tensor:
        """Scan and normalise values (N, T, W)."""
        raise NotImplementedError


class SpatialBranch(Branch):
    """Patch cross scanning: rows and columns of pixels, from both ends; their outputs add up."""

    def __init__(self, side: int) -> None:
        super().__init__(side, Scan(4, WIDTH), WIDTH)

    def mix(self, values: Tensor) -> Tensor:
        """(N, T, W) -> (N, T, W)."""
        ways = torch.stack([values, self._turned(values)], dim=1)
        scanned = self.scan(torch.cat([ways, ways.flip(2)], dim=1))
        by_row, by_column = (scanned[:, :2] + scanned[:, 2:].flip(2)).unbind(1)
        mixed: Tensor = self.norm(by_row + self._turned(by_column))
        return mixed

    def _turned(self, values: Tensor) -> Tensor:
        """Return values (N, T, W) of pixels row by row in the order column by column; or back."""
        grid = values.reshape(values.shape[0], *self.grid, -1)
        return grid.transpose(1, 2).flatten(1, 2)


class SpectralBranch(Branch):
    """Bi-directional spectral scanning: along the features, with the pixels as channels.

    As in the released code, both scans read the features in the same order, and the output of the
    second is reversed. The paper's second scan reads them from the other end.
    """

    def __init__(self, side: int) -> None:
        super().__init__(side, Scan(2, side**2), side**2)

    def mix(self, values: Tensor) -> Tensor:
        """(N, T, W) -> (N, T, W)."""
        features = values.transpose(1, 2)
        forward, backward = self.scan(features[:, None].expand(-1, 2, -1, -1)).unbind(1)
        mixed: Tensor = self.norm(forward + backward.flip(1)).transpose(1, 2)
        return mixed


class S2Mamba(Network):
    """S2Mamba: a layer that scans a patch over its pixels and over its features, and mixes both.

    Width 64, expanded to 128; 16 states; dropout and stochastic depth 0.4; patches of 7 x 7.
    The mixture gate weighs the two branches at each pixel; weights under 0.1 become 0. The mean
    over the pixels is read. Where the paper and its released code differ, the code is followed.
    Source: Wang et al., S2Mamba: a spatial-spectral state space model for hyperspectral image
    classification, IEEE TGRS 2025 (arXiv 2404.18213).

    Input: patches (N, P, P, bands), scaled. Output: logits (N, classes).
    """

    def __init__(self, shape: InputShape) -> None:
        super().__init__()
        self.embed = nn.Linear(shape.bands, EMBED_DIM)
        self.norm_in = nn.LayerNorm(EMBED_DIM)
        self.spatial = SpatialBranch(shape.patch_size)
        self.spectral = SpectralBranch(shape.patch_size)
        self.shares = nn.Sequential(
            nn.LayerNorm(WIDTH),
            _linear(WIDTH, WIDTH),
            nn.GELU(),
            _linear(WIDTH, 2),
            nn.Softmax(dim=-1),
        )
        self.skip = ResidualLayer(Drop(path=DROPOUT))
        self.norm = nn.LayerNorm(EMBED_DIM)
        self.head = _linear(EMBED_DIM, shape.classes)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        tokens = F.gelu(self.embed(patches.flatten(1, 2)))  # (N, P * P, E)
        normed = self.norm_in(tokens)
        spatial, spectral = self.spatial(normed), self.spectral(normed)
        shares = F.threshold(self.shares(torch.cat([spatial, spectral], dim=-1)), LEAST_SHARE, 0.0)
        mixed = shares[..., :1] * spatial + shares[..., 1:] * spectral
        tokens = tokens + self.skip.dropped(mixed)
        logits: Tensor = self.head(self.norm(tokens).mean(dim=1))
        return logits


def _linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """Return a layer with the published initial weights: a normal of deviation 0.02, cut at 2."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.trunc_normal_(layer.weight, std=0.02)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
