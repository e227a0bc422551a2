"""The state of a training, which a checkpoint holds."""

from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from hytas.train.learner import Weights


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
