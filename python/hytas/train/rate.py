"""The peak learning rate of a network whose recipe names none."""

from collections.abc import Iterable

from torch import nn

from hytas.models import Network

RATE, SGD_RATE = 1e-3, 0.05
WIDE = 128
"""Embedding width from which on every network trains at `RATE`."""
MOST_TIMES = 2.0
"""Narrower networks train at most so many times faster."""


def usual_rate(networks: Iterable[nn.Module], optimiser: str = "adamw") -> float:
    """Return the peak rate of an optimiser at which all of `networks` train well.

    AdamW's rate of narrow networks grows as their width falls, as the best rate of Adam does (Yang
    et al., Tensor Programs V, NeurIPS 2021). Networks with attention keep the rate of wide ones: at
    a higher one they lose accuracy where labels are few. Figures are in notes/decisions.md.
    """
    if optimiser == "sgd":
        return SGD_RATE
    return RATE * min((_times(network) for network in networks), default=1.0)


def _times(network: nn.Module) -> float:
    streams = network.token_streams.values() if isinstance(network, Network) else ()
    if not streams or any(stream.attends for stream in streams):
        return 1.0
    return min(MOST_TIMES, max(1.0, WIDE / max(stream.width for stream in streams)))
