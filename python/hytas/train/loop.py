"""Train one network on training pixels; validation pixels choose the best epoch."""

import copy
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.machine import arithmetic
from hytas.models import whiten_embedding
from hytas.train.alignment import Alignment
from hytas.train.augment import augment, mix
from hytas.train.checkpoint import load_checkpoint, save_checkpoint
from hytas.train.pixels import EVALUATION_BATCH, LabelledPixels
from hytas.train.recipe import Recipe
from hytas.train.state import Epoch, TrainingState

WHITENING_PATCHES = 1024
CHECKPOINT_SECONDS = 5.0  # a kill loses at most this much work
LEAST_GAIN = 1e-3  # of the mean probability; a smaller gain does not make an epoch better


class DivergedError(InputError):
    """The loss or the logits are not finite any more; usually the learning rate is too large."""


@dataclass(frozen=True)
class TrainingResult:
    """The history of all epochs, and the epoch (from 1) whose weights the network now has."""

    history: tuple[Epoch, ...]
    best_epoch: int
    stopped_early: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "best_epoch": self.best_epoch,
            "stopped_early": self.stopped_early,
            "history": [_without_time(epoch) for epoch in self.history],
        }


def train(
    network: nn.Module,
    training: LabelledPixels,
    validation: LabelledPixels,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    checkpoint: Path | None = None,
    progress: Callable[[Epoch], None] = lambda _: None,
) -> TrainingResult:
    """Train `network` in place; it ends with the averaged weights of its best validation epoch.

    If epochs differ by less than `LEAST_GAIN`, the earlier one is the best. Without validation
    pixels the last epoch is the best.

    The randomness of an epoch depends on (seed, epoch) only. So, on the same machine, a training
    that resumes from its checkpoint gives the same result as one that never stopped.

    Args:
        network: maps scaled patches (N, P, P, bands) to logits (N, C).
        checkpoint: file to resume from; it is written after epochs, every few seconds at most.
        progress: called with each new epoch.

    Raises:
        DivergedError: loss or logits are not finite any more.
        InputError: `checkpoint` does not belong to this network.
    """
    device = torch.device(device)
    devices = [device] if device.type == "cuda" else []
    # Some faster kernels of a GPU give other results in every run. The caller's random generators,
    # of the CPU and of this device, keep their states.
    with arithmetic("float32", device), torch.random.fork_rng(devices):
        course = _Course(training, recipe, seed, device)
        return _train(network, course, validation, checkpoint, progress)


@dataclass(frozen=True)
class _Course:
    """The values that are the same in every step of a training."""

    training: LabelledPixels
    recipe: Recipe
    seed: int
    device: torch.device

    @cached_property
    def epochs(self) -> int:
        return self.recipe.epochs_for(len(self.training))

    @cached_property
    def class_weights(self) -> Tensor | None:
        """Return the weights (C,) of the classes in the loss; their mean over the pixels is 1."""
        if not self.recipe.class_weights:
            return None
        training = self.training
        counts = np.bincount(training.targets, minlength=training.classes).astype(np.float64)
        weights = np.where(counts > 0, counts, 1.0) ** -self.recipe.class_weights
        weights *= counts.sum() / (counts * weights).sum()
        return torch.from_numpy(weights.astype(np.float32)).to(self.device)

    @cached_property
    def dark(self) -> Tensor | None:
        dark = self.training.dark
        return None if dark is None else torch.from_numpy(dark).to(self.device)


def _train(
    network: nn.Module,
    course: _Course,
    validation: LabelledPixels,
    checkpoint: Path | None,
    progress: Callable[[Epoch], None],
) -> TrainingResult:
    training, recipe, device, epochs = course.training, course.recipe, course.device, course.epochs
    if recipe.whitened:
        whiten_embedding(network, _some_patches(training, course.seed), course.seed)
    state = _initial_state(network.to(device), recipe)
    if checkpoint is not None and checkpoint.exists():
        load_checkpoint(checkpoint, state)
    patience = max(1, math.ceil(recipe.patience * epochs))
    saved = time.monotonic()
    while (done := len(state.history)) < epochs and done - state.best_epoch < patience:
        started = time.monotonic()
        loss = _train_epoch(state, course)
        watched = _evaluate(state.average, validation, device)
        record = Epoch(
            done + 1, epochs, loss, watched[0], watched[1], watched[2], time.monotonic() - started
        )
        if not (math.isfinite(loss) and math.isfinite(record.merit)):
            raise _diverged(recipe, record)
        state.history.append(record)
        _keep_best(state, record)
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            save_checkpoint(checkpoint, state)
            saved = time.monotonic()
        progress(record)
    if state.history and not _gives_numbers(state.best, training, device):
        raise _diverged(recipe, state.history[-1])  # the last step diverged
    network.load_state_dict(state.best.state_dict())
    return TrainingResult(tuple(state.history), state.best_epoch, len(state.history) < epochs)


def _diverged(recipe: Recipe, epoch: Epoch) -> DivergedError:
    return DivergedError(
        f"recipe learning_rate {recipe.learning_rate:g}: the training diverged in epoch "
        f"{epoch.epoch} of {epoch.epochs} (loss {epoch.loss:g}); use a smaller rate, or less "
        "weight_decay, band_noise, illumination, brightness or alignment"
    )


@torch.no_grad()
def _gives_numbers(network: nn.Module, training: LabelledPixels, device: torch.device) -> bool:
    """Return whether the logits of some training pixels are finite."""
    some = np.arange(min(len(training), EVALUATION_BATCH))
    return bool(torch.isfinite(network(training.batch(some, device)[0])).all())


def _some_patches(training: LabelledPixels, seed: int) -> Tensor:
    """Return enough training patches (n, P, P, bands) to estimate their covariance."""
    order = np.random.default_rng(seed).permutation(len(training))[:WHITENING_PATCHES]
    return training.batch(np.sort(order), torch.device("cpu"))[0]


def _initial_state(network: nn.Module, recipe: Recipe) -> TrainingState:
    matrices = [parameter for parameter in network.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in network.parameters() if parameter.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate)
    average = copy.deepcopy(network).requires_grad_(False).eval()
    return TrainingState(network, average, copy.deepcopy(average), optimizer)


def _train_epoch(state: TrainingState, course: _Course) -> float:
    """Train for one pass over the training pixels in random order; return the mean loss."""
    training, recipe, epoch = course.training, course.recipe, len(state.history)
    generator = torch.Generator().manual_seed(_epoch_seed(course.seed, epoch))
    torch.manual_seed(_epoch_seed(course.seed, epoch) + 1)  # drop-path uses the global generator
    order = torch.randperm(len(training), generator=generator).numpy()
    steps = recipe.steps_per_epoch(len(training))
    # One transfer at the end: the GPU does not have to wait after every step.
    losses = torch.zeros((), dtype=torch.float64, device=course.device)
    state.network.train()
    for index in range(steps):
        step = epoch * steps + index
        for group in state.optimizer.param_groups:
            done = step / (course.epochs * steps)
            group["lr"] = recipe.learning_rate * _schedule(done, recipe.warmup)
        chosen = order[index * recipe.batch_size : (index + 1) * recipe.batch_size]
        losses += len(chosen) * _step(state, course, chosen, generator).double()
        _average(state, recipe.ema_decay, step)
    return float(losses) / len(training)


def _step(
    state: TrainingState, course: _Course, chosen: NDArray[np.int64], generator: torch.Generator
) -> Tensor:
    """Do one optimiser step on the training pixels at positions `chosen`; return the loss."""
    recipe = course.recipe
    patches, classes = course.training.batch(chosen, course.device)
    targets = F.one_hot(classes, course.training.classes).float()
    patches = augment(patches, recipe, generator, course.dark)
    patches, targets = mix(patches, targets, recipe, generator)
    with Alignment(state.network) if recipe.alignment else nullcontext() as aligned:
        logits = state.network(patches)
    loss = F.cross_entropy(
        logits, targets, weight=course.class_weights, label_smoothing=recipe.label_smoothing
    )
    if aligned is not None:
        loss = loss + recipe.alignment * aligned.penalty
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(state.network.parameters(), recipe.clip_norm)
    state.optimizer.step()
    return loss.detach()


def _schedule(done: float, warmup: float) -> float:
    """Return the share of the peak learning rate: linear warm-up, then a cosine down."""
    if done < warmup:
        return max(done, 1e-3) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (done - warmup) / (1.0 - warmup)))


@torch.no_grad()
def _average(state: TrainingState, decay: float, step: int) -> None:
    """Move the averaged weights towards the network, faster in the first steps."""
    weight = 1.0 - min(decay, (1.0 + step) / (10.0 + step))
    pairs = zip(state.average.parameters(), state.network.parameters(), strict=True)
    for average, parameter in pairs:
        average.lerp_(parameter, weight)


@torch.no_grad()
def _evaluate(
    network: nn.Module, pixels: LabelledPixels, device: torch.device
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return mean cross-entropy, overall accuracy and mean probability of the true class."""
    count = len(pixels)
    if count == 0:
        return None, None, None
    loss = hits = probability = 0.0
    for chosen in pixels.positions():
        patches, classes = pixels.batch(chosen, device)
        logits = network(patches)
        losses = F.cross_entropy(logits, classes, reduction="none")
        loss += float(losses.sum())
        hits += float((logits.argmax(1) == classes).sum())
        probability += float(torch.exp(-losses).sum())
    return loss / count, hits / count, probability / count


def _keep_best(state: TrainingState, record: Epoch) -> None:
    if state.best_epoch and record.merit < state.history[state.best_epoch - 1].merit + LEAST_GAIN:
        return
    state.best.load_state_dict(state.average.state_dict())
    state.best_epoch = record.epoch


def _epoch_seed(seed: int, epoch: int) -> int:
    """Return a different generator seed for every (seed, epoch)."""
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint32)[0])


def _without_time(epoch: Epoch) -> dict[str, Any]:
    """Return an epoch's figures that a resumed training repeats exactly."""
    values = asdict(epoch)
    del values["seconds"]
    return values
