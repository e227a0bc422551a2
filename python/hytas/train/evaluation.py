"""What networks reach on labelled pixels while they are trained."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F

from hytas.train.learner import Subnet, Weights
from hytas.train.pixels import EVALUATION_BATCH, LabelledPixels
from hytas.train.processes import Processes


@torch.no_grad()
def evaluate(
    subnets: Sequence[Subnet],
    weights: Weights,
    pixels: LabelledPixels,
    device: torch.device,
    processes: Processes,
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return mean cross-entropy, overall accuracy and mean probability of the true class, if any.

    Each process looks at its part of the pixels.
    """
    count = len(pixels) * len(subnets)
    if count == 0:
        return None, None, None
    loss = hits = probability = 0.0
    for subnet in subnets:
        subnet.network.eval()
    for part in pixels.positions():
        chosen = part[processes.rows(len(part))]
        if not len(chosen):
            continue
        patches, classes = pixels.batch(chosen, device)
        for subnet in subnets:
            logits = subnet(weights, patches)
            losses = F.cross_entropy(logits, classes, reduction="none")
            loss += float(losses.sum())
            hits += float((logits.argmax(1) == classes).sum())
            probability += float(torch.exp(-losses).sum())
    sums = torch.tensor([loss, hits, probability], dtype=torch.float64, device=device)
    processes.add([sums])
    loss, hits, probability = (sums / count).tolist()
    return loss, hits, probability


@torch.no_grad()
def gives_numbers(
    subnets: Sequence[Subnet], weights: Weights, training: LabelledPixels, device: torch.device
) -> bool:
    """Return whether the logits of some training pixels are finite."""
    some = np.arange(min(len(training), EVALUATION_BATCH))
    patches = training.batch(some, device)[0]
    return all(bool(torch.isfinite(subnet(weights, patches)).all()) for subnet in subnets)
