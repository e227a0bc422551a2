"""Where tokens lie, as attention sees it: relative positions, and windows of a grid.

Sources: AutoFormer (Chen et al., ICCV 2021), after Shaw et al. (NAACL 2018), in two dimensions: two
tables each for keys and values. Swin (Liu et al., ICCV 2021): a bias for each head, and shifted
windows.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.models.layers import Attention, Placed, Seen


class RelativePositions(Placed):
    """What AutoFormer adds to keys and values: a vector for the rows between, one for the columns.

    Larger distances than `reach` rows or columns count as `reach`. The class token, which
    comes first, has the vectors of its own.

    Args:
        side: of the square grid of tokens.
        reach: in tokens; not more than `side` is used.
    """

    def __init__(self, side: int, reach: int, head_dim: int) -> None:
        super().__init__()
        self.side, self.reach = side, min(reach, side)
        entries = 2 * self.reach + 2
        self.key_rows = nn.Parameter(torch.zeros(entries, head_dim))
        self.key_columns = nn.Parameter(torch.zeros(entries, head_dim))
        self.value_rows = nn.Parameter(torch.zeros(entries, head_dim))
        self.value_columns = nn.Parameter(torch.zeros(entries, head_dim))

    def forward(self, read: slice | None) -> Seen:
        """Return what tokens of `read` (all without it) add to every key and value."""
        device = self.key_rows.device
        place = torch.arange(self.side, device=device)
        square = torch.ones(self.side, self.side, dtype=torch.int64, device=device)
        rows = self._entries((place[:, None] * square).flatten(), read)
        columns = self._entries((place[None] * square).flatten(), read)
        return Seen(
            keys=F.embedding(rows, self.key_rows) + F.embedding(columns, self.key_columns),
            values=F.embedding(rows, self.value_rows) + F.embedding(columns, self.value_columns),
        )

    def _entries(self, place: Tensor, read: slice | None) -> Tensor:
        """Map places (N,) along one axis to entries (Q, 1 + N) of its tables."""
        distance = (place[None] - place[:, None]).clamp(-self.reach, self.reach) + self.reach + 1
        entries = F.pad(distance, (1, 0, 1, 0))
        return entries if read is None else entries[read]


class WindowAttention(Attention, Placed):
    """Attention inside windows of a square grid, with a bias for each head and place (Swin).

    Args:
        embed_dim: width E of a token.
        side: of the grid. Where windows do not fill it, empty tokens are added, which no other
            token attends to.
        window: side of a window; not more than `side` is used.
        shifted: whether windows lie half a window further, unless there is one.
    """

    def __init__(
        self, embed_dim: int, heads: int, head_dim: int, side: int, window: int, shifted: bool
    ) -> None:
        super().__init__(embed_dim, heads, head_dim)
        self.side, self.window = side, min(window, side)
        self.filled = -(-side // self.window) * self.window
        self.shift = self.window // 2 if shifted and self.window < side else 0
        entries = 2 * self.window - 1
        self.window_bias = nn.Parameter(torch.zeros(heads, entries, entries))

    def forward(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """(N, side * side, E) -> (N, Q, E): the tokens of `read`, all without it."""
        count, side, more = tokens.shape[0], self.side, self.filled - self.side
        laid = F.pad(tokens.reshape(count, side, side, -1), (0, 0, 0, more, 0, more))
        if self.shift:
            laid = laid.roll((-self.shift, -self.shift), (1, 2))
        windows = self._windows(laid)
        bias = self._bias()
        if self.shift or more:
            mask = self._window_mask(tokens.device)[:, None]  # (windows, 1, T, T)
            bias = (bias + mask).expand(count, *(-1,) * 4).flatten(0, 1)
        mixed = self._laid(self.mixed(windows, None, Seen(bias)))
        if self.shift:
            mixed = mixed.roll((self.shift, self.shift), (1, 2))
        joined = mixed[:, :side, :side].flatten(1, 2)
        return joined if read is None else joined[:, read]

    def _windows(self, laid: Tensor) -> Tensor:
        """(N, H, H, E) -> (N * windows, window * window, E)."""
        many, window = self.filled // self.window, self.window
        cut = laid.reshape(laid.shape[0], many, window, many, window, -1)
        return cut.transpose(2, 3).flatten(3, 4).flatten(0, 2)

    def _laid(self, windows: Tensor) -> Tensor:
        """Invert `_windows`."""
        many, window = self.filled // self.window, self.window
        cut = windows.reshape(-1, many, many, window, window, windows.shape[-1])
        return cut.transpose(2, 3).flatten(3, 4).flatten(1, 2)

    def _bias(self) -> Tensor:
        """Return what a query adds to the logits of keys of its window, (h, T, T)."""
        place = torch.arange(self.window, device=self.window_bias.device)
        distance = place[:, None] - place[None] + self.window - 1  # query, key
        rows, columns = distance[:, None, :, None], distance[None, :, None, :]
        return self.window_bias[:, rows, columns].flatten(3, 4).flatten(1, 2)

    def _window_mask(self, device: torch.device) -> Tensor:
        """Return (windows, T, T): -inf between tokens that are not neighbours in the grid."""
        place = torch.arange(self.filled, device=device)
        empty = place >= self.side
        ends = (place >= self.filled - self.window).long() + (
            place >= self.filled - self.shift
        ).long()
        # Tokens of one number belong together. The roll moves empty tokens with the others.
        part = (ends if self.shift else torch.zeros_like(place)) + 3 * empty.roll(-self.shift)
        number = part[:, None] * 6 + part[None]
        windows = self._windows(number[None, :, :, None]).squeeze(2)
        other = windows[:, :, None] != windows[:, None, :]
        return torch.zeros(other.shape, device=device).masked_fill(other, float("-inf"))
