"""Training-free scores of architectures. Names and options need no torch; `Evaluator` does."""

from typing import TYPE_CHECKING, Any

from .combine import fitness, rank_mean, ranks
from .results import Scores, check_architecture
from .spec import ProxySpec, base_proxies, parse_proxies
from .table import COMBINATIONS, PROXIES, Proxy

if TYPE_CHECKING:
    from .batch import proxy_batch
    from .evaluator import Evaluator

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
]

_LAZY = {"Evaluator": "evaluator", "proxy_batch": "batch"}


def __getattr__(name: str) -> Any:
    """Import what needs torch or the data room when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
