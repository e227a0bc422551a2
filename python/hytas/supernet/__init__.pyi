from .inherited import InheritedScore, Judge
from .learner import SupernetLearner
from .settings import SupernetSettings
from .space_quality import EvolutionSettings
from .weights import Supernet

__all__ = [
    "EvolutionSettings",
    "InheritedScore",
    "Judge",
    "Supernet",
    "SupernetLearner",
    "SupernetSettings",
]
