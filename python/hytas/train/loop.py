"""Train one network on training pixels; validation pixels choose the best epoch."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.machine import arithmetic
from hytas.models import Network
from hytas.models.linear import LinearSkip, centre_of
from hytas.train.augment import random_order
from hytas.train.captured import captured_steps
from hytas.train.evaluation import evaluate, gives_numbers
from hytas.train.learner import Learner, OneNetwork
from hytas.train.optimiser import Leaves, cover
from hytas.train.pixels import LabelledPixels
from hytas.train.processes import ALONE, Processes
from hytas.train.rate import usual_rate
from hytas.train.recipe import Recipe
from hytas.train.schedule import Schedule
from hytas.train.state import Epoch, TrainingState, load_checkpoint, save_checkpoint
from hytas.train.step import Course, backward, epoch_seed

WHITENING_PATCHES = 1024
CHECKPOINT_SECONDS = 5.0  # a kill loses at most this much work
LEAST_GAIN = 1e-3  # of the mean probability; a smaller gain does not make an epoch better


class DivergedError(InputError):
    """The loss or the logits are not finite any more; usually the learning rate is too large."""


class Watch(NamedTuple):
    """What follows a training, and keeps it.

    Attributes:
        progress: is called with each new epoch.
        processes: that train the same weights together, with the same other arguments. Each works
            on its part of every batch, and they add their gradients.
        checkpoint: file written after epochs (at most every few seconds) and at the end, and
            resumed from; of several processes, the first one's.
    """

    progress: Callable[[Epoch], None] = lambda _: None
    processes: Processes = ALONE
    checkpoint: Path | None = None


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
            # Without the time, so that a resumed training repeats them exactly.
            "history": [
                {name: value for name, value in asdict(epoch).items() if name != "seconds"}
                for epoch in self.history
            ],
        }


def train(
    trained: nn.Module | Learner,
    training: LabelledPixels,
    validation: LabelledPixels,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    schedule: Schedule | None = None,
    watch: Watch = Watch(),
) -> TrainingResult:
    """Train a network in place, or the weights that many networks share.

    The weights end as the moving average of the best validation epoch. If epochs differ by less
    than `LEAST_GAIN`, the earlier one is the best. Without validation pixels the last is the best.

    The randomness of an epoch depends on (seed, epoch) only. So, on the same machine, a training
    that resumes from its checkpoint gives the same result as one that never stopped.

    Args:
        trained: a network that maps scaled patches (N, P, P, bands) to logits (N, C); or a learner
            of shared weights, which are on `device`.
        schedule: length and learning rates; None is the recipe's.
        watch: what follows the training.

    Raises:
        DivergedError: loss or logits are not finite any more.
        InputError: the checkpoint does not belong to these weights.
        LostProcessError: another of the processes has ended.
    """
    device = torch.device(device)
    if isinstance(trained, Network) and trained.closed_form and trained.fresh:
        return _solve(trained, training, validation, device, watch)
    learner = OneNetwork(trained.to(device)) if isinstance(trained, nn.Module) else trained
    devices = [device] if device.type == "cuda" else []
    # Some faster kernels of a GPU give other results in every run. The caller's random generators,
    # of the CPU and of this device, keep their states.
    with arithmetic("float32", device), torch.random.fork_rng(devices):
        schedule = schedule or recipe.schedule(len(training))
        watched = (each.network for each in learner.watched())
        rate = recipe.learning_rate or usual_rate(watched, recipe.optimiser)
        course = Course(training.kept(), recipe, schedule, rate, seed, device, watch.processes)
        result = _train(learner, course, validation.kept(), watch)
    return result


def _solve(
    network: Network,
    training: LabelledPixels,
    validation: LabelledPixels,
    device: torch.device,
    watch: Watch,
) -> TrainingResult:
    """Fit a network in closed form, which counts as one epoch."""
    started = time.monotonic()
    learner = OneNetwork(network.to(device))
    network.solve(*_seen(network, training, device), training.groups)
    loss, *_ = evaluate(learner.watched(), learner.weights, training, device, ALONE)
    held = evaluate(learner.watched(), learner.weights, validation, device, ALONE)
    assert loss is not None
    seconds = time.monotonic() - started
    state = TrainingState.of(learner.weights, learner.buffers)
    state.history.append(Epoch(1, 1, loss, held[0], held[1], held[2], seconds))
    state.keep_best()
    if watch.checkpoint is not None:
        save_checkpoint(watch.checkpoint, state)
    watch.progress(state.history[-1])
    return TrainingResult(tuple(state.history), 1, False)


def _begin_pretreatment(network: nn.Module, training: LabelledPixels, device: torch.device) -> None:
    """Start the pretreatment of a new network from the training pixels, if it has one."""
    if isinstance(network, Network) and network.fresh and network.pretreatment is not None:
        network.pretreatment.begin(_seen(network, training, device)[0])


def _begin_skip(network: nn.Module, training: LabelledPixels, device: torch.device) -> None:
    """Start the linear skip of a new network from the training pixels, if it has one."""
    if not (isinstance(network, Network) and network.fresh):
        return
    skip = network.linear_skip
    if isinstance(skip, LinearSkip):
        patches, targets = _seen(network, training, device)
        head = getattr(network, network.readout)
        spectra = centre_of(network.pretreated(patches))
        training.task.begin_skip(skip, head, spectra, targets)


def _seen(
    network: Network, training: LabelledPixels, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the patches of all training pixels, as far as a network looks at them, and targets."""
    parts = (training.batch(part, device) for part in training.positions(device))
    patches, targets = zip(*((network.seen(p), t) for p, t in parts), strict=True)
    return torch.cat(patches), torch.cat(targets)


def _train(
    learner: Learner, course: Course, validation: LabelledPixels, watch: Watch
) -> TrainingResult:
    progress, _, checkpoint = watch
    training, recipe, device, epochs = course.training, course.recipe, course.device, course.epochs
    with course.processes.copy_of(checkpoint) as kept:
        network = learner.network if kept is None and isinstance(learner, OneNetwork) else None
        if network is not None:
            _begin_pretreatment(network, training, device)
        if recipe.whitened and kept is None:
            learner.prepare(_some_patches(training, course.seed), course.seed)
        if network is not None:
            _begin_skip(network, training, device)
        state = TrainingState.of(learner.weights, learner.buffers)
        cover(learner, state, learner.watched())
        if kept is not None:
            load_checkpoint(kept, state, learner)
            state.history = [replace(epoch, epochs=epochs) for epoch in state.history]
    captured = captured_steps(learner, state, course, validation)
    patience = recipe.patient_epochs(epochs)
    saved = time.monotonic()
    while (done := len(state.history)) < epochs and done - state.best_epoch < patience:
        started = time.monotonic()
        if captured is None:
            loss = train_epoch(learner, state, course)
            watched = learner.watched(), state.average, validation, device
            figures = evaluate(*watched, course.processes)
        else:
            loss, figures = captured.epoch(), captured.evaluate()
        seconds = time.monotonic() - started
        record = Epoch(done + 1, epochs, loss, figures[0], figures[1], figures[2], seconds)
        if not (math.isfinite(loss) and math.isfinite(record.score)):
            raise _diverged(course, record)
        state.history.append(record)
        if _is_best(state, record):
            state.keep_best()
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            save_checkpoint(checkpoint, state)
            saved = time.monotonic()
        progress(record)
    if checkpoint is not None and course.processes.leads:
        save_checkpoint(checkpoint, state)
    if state.history and not gives_numbers(learner.watched(), state.best, training, device):
        raise _diverged(course, state.history[-1])  # in its last step
    learner.take(state.best)
    if isinstance(learner, OneNetwork) and isinstance(learner.network, Network):
        learner.network.fresh = False
    return TrainingResult(tuple(state.history), state.best_epoch, len(state.history) < epochs)


def _diverged(course: Course, epoch: Epoch) -> DivergedError:
    return DivergedError(
        f"recipe learning_rate {course.rate:g}: the training diverged in epoch "
        f"{epoch.epoch} of {epoch.epochs} (loss {epoch.loss:g}); use a smaller rate, or less "
        "weight_decay, band_noise, illumination or brightness"
    )


def _some_patches(training: LabelledPixels, seed: int) -> Tensor:
    """Return enough training patches (n, P, P, bands) to estimate their covariance."""
    order = np.random.default_rng(seed).permutation(len(training))[:WHITENING_PATCHES]
    return training.batch(np.sort(order), torch.device("cpu"))[0]


def train_epoch(learner: Learner, state: TrainingState, course: Course) -> float:
    """One pass over the training pixels in a random order; the mean loss."""
    training, recipe, epoch = course.training, course.recipe, len(state.history)
    generator = torch.Generator().manual_seed(epoch_seed(course.seed, epoch))
    torch.manual_seed(epoch_seed(course.seed, epoch) + 1)  # drop-path uses the global generator
    order = random_order(len(training), recipe.repeats, generator, training.draws()).numpy()
    steps = recipe.steps_per_epoch(len(training))
    # One transfer at the end: the GPU does not have to wait after every step.
    losses = torch.zeros((), dtype=torch.float64, device=course.device)
    for index, subnets in enumerate(learner.subnets(epoch, steps)):
        share = course.schedule.share(epoch * steps + index, course.epochs * steps)
        chosen = order[index * recipe.batch_size : (index + 1) * recipe.batch_size]
        leaves = Leaves.of(learner, state, subnets)
        patches, _ = training.batch(chosen, course.device)
        targets = training.target_probabilities(chosen, course.device)
        loss = backward(subnets, leaves.values, course, patches, targets, generator)
        course.processes.add([loss, *leaves.gradients()])
        losses += len(chosen) * loss.double()
        leaves.step(recipe, course.rate * share)
    return float(losses) / len(training)


def _is_best(state: TrainingState, record: Epoch) -> bool:
    """Whether the last epoch is the best so far."""
    if not state.best_epoch:
        return True
    return record.score >= state.history[state.best_epoch - 1].score + LEAST_GAIN
