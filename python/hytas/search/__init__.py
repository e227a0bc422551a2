"""The search: ask the engine, score with proxies, keep every evaluation."""

from hytas.search.driver import SearchProgress, SearchResult, SearchSettings, search
from hytas.search.store import (
    Evaluation,
    EvaluationStore,
    FinalTraining,
    Training,
)

__all__ = [
    "Evaluation",
    "EvaluationStore",
    "FinalTraining",
    "SearchProgress",
    "SearchResult",
    "SearchSettings",
    "Training",
    "search",
]
