"""Where training stands: what a checkpoint holds."""

from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(frozen=True)
class Epoch:
    """What one epoch brought: mean training loss, validation loss and OA, and seconds spent."""

    epoch: int
    epochs: int
    loss: float
    validation_loss: float | None
    validation_oa: float | None
    seconds: float

    def rank(self) -> tuple[float, float]:
        """Larger is better: validation OA, and among equals the smaller validation loss."""
        if self.validation_oa is None or self.validation_loss is None:
            return (0.0, float(self.epoch))  # without validation pixels the last epoch is best
        return (self.validation_oa, -self.validation_loss)


@dataclass
class TrainingState:
    """All that training goes on from: a checkpoint holds exactly this."""

    network: nn.Module
    average: nn.Module
    best: nn.Module
    optimizer: torch.optim.AdamW
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
