from .evaluator import Evaluator, proxy_batch
from .parallel import with_workers
from .spec import ProxySpec, Scores, base_proxies, check_architecture, fitness, parse_proxies
from .table import COMBINATIONS, PROXIES, Proxy, rank_mean

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
