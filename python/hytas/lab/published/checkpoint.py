"""Keep the state of a published network's training in a file, so that a stopped fit goes on."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hytas.errors import InputError, warn_of_slower_work
from hytas.tensors import read_tensors, write_tensors
from hytas.types import Pixels

CHECKPOINT_SECONDS = 20.0  # a kill loses at most this much work


@dataclass(eq=False)
class FitState:
    """What decides the rest of a training.

    Attributes:
        path: file of the state; None keeps nothing.
        generator: draws the order of the pixels, and augments them.
        order: positions of the training pixels that the epoch still has.
        step: steps that are done.
        seconds: that the training took until it was kept.
    """

    path: Path | None
    network: nn.Module
    optimizer: torch.optim.Optimizer
    generator: np.random.Generator
    order: Pixels = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    step: int = 0
    seconds: float = 0.0
    _saved: float = field(default_factory=time.monotonic)

    def resume(self) -> None:
        """Bring everything to where `keep` left it.

        With a file that is damaged, or of another network, the training begins anew, with a
        `SlowerWarning`.
        """
        if self.path is None or not self.path.exists():
            return
        own = self.network.state_dict()
        try:
            facts, tensors = read_tensors(self.path)
            step, seconds, drawn = int(facts["step"]), float(facts["seconds"]), facts["generator"]
            weights = {name: tensors[f"weights.{name}"] for name in own}
        except (InputError, KeyError, TypeError, ValueError):
            warn_of_slower_work(f"{self.path.name} is damaged: this fit begins anew")
            return
        if any(weights[name].shape != value.shape for name, value in own.items()):
            warn_of_slower_work(f"{self.path.name} is of another network: this fit begins anew")
            return
        moments: dict[int, dict[str, Any]] = {}
        for key, tensor in tensors.items():
            part, _, rest = key.partition(".")
            if part == "moments":
                number, name = rest.split(".")
                moments.setdefault(int(number), {})[name] = tensor
        self.network.load_state_dict(weights)
        self.generator.bit_generator.state = drawn
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        torch.set_rng_state(tensors["random"])
        for device in self._gpus:
            torch.cuda.set_rng_state(tensors["random_of_gpu"], device)
        self.order, self.step, self.seconds = tensors["order"].numpy(), step, seconds

    def keep(self) -> None:
        """Write the state to its file, if the last time was long ago."""
        now = time.monotonic()
        if self.path is None or now - self._saved < CHECKPOINT_SECONDS:
            return
        self.seconds, self._saved = self.seconds + now - self._saved, now
        tensors = {f"weights.{name}": one for name, one in self.network.state_dict().items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"moments.{number}.{name}": moment for name, moment in moments.items()}
        tensors |= {"random": torch.get_rng_state(), "order": torch.from_numpy(self.order.copy())}
        for device in self._gpus:
            tensors["random_of_gpu"] = torch.cuda.get_rng_state(device)
        drawn = self.generator.bit_generator.state
        facts = {"step": self.step, "seconds": self.seconds, "generator": drawn}
        write_tensors(self.path, tensors, facts)

    @property
    def _gpus(self) -> list[torch.device]:
        device = next(self.network.parameters()).device
        return [device] if device.type == "cuda" else []
