"""Train and test a published network, without any part of hytas' own recipe."""

import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from hytas.data import Preprocessing
from hytas.files import atomic_write
from hytas.machine import arithmetic
from hytas.models import InputShape, check_band_group, count_parameters
from hytas.models.layers import probabilities
from hytas.references.task import FitProgress, Predicted, Task
from hytas.types import Pixels

TEST_BATCH = 128
CHECKPOINT_SECONDS = 20.0  # a kill loses at most this much work
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
    size = min(plan.batch, len(task.train))
    network.train()
    first, order = 0, np.empty(0, np.int64)
    if task.checkpoint is not None:
        first, order = _resume(task.checkpoint, network, optimizer, generator)
    kept = time.monotonic()
    for step in range(first, plan.steps):
        progress("train", step, plan.steps)
        if task.checkpoint is not None and time.monotonic() - kept > CHECKPOINT_SECONDS:
            _keep(task.checkpoint, network, optimizer, generator, (step, order))
            kept = time.monotonic()
        if len(order) < (1 if plan.rest else size):
            order = generator.permutation(len(task.train))
        chosen, order = order[:size], order[size:]
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
    predicted = _predict(network, task, scaling, progress)
    details = {"parameters": count_parameters(network), "steps": plan.steps}
    return Predicted(predicted.argmax(axis=1).astype(np.int64), predicted, details)


def _keep(
    path: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: np.random.Generator,
    place: tuple[int, Pixels],
) -> None:
    """Write all that decides the rest of a training; `place` is its step, and the pixels left."""
    state = {
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": json.dumps(generator.bit_generator.state),
        "random": torch.get_rng_state(),
        "random_of_gpu": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "step": place[0],
        "order": torch.from_numpy(place[1].copy()),
    }
    with atomic_write(path) as temporary:
        torch.save(state, temporary)


def _resume(
    path: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: np.random.Generator,
) -> tuple[int, Pixels]:
    """Bring a training to where `_keep` left it; return its step, and the pixels left.

    Without a file, or with a damaged one, it begins.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(state["network"])
    except (OSError, EOFError, KeyError, RuntimeError, ValueError, pickle.UnpicklingError):
        return 0, np.empty(0, np.int64)
    optimizer.load_state_dict(state["optimizer"])
    generator.bit_generator.state = json.loads(state["generator"])
    torch.set_rng_state(state["random"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["random_of_gpu"])
    return int(state["step"]), state["order"].numpy()


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
