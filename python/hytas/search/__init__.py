"""The search: ask the engine for candidates, score them with proxies, and keep all of them."""

from hytas.search.driver import (
    Scorer,
    SearchProgress,
    SearchResult,
    SearchSettings,
    score_parts,
    search,
)
from hytas.search.store import (
    Evaluation,
    EvaluationStore,
    FinalTraining,
    Training,
    pack_classes,
    unpack_classes,
)

__all__ = [
    "Evaluation",
    "EvaluationStore",
    "FinalTraining",
    "Scorer",
    "SearchProgress",
    "SearchResult",
    "SearchSettings",
    "Training",
    "pack_classes",
    "score_parts",
    "search",
    "unpack_classes",
]
