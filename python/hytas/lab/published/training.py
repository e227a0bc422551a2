"""Train and test a published network, without any part of hytas' own recipe."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from hytas.data import Preprocessing
from hytas.lab.published.checkpoint import FitState
from hytas.machine import arithmetic
from hytas.models import InputShape, check_band_group, count_parameters
from hytas.models.layers import probabilities
from hytas.references.task import FitProgress, Predicted, Task

TEST_BATCH = 128
RateShare = Callable[[float], float]
"""Share of the training that is done -> share of the peak learning rate."""
Augment = Callable[[NDArray[np.float32], np.random.Generator], NDArray[np.float32]]
"""Patches (n, P, P, bands) -> patches of the same shape."""


class TrainingPlan(NamedTuple):
    """The plan of a training, besides its optimizer.

    Attributes:
        rest: whether the incomplete batch at the end of an epoch is a step.
        augment: augmentation of the patches of a step.
    """

    steps: int
    batch: int
    schedule: RateShare
    rest: bool = False
    augment: Augment = lambda patches, _: patches


def reference_shape(task: Task, scaling: Preprocessing) -> InputShape:
    """Return the input shape of a task's network."""
    check_band_group(task.band_group, len(scaling.bands))
    return InputShape(len(scaling.bands), task.classes, task.patch_size, task.band_group)


def seeded(task: Task, make: Callable[[], nn.Module]) -> nn.Module:
    """Return a network initialised from the seed; this also seeds the global generator."""
    torch.manual_seed(task.seed)  # dropout uses the global generator
    return make().to(task.device)


def fit(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: Task,
    scaling: Preprocessing,
    plan: TrainingPlan,
    progress: FitProgress,
) -> Predicted:
    """Train with a plan, and predict the test pixels.

    The seed of the task decides the order of the pixels. A training that resumes from the
    checkpoint of its task gives the same result as one that never stopped, on the same machine.
    """
    peaks = [group["lr"] for group in optimizer.param_groups]
    generator = np.random.default_rng(task.seed)
    state = FitState(task.checkpoint, network, optimizer, generator)
    state.resume()
    size = min(plan.batch, len(task.train))
    network.train()
    for step in range(state.step, plan.steps):
        progress("train", step, plan.steps)
        if len(state.order) < (1 if plan.rest else size):
            state.order = generator.permutation(len(task.train))
        chosen, state.order = state.order[:size], state.order[size:]
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * plan.schedule(step / plan.steps)
        read = plan.augment(task.patches(task.train[chosen], scaling), generator)
        patches = torch.from_numpy(read).to(task.device)
        targets = torch.from_numpy(task.targets[chosen]).to(task.device)
        with arithmetic("float32", task.device):
            loss = F.cross_entropy(network(patches), targets)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        state.step = step + 1
        state.keep()
    predicted = _predict(network, task, scaling, progress)
    details = {"parameters": count_parameters(network), "steps": plan.steps}
    return Predicted(predicted.argmax(axis=1).astype(np.int64), predicted, details)


@torch.inference_mode()
def _predict(
    network: nn.Module, task: Task, scaling: Preprocessing, progress: FitProgress
) -> NDArray[np.float64]:
    """Return the class probabilities (m, C) of the test pixels."""
    network.eval()
    parts = []
    for start in range(0, len(task.test), TEST_BATCH):
        progress("test", start, len(task.test))
        patches = task.patches(task.test[start : start + TEST_BATCH], scaling)
        with arithmetic("float32", task.device):
            logits = network(torch.from_numpy(patches).to(task.device))
        parts.append(probabilities(logits.double()).cpu().numpy())
    progress("test", len(task.test), len(task.test))
    return np.concatenate(parts)
