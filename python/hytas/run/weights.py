"""Trained weights, their card and training history, in one safetensors file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hytas.data import Preprocessing
from hytas.errors import InputError, one_line
from hytas.model_card import ModelCard
from hytas.models import SensorModel, build_network
from hytas.models.table import input_shape
from hytas.tasks import task_of_card
from hytas.tensors import read_tensors, write_tensors

TRAINING = "hytas.training"
DECISIONS = ("calibration", "smoothing", "self_training", "class_prior", "mean")
CALIBRATION, SMOOTHING, SELF_TRAINING, CLASS_PRIOR, MEAN = DECISIONS
"""Entries of a training with the facts of its calibration, of the choice of smoothing, of
self-training, of the class prior and of the networks that are averaged."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained network, its card, and the history of its training."""

    network: nn.Module
    card: ModelCard
    training: Mapping[str, Any]

    def sensor_model(self) -> SensorModel:
        """Return the model that is exported, on the CPU, in evaluation mode."""
        preprocessing = Preprocessing.from_dict(self.card.preprocessing)
        read_out = task_of_card(self.card).read_out()
        model = SensorModel(self.network.cpu(), preprocessing, self.card.temperature, read_out)
        return model.eval()


def save_weights(path: Path, model: TrainedModel) -> None:
    """Write weights, card and training history, completely or not at all."""
    facts = {**model.card.to_properties(), TRAINING: model.training}
    write_tensors(path, model.network.state_dict(), facts)


def load_weights(path: Path) -> TrainedModel:
    """Rebuild the network of a file that `save_weights` wrote."""
    try:
        facts, tensors = read_tensors(path)
    except FileNotFoundError:
        hint = "`hytas train` writes it"
        raise InputError(path, rule="no such file", hint=hint) from None
    card = ModelCard.from_properties(facts, source=str(path))
    try:
        shape = input_shape(card)
        with torch.device("meta"):  # compares names and shapes before memory is taken
            build_network(card.architecture, shape).load_state_dict(tensors, assign=True)
        network = build_network(card.architecture, shape)
        network.load_state_dict(tensors)
        training = facts[TRAINING]
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            path, rule=f"its weights are not those of its architecture ({one_line(error)})"
        ) from None
    return TrainedModel(network, card, training)
