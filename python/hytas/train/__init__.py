"""Retraining: a recipe, the loop, its checkpoint."""

from hytas.train.loop import DivergedError, LabelledPixels, TrainingResult, retrain
from hytas.train.recipe import Recipe
from hytas.train.shift import shifted_accuracy
from hytas.train.state import Epoch

__all__ = [
    "DivergedError",
    "Epoch",
    "LabelledPixels",
    "Recipe",
    "TrainingResult",
    "retrain",
    "shifted_accuracy",
]
