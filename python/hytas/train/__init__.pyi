from .evaluation import logits_of
from .learner import Learner, Subnet, Weights
from .loop import DivergedError, TrainingResult, Watch, train
from .pixels import LabelledPixels
from .presets import (
    PRESETS,
    USUAL_IMAGE_PRESETS,
    USUAL_PRESETS,
    distinct,
    read_presets,
    recipes_of,
    usual_settings,
)
from .processes import ALONE, LostProcessError, Processes, leads, open_processes
from .rate import usual_rate
from .recipe import Recipe
from .schedule import Schedule
from .state import Epoch

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
    "Watch",
    "Weights",
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
