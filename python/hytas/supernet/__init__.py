"""Supernets: weights that many networks share, trained once."""

from typing import TYPE_CHECKING

from hytas.lazy import lazy

if TYPE_CHECKING:
    from hytas.supernet.inherited import InheritedScore, Judge
    from hytas.supernet.learner import SupernetLearner
    from hytas.supernet.settings import SupernetSettings
    from hytas.supernet.space_quality import EvolutionSettings
    from hytas.supernet.weights import Supernet

__all__ = [
    "EvolutionSettings",
    "InheritedScore",
    "Judge",
    "Supernet",
    "SupernetLearner",
    "SupernetSettings",
]

__getattr__ = lazy(__name__, __file__)
