"""The search: ask the engine, score with proxies, keep every evaluation."""

from hytas.search.driver import SearchProgress, SearchResult, SearchSettings, search
from hytas.search.store import (
    Evaluation,
    EvaluationStore,
    Retraining,
    Training,
)

__all__ = [
    "Evaluation",
    "EvaluationStore",
    "Retraining",
    "SearchProgress",
    "SearchResult",
    "SearchSettings",
    "Training",
    "search",
]
