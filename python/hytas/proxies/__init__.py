"""Training-free scores of architectures. Names and options need no torch; `Evaluator` does."""

from typing import TYPE_CHECKING

from hytas.lazy import lazy
from hytas.proxies.spec import (
    ProxySpec,
    Scores,
    base_proxies,
    check_architecture,
    fitness,
    parse_proxies,
)
from hytas.proxies.table import COMBINATIONS, PROXIES, Proxy, rank_mean

if TYPE_CHECKING:
    from hytas.proxies.evaluator import Evaluator, proxy_batch
    from hytas.proxies.parallel import with_workers

__all__ = [
    "COMBINATIONS",
    "PROXIES",
    "Evaluator",
    "Proxy",
    "ProxySpec",
    "Scores",
    "base_proxies",
    "check_architecture",
    "fitness",
    "parse_proxies",
    "proxy_batch",
    "rank_mean",
    "with_workers",
]

__getattr__ = lazy(__name__, __file__)
