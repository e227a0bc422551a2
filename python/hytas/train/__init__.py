"""Train networks: the recipe, the loop and its checkpoint."""

from typing import TYPE_CHECKING

from hytas.lazy import lazy

if TYPE_CHECKING:
    from hytas.train.evaluation import augmented_accuracy, logits_of
    from hytas.train.learner import Learner, Subnet, Weights
    from hytas.train.loop import DivergedError, TrainingResult, train
    from hytas.train.pixels import LabelledPixels
    from hytas.train.presets import (
        PRESETS,
        USUAL_IMAGE_PRESETS,
        USUAL_PRESETS,
        distinct,
        read_presets,
        recipes_of,
        usual_settings,
    )
    from hytas.train.processes import ALONE, LostProcessError, Processes, leads, open_processes
    from hytas.train.rate import usual_rate
    from hytas.train.recipe import Recipe
    from hytas.train.schedule import Schedule
    from hytas.train.state import Epoch

__all__ = [
    "ALONE",
    "PRESETS",
    "USUAL_IMAGE_PRESETS",
    "USUAL_PRESETS",
    "DivergedError",
    "Epoch",
    "LabelledPixels",
    "Learner",
    "LostProcessError",
    "Processes",
    "Recipe",
    "Schedule",
    "Subnet",
    "TrainingResult",
    "Weights",
    "augmented_accuracy",
    "distinct",
    "leads",
    "logits_of",
    "open_processes",
    "read_presets",
    "recipes_of",
    "train",
    "usual_rate",
    "usual_settings",
]

__getattr__ = lazy(__name__, __file__)
