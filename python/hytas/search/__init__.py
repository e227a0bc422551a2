"""The search: ask the engine for candidates, score them with proxies, and keep all of them."""

from hytas.search.driver import (
    TRAINED_ACCURACY,
    TRAINED_STEPS,
    Scorer,
    SearchProgress,
    SearchResult,
    SearchWatch,
    score_parts,
    scored,
    search,
)
from hytas.search.records import (
    Evaluation,
    MethodFold,
    Training,
    pack_classes,
    pack_merits,
    unpack_classes,
    unpack_merits,
)
from hytas.search.store import EvaluationStore
from hytas.search.strategies import StrategySettings

__all__ = [
    "TRAINED_ACCURACY",
    "TRAINED_STEPS",
    "Evaluation",
    "EvaluationStore",
    "MethodFold",
    "Scorer",
    "SearchProgress",
    "SearchResult",
    "SearchWatch",
    "StrategySettings",
    "Training",
    "pack_classes",
    "pack_merits",
    "score_parts",
    "scored",
    "search",
    "unpack_classes",
    "unpack_merits",
]
