"""The state of a training, which a checkpoint holds."""

from dataclasses import dataclass, field

import torch
from torch import nn


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
    def merit(self) -> float:
        """Return the mean probability of the true class; the best epoch has the largest.

        It is the expected accuracy of a classifier that draws its answer. Validation pixels are few
        in this field: the accuracy jumps by whole pixels, and a few very wrong pixels dominate the
        cross-entropy.
        """
        if self.validation_probability is None:
            return float(self.epoch)  # without validation pixels the last epoch is best
        return self.validation_probability


@dataclass
class TrainingState:
    """All that a training needs to resume; a checkpoint holds exactly this."""

    network: nn.Module
    average: nn.Module
    best: nn.Module
    optimizer: torch.optim.AdamW
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
