"""Training: a recipe, the loop, its checkpoint."""

from hytas.train.augmented import augmented_accuracy
from hytas.train.learner import Learner, Subnet, Weights
from hytas.train.loop import DivergedError, TrainingResult, train, train_weights
from hytas.train.pixels import LabelledPixels
from hytas.train.recipe import Recipe
from hytas.train.state import Epoch
from hytas.train.temperature import fit_temperature

__all__ = [
    "DivergedError",
    "Epoch",
    "LabelledPixels",
    "Learner",
    "Recipe",
    "Subnet",
    "TrainingResult",
    "Weights",
    "augmented_accuracy",
    "fit_temperature",
    "train",
    "train_weights",
]
