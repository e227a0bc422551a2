"""The search: ask the engine, score with proxies, keep every evaluation."""

from hytas.search.driver import SearchProgress, SearchResult, SearchSettings, search
from hytas.search.store import (
    Evaluation,
    EvaluationStore,
    Retraining,
    RoundResult,
    Training,
    round_results,
)

__all__ = [
    "Evaluation",
    "EvaluationStore",
    "Retraining",
    "RoundResult",
    "SearchProgress",
    "SearchResult",
    "SearchSettings",
    "Training",
    "round_results",
    "search",
]
