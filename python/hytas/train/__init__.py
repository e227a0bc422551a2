"""Train networks: the recipe, the loop and its checkpoint."""

from hytas.train.augmented import augmented_accuracy
from hytas.train.loop import DivergedError, TrainingResult, train
from hytas.train.pixels import LabelledPixels
from hytas.train.presets import PRESETS, USUAL_PRESETS, preset_names, recipes_of
from hytas.train.recipe import Recipe
from hytas.train.schedule import Schedule
from hytas.train.state import Epoch
from hytas.train.temperature import fit_temperature

__all__ = [
    "PRESETS",
    "USUAL_PRESETS",
    "DivergedError",
    "Epoch",
    "LabelledPixels",
    "Recipe",
    "Schedule",
    "TrainingResult",
    "augmented_accuracy",
    "fit_temperature",
    "preset_names",
    "recipes_of",
    "train",
]
