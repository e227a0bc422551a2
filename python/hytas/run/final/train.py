"""Final trainings: one kind of task for folds, the winner and further seeds."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hytas.errors import InputError
from hytas.machine import one_thread_on_cpu
from hytas.models import build_network
from hytas.models.linear import MeanNetwork
from hytas.results import NETWORK
from hytas.run.final.held_out import HeldOut
from hytas.run.final.members import with_members
from hytas.run.prepared import PreparedData
from hytas.spaces.names import FITS, MEAN_WITH, linear_architecture
from hytas.tensors import read_facts, read_tensors
from hytas.train import Epoch, LabelledPixels, Recipe, TrainingResult, logits_of, train
from hytas.types import Logits, Pixels

MOST_PIXELS = 5000
"""Held-out pixels of a record that fit a temperature; one number needs no more."""
Progress = Callable[[Epoch], None]


@dataclass(frozen=True, eq=False)
class FinalTask:
    """A training of an architecture by the recipe of a run.

    Its checkpoint is kept when it ends, so a task that is fitted twice is trained once.

    Attributes:
        network: as training begins with it.
        labelled: all labelled pixels of the run.
        trained: flat indices of the pixels that it trains on.
        watched: of those that choose its best epoch; may be empty.
        recipe: how it trains.
        seed: of its randomness.
        device: where it trains.
        checkpoint: where the training stands, and its result.
        one_thread: whether it uses one CPU thread, so that its result is the same on any worker.
        deadline: when it ends at the latest, by `time.time()`.
        held_out: flat indices of the pixels whose logits are recorded; None records none.
        self_trains: whether self-training follows.
    """

    network: nn.Module
    labelled: LabelledPixels
    trained: Pixels
    watched: Pixels
    recipe: Recipe
    seed: int
    device: torch.device
    checkpoint: Path
    one_thread: bool
    deadline: float = math.inf
    held_out: Pixels | None = None
    self_trains: bool = False

    def threads(self) -> AbstractContextManager[None]:
        """Return what limits the training to its threads."""
        return one_thread_on_cpu(self.device) if self.one_thread else nullcontext()

    def round_checkpoint(self, number: int) -> Path:
        """Return the checkpoint of a round of self-training that follows."""
        return self.checkpoint.with_stem(f"{self.checkpoint.stem}-self-training-{number}")

    def is_followed(self, number: int = -1) -> bool:
        """Return whether the next round of self-training has begun after a training.

        The round began with its weights. So the training stays as long as it is, also if the run
        goes on with more minutes.

        Args:
            number: of the round that may be followed; -1 is the first training.
        """
        own = self.checkpoint if number < 0 else self.round_checkpoint(number)
        return self.self_trains and own.exists() and self.round_checkpoint(number + 1).exists()

    def forget_damaged(self, line: Callable[[str], None], number: int = -1) -> None:
        """Remove the checkpoint of a training if it is damaged, and the round after one without."""
        own = self.checkpoint if number < 0 else self.round_checkpoint(number)
        forget_damaged(own, line)
        if not own.exists():
            self.round_checkpoint(number + 1).unlink(missing_ok=True)

    def forget_checkpoints(self) -> None:
        """Remove its checkpoints; the first training's goes last, as it fixes the recipe."""
        rounds = self.round_checkpoint(0).name.replace("-0.", "-*.")
        for path in (*self.checkpoint.parent.glob(rounds), self.checkpoint):
            path.unlink(missing_ok=True)

    def epochs(self) -> tuple[int, int]:
        """Return how many epochs the training is through, and how many it has at most.

        A training that ended early, or that self-training follows, is through all of them.
        """
        epochs = self.recipe.schedule(len(self.trained)).epochs
        try:
            facts = read_facts(self.checkpoint)
            done, best = len(facts["history"]), int(facts["best_epoch"])
        except (OSError, InputError, KeyError, TypeError, ValueError):
            return 0, epochs
        ended = done - best >= self.recipe.patient_epochs(epochs) or self.is_followed()
        return (epochs if ended else done), epochs


def fit(
    task: FinalTask,
    progress: Progress = lambda _: None,
    line: Callable[[str], None] = lambda _: None,
) -> TrainingResult:
    """Train the task's network in place, or read what an earlier training of it left.

    Args:
        progress: called with each epoch.
        line: receives a line for the log where a training does not go on.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    followed = task.is_followed()
    with task.threads():
        result = train(
            task.network,
            task.labelled.subset(task.trained),
            task.labelled.subset(task.watched),
            task.recipe,
            seed=task.seed,
            device=task.device,
            checkpoint=task.checkpoint,
            keep=True,
            progress=progress,
            deadline=0.0 if followed else task.deadline,
        )
    done, epochs = len(result.history), task.recipe.epochs_for(len(task.trained))
    if followed and min(epochs, result.best_epoch + task.recipe.patient_epochs(epochs)) > done:
        line(f"the training stays at {done} of {epochs} epochs: its self-training has begun")
    return result


def forget_damaged(checkpoint: Path, line: Callable[[str], None]) -> None:
    """Remove a checkpoint if it is damaged, and say so; its training then begins again."""
    if not checkpoint.exists():
        return
    try:
        read_tensors(checkpoint)
    except InputError as error:
        line(f"{error}: the training begins again")
        checkpoint.unlink()


def hold_out(
    network: nn.Module,
    data: PreparedData,
    trained: Pixels,
    held_out: Pixels,
    unlabelled: Pixels,
    device: torch.device,
) -> HeldOut:
    """Return the record of a network that was trained on some pixels and not on others."""
    pixels = _some(held_out)
    compared, neighbours = data.with_neighbours(held_out)
    logits = observe(network, data, (pixels, neighbours, unlabelled), device)
    return HeldOut(
        trained,
        pixels,
        data.targets(pixels),
        compared,
        data.targets(compared),
        neighbours,
        logits[0],
        logits[1],
        unlabelled=unlabelled,
        unlabelled_logits=logits[2],
        linear=_linear_logits(data, trained, np.concatenate([pixels, neighbours, unlabelled])),
    )


def averaged(
    network: nn.Module,
    architecture: Mapping[str, Any],
    members: Sequence[str],
    data: PreparedData,
    trained: Pixels,
) -> tuple[nn.Module, dict[str, Any]]:
    """Return the mean of a trained network and linear ones, and its architecture.

    Args:
        members: of the mean (`with_members`).
        trained: labelled pixels that the linear networks are fitted to.
    """
    if tuple(members) == (NETWORK,):
        return network, dict(architecture)
    mean = with_members(architecture, members)
    if NETWORK not in members:
        network = fit_linear(data, trained, mean["fit"])
    if fits := mean.get(MEAN_WITH):
        network = MeanNetwork(network, data.shape.bands, data.shape.classes, fits)
        for fit in fits:
            network.linear[fit] = fit_linear(data, trained, fit)
    return network, mean


def fit_linear(data: PreparedData, trained: Pixels, fit: str) -> nn.Module:
    """Return a linear network of the data, fitted to labelled pixels."""
    network = build_network(linear_architecture(fit), data.shape)
    train(network, data.labelled(trained), data.unlabelled(trained[:0]), Recipe(), seed=0)
    return network


def _linear_logits(data: PreparedData, trained: Pixels, pixels: Pixels) -> Logits:
    """Return the logits (L, n, C) of each linear network for pixels (n,); none for images."""
    fits, read = (FITS if data.has_spectra else ()), data.unlabelled(pixels)
    networks = (fit_linear(data, trained, fit) for fit in fits)
    logits = [logits_of(network, read, torch.device("cpu")) for network in networks]
    return np.stack(logits) if logits else np.zeros((0, 0, 1), np.float32)


def observe(
    network: nn.Module,
    data: PreparedData,
    groups: Sequence[Pixels],
    device: torch.device,
) -> list[Logits]:
    """Return the logits of a network for each group of pixels."""
    return [logits_of(network, data.unlabelled(each), device) for each in groups]


def _some(pixels: Pixels) -> Pixels:
    """Return at most `MOST_PIXELS` of the pixels, evenly spread."""
    if len(pixels) <= MOST_PIXELS:
        return pixels
    return pixels[np.linspace(0, len(pixels) - 1, MOST_PIXELS).astype(np.int64)]
