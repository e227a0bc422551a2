"""Retraining: a recipe, the loop, its checkpoint."""

from .recipe import Recipe
from .loop import LabelledPixels, TrainingResult, retrain
from .state import Epoch

__all__ = ["Epoch", "LabelledPixels", "Recipe", "TrainingResult", "retrain"]
