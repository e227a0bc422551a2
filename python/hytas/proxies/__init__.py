"""Training-free scores of architectures. Names and options need no torch; `Evaluator` does."""

from typing import TYPE_CHECKING, Any

from hytas.proxies.spec import (
    ProxySpec,
    Scores,
    base_proxies,
    check_architecture,
    fitness,
    parse_proxies,
)
from hytas.proxies.table import COMBINATIONS, PROXIES, Proxy, rank_mean, ranks

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
    "ranks",
    "with_workers",
]

_LAZY = {"Evaluator": "evaluator", "proxy_batch": "evaluator", "with_workers": "parallel"}


def __getattr__(name: str) -> Any:
    """Import names that need torch on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
