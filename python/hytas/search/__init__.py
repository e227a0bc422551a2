"""The search: ask the engine, score with proxies, keep every evaluation."""

from .driver import SearchProgress, SearchResult, SearchSettings, search
from .store import Evaluation, EvaluationStore

__all__ = [
    "Evaluation",
    "EvaluationStore",
    "SearchProgress",
    "SearchResult",
    "SearchSettings",
    "search",
]
