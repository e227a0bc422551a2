"""Logits of networks for labelled pixels, and what they reach on these while they are trained."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.machine import arithmetic
from hytas.tasks import PredictionTask
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
    add_batches(sums, subnets, weights, batches, pixels.task)
    processes.add([sums])
    return figures_of(sums, count)


@torch.no_grad()
def add_batches(
    sums: Tensor,
    subnets: Sequence[Subnet],
    weights: Weights,
    batches: Iterable[tuple[Tensor, Tensor]],
    task: PredictionTask,
) -> None:
    """Add the sums (3,) of a task to `sums`, in place.

    Args:
        sums: float64.
        subnets: in evaluation mode.
        weights: of which they use slices.
        batches: scaled patches (n, P, P, bands) and targets.
    """
    for patches, targets in batches:
        for subnet in subnets:
            sums += task.sums(subnet(weights, patches), targets)


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


@torch.no_grad()
def logits_of(
    network: nn.Module, pixels: LabelledPixels, device: torch.device
) -> NDArray[np.float32]:
    """Return the logits (n, C) of a network in evaluation mode, for pixels (n,)."""
    network = network.to(device).eval()
    parts = [np.empty((0, pixels.classes), np.float32)]
    with arithmetic("float32", device):
        for chosen in pixels.positions(device) if len(pixels) else []:
            parts.append(network(pixels.batch(chosen, device)[0]).float().cpu().numpy())
    return np.concatenate(parts)


def accuracy_and_probability(
    network: nn.Module, pixels: LabelledPixels, device: torch.device
) -> tuple[float, float]:
    """Return the overall accuracy and the mean probability of the true class on pixels (n,)."""
    logits, targets = torch.from_numpy(logits_of(network, pixels, device)), pixels.targets
    chances = logits.softmax(1).numpy()[np.arange(len(targets)), targets]
    return float((logits.argmax(1).numpy() == targets).mean()), float(chances.mean())
