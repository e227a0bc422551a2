"""Where training stands: what a checkpoint holds."""

from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(frozen=True)
class Epoch:
    """What one epoch brought.

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
        """What the best epoch has most of: the mean probability of the true class.

        It is the accuracy of a classifier that draws its answer. With the few validation pixels of
        this field the accuracy itself jumps by whole pixels, and the cross-entropy is ruled by the
        few that are most wrong.
        """
        if self.validation_probability is None:
            return float(self.epoch)  # without validation pixels the last epoch is best
        return self.validation_probability


@dataclass
class TrainingState:
    """All that training goes on from: a checkpoint holds exactly this."""

    network: nn.Module
    average: nn.Module
    best: nn.Module
    optimizer: torch.optim.AdamW
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
