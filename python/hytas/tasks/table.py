"""All tasks."""

from hytas.data.samples import Samples
from hytas.model_card import ModelCard
from hytas.tasks.classes import Classes
from hytas.tasks.protocol import PredictionTask
from hytas.tasks.values import Values

TASKS: tuple[type[PredictionTask], ...] = (Values, Classes)
"""The first that suits labelled data, or a model, is its task."""


def task_of(data: Samples) -> PredictionTask:
    """Return what is predicted of labelled data."""
    return next(task for kind in TASKS if (task := kind.of_data(data)) is not None)


def task_of_card(card: ModelCard) -> PredictionTask:
    """Return what a model predicts."""
    return next(task for kind in TASKS if (task := kind.of_card(card)) is not None)
