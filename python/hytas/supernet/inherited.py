"""The score of a subnet with inherited weights, on validation pixels."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hytas.errors import InputError
from hytas.machine import arithmetic
from hytas.models.layers import probabilities
from hytas.supernet.weights import Supernet
from hytas.train import LabelledPixels

MOST_PIXELS = 600
"""Validation pixels that a score looks at. The score differs from that of all pixels by .04 at
most, in 95 cases of 100: two standard errors of a mean of values in 0..1."""


class Judge:
    """Figures of networks on some labelled pixels.

    Args:
        labelled: pixels, at least one.
        seed: of the choice among more than `MOST_PIXELS`.
    """

    def __init__(self, labelled: LabelledPixels, device: torch.device, seed: int) -> None:
        chosen = np.arange(len(labelled))
        if len(chosen) > MOST_PIXELS:
            chosen = np.sort(np.random.default_rng(seed).permutation(chosen)[:MOST_PIXELS])
        part = labelled.subset(labelled.pixels[chosen])
        self.device = device
        self._batches = [part.batch(each, device) for each in part.positions(device)]

    @torch.no_grad()
    def figures(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        """Return "probability", the mean one of the true class, and "accuracy".

        Args:
            network: scaled patches (N, P, P, bands) -> logits (N, C), in evaluation mode.
        """
        given: list[Tensor] = []
        right: list[Tensor] = []
        with arithmetic("float32", self.device):
            for patches, classes in self._batches:
                logits = network(patches)
                given.append(probabilities(logits).gather(1, classes[:, None]))
                right.append(logits.argmax(1) == classes)
        return {
            "probability": float(torch.cat(given).double().mean()),
            "accuracy": float(torch.cat(right).double().mean()),
        }


class InheritedScore:
    """Scores architectures by the weights that a trained supernet gives them.

    AutoFormer and S3 evaluate subnets so in their evolution (Algorithm 2), by accuracy. The mean
    probability of the true class does not jump by whole pixels.

    Args:
        supernet: trained, on none of these pixels.
        validation: pixels to score on, at least one.
        seed: of the choice among more than `MOST_PIXELS`.

    Raises:
        InputError: there is no validation pixel.
    """

    def __init__(self, supernet: Supernet, validation: LabelledPixels, seed: int = 0) -> None:
        if not len(validation):
            raise InputError(
                "proxy", "inherited", "looks at validation pixels, and the split has none"
            )
        self.supernet = supernet
        self._judge = Judge(validation, supernet.device, seed)

    def __call__(self, architecture: Mapping[str, Any]) -> float:
        """Return the mean probability of the true class, in 0..1."""
        return self.figures(architecture)["probability"]

    def figures(self, architecture: Mapping[str, Any]) -> dict[str, float]:
        """Return "probability" and "accuracy" on the pixels."""
        subnet = self.supernet.subnet(architecture)
        subnet.network.eval()
        values = self.supernet.values(subnet)
        return self._judge.figures(lambda patches: subnet(values, patches))
