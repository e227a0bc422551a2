"""Supernets: weights that many networks share, trained once."""

from hytas.supernet.inherited import InheritedScore, Judge
from hytas.supernet.learner import SupernetLearner
from hytas.supernet.settings import METHODS, UNIFORM, SupernetSettings
from hytas.supernet.space_error import EvolutionSettings
from hytas.supernet.weights import Supernet

__all__ = [
    "METHODS",
    "UNIFORM",
    "EvolutionSettings",
    "InheritedScore",
    "Judge",
    "Supernet",
    "SupernetLearner",
    "SupernetSettings",
]
