"""Train networks: the recipe, the loop and its checkpoint."""

from hytas.train.augmented import augmented_accuracy
from hytas.train.loop import DivergedError, TrainingResult, train
from hytas.train.pixels import LabelledPixels
from hytas.train.recipe import Recipe
from hytas.train.state import Epoch
from hytas.train.temperature import fit_temperature

__all__ = [
    "DivergedError",
    "Epoch",
    "LabelledPixels",
    "Recipe",
    "TrainingResult",
    "augmented_accuracy",
    "fit_temperature",
    "train",
]
