"""The state of a training, which one safetensors file holds: it is complete or absent."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from hytas.errors import InputError, one_line
from hytas.tensors import read_tensors, write_tensors
from hytas.train.learner import Learner, Weights

PARTS = ("weights", "average", "best", "buffers")
MOMENTS = ("mean", "square", "steps")


@dataclass(frozen=True)
class Epoch:
    """The figures of one epoch.

    Attributes:
        epoch: from 1.
        epochs: of the whole training.
        loss: mean training loss.
        validation_loss: mean cross-entropy; None without validation pixels, like the next two.
        validation_oa: overall accuracy.
        validation_probability: mean probability given to the true class.
        seconds: spent.
    """

    epoch: int
    epochs: int
    loss: float
    validation_loss: float | None
    validation_oa: float | None
    validation_probability: float | None
    seconds: float

    @property
    def score(self) -> float:
        """Return the mean probability of the true class; the best epoch has the largest.

        It is the expected accuracy of a classifier that draws its answer. Validation pixels are few
        in this field: the accuracy jumps by whole pixels, and a few very wrong pixels dominate the
        cross-entropy.
        """
        if self.validation_probability is None:
            return float(self.epoch)  # without validation pixels the last epoch is best
        return self.validation_probability


@dataclass(eq=False)
class Moments:
    """AdamW's moments of one parameter, and how many steps changed it."""

    mean: Tensor
    square: Tensor
    steps: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> Self:
        """Return the moments of a parameter before the first step."""
        zeros = torch.zeros_like(weight, requires_grad=False)
        return cls(zeros, zeros.clone(), torch.zeros(()))


@dataclass(eq=False)
class TrainingState:
    """All that training goes on from: a checkpoint holds exactly this.

    Attributes:
        weights: name -> parameter, as the last step left it.
        average: name -> its moving average.
        best: name -> the average, and the buffer, of the best epoch.
        moments: name -> moments of the optimiser.
        buffers: name -> buffer, as the last step left it.
        best_epoch: from 1; 0 before the first.
    """

    weights: Weights
    average: Weights
    best: Weights
    moments: dict[str, Moments]
    buffers: Weights
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0

    @classmethod
    def of(cls, weights: Weights, buffers: Weights) -> Self:
        """Return the state before the first step."""
        average = {name: weight.detach().clone() for name, weight in weights.items()}
        moments = {name: Moments.of(weight) for name, weight in weights.items()}
        return cls(weights, average, average | buffers, moments, buffers)

    def keep_best(self) -> None:
        """Make the average of this epoch, with its buffers, the best one."""
        self.best = {name: one.clone() for name, one in (self.average | self.buffers).items()}
        self.best_epoch = len(self.history)


def save_checkpoint(path: Path, state: TrainingState) -> None:
    """Write weights, averages, buffers, optimiser moments and history of `state` to `path`."""
    tensors = {
        f"{part}.{name}": tensor for part in PARTS for name, tensor in getattr(state, part).items()
    }
    for name, moments in state.moments.items():
        for part in MOMENTS:
            tensors[f"{part}.{name}"] = getattr(moments, part)
    facts = {"history": [asdict(epoch) for epoch in state.history], "best_epoch": state.best_epoch}
    write_tensors(path, tensors, facts)


def load_checkpoint(path: Path, state: TrainingState, learner: Learner) -> None:
    """Bring `state` and the weights of its learner to where `save_checkpoint` left them."""
    facts, tensors = read_tensors(path)
    parts: dict[str, dict[str, torch.Tensor]] = {part: {} for part in (*PARTS, *MOMENTS)}
    try:
        for key, tensor in tensors.items():
            part, name = key.split(".", 1)
            own = state.weights.get(name)
            parts[part][name] = tensor if own is None or part == "steps" else tensor.to(own.device)
        learner.take(parts["weights"] | parts["buffers"])
        history, best_epoch = [Epoch(**epoch) for epoch in facts["history"]], facts["best_epoch"]
        moments = {name: Moments(*(parts[m][name] for m in MOMENTS)) for name in learner.weights}
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise InputError(
            path, rule=f"not a checkpoint of this network ({one_line(error)})"
        ) from None
    state.weights, state.moments = learner.weights, moments
    state.average, state.best = parts["average"], parts["best"]
    state.history, state.best_epoch = history, best_epoch
