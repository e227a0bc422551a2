"""What networks reach on labelled pixels while they are trained."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hytas.train.learner import Subnet, Weights
from hytas.train.pixels import LabelledPixels
from hytas.train.processes import Processes

Figures = tuple[float, float, float] | tuple[None, None, None]
"""Mean cross-entropy, overall accuracy and mean probability of the true class; None without
pixels."""
SOME = 256


@torch.no_grad()
def evaluate(
    subnets: Sequence[Subnet],
    weights: Weights,
    pixels: LabelledPixels,
    device: torch.device,
    processes: Processes,
) -> Figures:
    """Return mean cross-entropy, overall accuracy and mean probability of the true class, if any.

    Each process looks at its part of the pixels.
    """
    count = len(pixels) * len(subnets)
    if count == 0:
        return None, None, None
    for subnet in subnets:
        subnet.network.eval()
    parts = (part[processes.rows(len(part))] for part in pixels.positions(device))
    sums = torch.zeros(3, dtype=torch.float64, device=device)
    batches = (pixels.batch(part, device) for part in parts if len(part))
    add_batches(sums, subnets, weights, batches)
    processes.add([sums])
    return figures_of(sums, count)


@torch.no_grad()
def add_batches(
    sums: Tensor,
    subnets: Sequence[Subnet],
    weights: Weights,
    batches: Iterable[tuple[Tensor, Tensor]],
) -> None:
    """Add cross-entropies, hits and probabilities of the true class to `sums` (3,), in place.

    Args:
        sums: float64.
        subnets: in evaluation mode.
        weights: of which they use slices.
        batches: scaled patches (n, P, P, bands) and class indices (n,).
    """
    for patches, classes in batches:
        for subnet in subnets:
            logits = subnet(weights, patches)
            losses = F.cross_entropy(logits, classes, reduction="none")
            hits = (logits.argmax(1) == classes).sum()
            sums += torch.stack([losses.sum(), hits.float(), torch.exp(-losses).sum()])


def figures_of(sums: Tensor, count: int) -> Figures:
    """Return the means of sums (3,) over `count` predictions."""
    loss, hits, probability = (sums / count).tolist()
    return loss, hits, probability


@torch.no_grad()
def gives_numbers(
    subnets: Sequence[Subnet], weights: Weights, training: LabelledPixels, device: torch.device
) -> bool:
    """Return whether the logits of some training pixels are finite."""
    some = np.arange(min(len(training), SOME))
    patches = training.batch(some, device)[0]
    return all(bool(torch.isfinite(subnet(weights, patches)).all()) for subnet in subnets)
