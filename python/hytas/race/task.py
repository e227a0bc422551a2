"""What a race needs to train a finalist."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.train import LabelledPixels, Recipe

Pixels = NDArray[np.int64]

ENOUGH_PIXELS = 60
"""Validation pixels, of all folds together, on which a race can rank. Each fold costs as much."""


@dataclass(frozen=True, eq=False)
class RaceTask:
    """How finalists are built, and on which pixels and by which recipe they train.

    Attributes:
        build: architecture -> its untrained network.
        labelled: all pixels that the race may read, in ascending order.
        folds: flat indices of training and of validation pixels, for each fold; at least one.
        recipe: of the final training. A rung trains by it, but for its own number of steps.
        seed: of every training.
        device: where to train.
    """

    build: Callable[[Mapping[str, Any]], nn.Module]
    labelled: LabelledPixels
    folds: Sequence[tuple[Pixels, Pixels]]
    recipe: Recipe
    seed: int
    device: torch.device

    @property
    def final_steps(self) -> int:
        """Optimiser steps of a whole training on the first fold; 0 where the recipe has none."""
        pixels = len(self.folds[0][0])
        return self.recipe.epochs_for(pixels) * self.recipe.steps_per_epoch(pixels)
