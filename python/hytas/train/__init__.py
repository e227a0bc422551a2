"""Retraining: a recipe, the loop, its checkpoint."""

from .loop import LabelledPixels, TrainingResult, retrain
from .recipe import Recipe
from .state import Epoch

__all__ = ["Epoch", "LabelledPixels", "Recipe", "TrainingResult", "retrain"]
