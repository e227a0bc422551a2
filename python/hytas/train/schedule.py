"""How long a training is, and its learning rate over time."""

import math
from typing import NamedTuple


class Schedule(NamedTuple):
    """Warm-up, a steady rate, and a decay along a cosine (WSD; Hu et al., MiniCPM, 2024).

    Attributes:
        epochs: passes over the training pixels.
        warmup: optimiser steps over which the rate rises to its peak.
        steady: optimiser steps after which it falls, to 0 at the end; None keeps the peak.
    """

    epochs: int
    warmup: float
    steady: float | None

    def share(self, step: int, steps: int) -> float:
        """Return the share of the peak rate in a step, of `steps` in all."""
        if step < self.warmup:
            return min(max(step, 1) / self.warmup, 1.0)
        if self.steady is None or step < self.steady:
            return 1.0
        return 0.5 * (1.0 + math.cos(math.pi * (step - self.steady) / (steps - self.steady)))
