"""GSC-ViT of the published size: a fixed network to compare with, not a search space."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.models.network import Network
from hytas.spaces.shape import InputShape

WIDTHS = (256, 128, 64)
GROUPS = 8
HEADS = 16
HEAD_DIM = 16
WINDOW = 4
DROPOUT = 0.1


def normed_convolution(*layers: nn.Module, width: int) -> nn.Sequential:
    """Return convolutions, then batch normalisation of `width` channels, then a ReLU."""
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU())


class WindowedAttention(nn.Module):
    """Groupwise separable self-attention: inside windows of 4 x 4 pixels, then between windows.

    Each window has a token besides those of its pixels. After attention inside the windows, these
    tokens give the queries and keys of attention between windows; its values are whole windows.

    Args:
        width: E of a pixel.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = HEADS * HEAD_DIM
        self.token = nn.Parameter(torch.randn(width))
        self.inside = nn.Linear(width, 3 * inner, bias=False)
        self.summary = nn.Sequential(nn.LayerNorm(HEAD_DIM), nn.GELU())
        self.between = nn.Linear(inner, 2 * inner)
        self.out = nn.Linear(inner, width)

    def forward(self, pixels: Tensor) -> Tensor:
        """(N, H, W, E) -> (N, H, W, E); H and W are multiples of 4."""
        count, height, width, _ = pixels.shape
        rows, columns = height // WINDOW, width // WINDOW
        windows = pixels.reshape(count, rows, WINDOW, columns, WINDOW, -1)
        windows = windows.transpose(2, 3).flatten(3, 4).flatten(0, 2)  # (N * windows, 16, E)
        token = self.token.expand(windows.shape[0], 1, -1)
        inside = self.inside(torch.cat([token, windows], dim=1))
        heads = inside.reshape(*inside.shape[:2], 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        seen = self._attend(*heads)  # (N * windows, heads, 17, d)
        seen = seen.reshape(count, -1, *seen.shape[1:]).transpose(1, 2)
        tokens, mixed = seen[..., 0, :], seen[..., 1:, :].flatten(3)
        if rows * columns > 1:
            summary = self.between(self.summary(tokens).transpose(1, 2).flatten(2))
            both = summary.reshape(count, rows * columns, HEADS, -1).transpose(1, 2)
            query, key = both.chunk(2, dim=-1)
            mixed = self._attend(query, key, mixed)  # (N, heads, windows, 16 d)
        laid = mixed.reshape(count, HEADS, rows, columns, WINDOW, WINDOW, HEAD_DIM)
        laid = laid.permute(0, 2, 4, 3, 5, 1, 6).reshape(count, height, width, -1)
        return F.dropout(self.out(laid), DROPOUT, self.training)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return softmax(q k' / sqrt(d)) v, with dropout on the softmax."""
        drop = DROPOUT if self.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, dropout_p=drop)


class GSCViTStage(nn.Module):
    """A groupwise separable convolution, then attention in windows with a skip connection."""

    def __init__(self, entering: int, width: int) -> None:
        super().__init__()
        self.convolve = normed_convolution(
            nn.Conv2d(entering, width, 1, groups=GROUPS),
            nn.Conv2d(width, width, 3, padding=1, groups=GROUPS),
            width=width,
        )
        self.attend = nn.Sequential(
            nn.LayerNorm(width),
            WindowedAttention(width),
            nn.LayerNorm(width),
            nn.Linear(width, width),
        )
        self.join = normed_convolution(width=width)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, E, H, W)."""
        local = self.convolve(maps)
        joined: Tensor = self.join(local + self.attend(local.movedim(1, 3)).movedim(3, 1))
        return joined


class GSCViT(Network):
    """GSC-ViT: two stages of grouped convolutions and attention in windows of 4 x 4 pixels.

    Widths 256, 128 and 64, 8 groups, 16 heads of 16, dropout 0.1: the released setting for Indian
    Pines. The mean over the pixels is read. The published patch has 8 x 8 pixels. Here a patch
    repeats its last row and column until its side is a multiple of 4, so one of 7 x 7 sees no
    further than the other methods. The released network also holds a convolution of 73,856
    parameters that it never calls; it is left out here.
    Source: Zhao et al., Hyperspectral image classification using groupwise separable convolutional
    vision transformer network, IEEE TGRS 62, 2024, and its released code.

    Input: patches (N, P, P, bands), scaled. Output: logits (N, classes).
    """

    def __init__(self, shape: InputShape) -> None:
        super().__init__()
        self.margin = -shape.patch_size % WINDOW
        first = WIDTHS[0]
        # The released code normalises twice in a row.
        self.calibrate = nn.Sequential(
            normed_convolution(nn.Conv2d(shape.bands, first, 1), width=first),
            normed_convolution(width=first),
        )
        self.stages = nn.Sequential(*(GSCViTStage(*pair) for pair in pairwise(WIDTHS)))
        self.norm = nn.LayerNorm(WIDTHS[-1])
        self.head = nn.Linear(WIDTHS[-1], shape.classes)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        maps = patches.movedim(3, 1)
        maps = F.pad(maps, (0, self.margin, 0, self.margin), mode="replicate")
        features = self.stages(self.calibrate(maps))  # (N, E, P, P)
        logits: Tensor = self.head(self.norm(features.mean(dim=(2, 3))))
        return logits
