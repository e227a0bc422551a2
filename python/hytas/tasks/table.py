"""All tasks."""

from hytas.data.samples import Samples
from hytas.model_card import ModelCard
from hytas.tasks.classes import Classes
from hytas.tasks.protocol import PredictionTask
from hytas.tasks.values import Values


def task_of(data: Samples) -> PredictionTask:
    """Return what is predicted of labelled data."""
    if data.continuous is not None:
        return Values.of(data.continuous)
    return Classes(data.classes)


def task_of_card(card: ModelCard) -> PredictionTask:
    """Return what a model predicts."""
    return Classes(len(card.class_ids)) if card.targets is None else Values.from_card(card)
