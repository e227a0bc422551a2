"""The trainings of a rung: each racer on each fold, and its figures."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.errors import InputError, is_out_of_memory, one_line
from hytas.machine import one_thread_on_cpu
from hytas.race.results import Racer
from hytas.race.rungs import Rung
from hytas.race.task import RaceTask
from hytas.search import Training, pack_classes, pack_flags
from hytas.tensors import read_tensors
from hytas.train import LabelledPixels, Recipe, Schedule, augmented_accuracy, logits_of, train
from hytas.workers import OneByOne, Shared, Workers


@dataclass(frozen=True)
class Trial:
    """One training to do: a racer on a fold."""

    racer: Racer
    fold: int


class RacePixels(NamedTuple):
    """The pixels of a race (`RaceTask`), which are sent to each worker once."""

    labelled: LabelledPixels
    unlabelled: LabelledPixels | None


@dataclass(frozen=True)
class _Fold:
    """Pixels and settings of a racer's training.

    Attributes:
        pixels: labelled pixels of all folds, and unlabelled ones.
        train: train pixels, as flat indices (n,).
        held_out: validation pixels, as flat indices (m,).
        checkpoint: file of the rungs before; None starts from the beginning.
    """

    pixels: Shared[RacePixels]
    train: NDArray[np.int64]
    held_out: NDArray[np.int64]
    recipe: Recipe
    schedule: Schedule
    seed: int
    device: torch.device
    checkpoint: Path | None
    augmented: Recipe


def share_pixels(task: RaceTask, workers: Workers) -> Shared[RacePixels]:
    """Return the pixels of a race, for the arguments of trainings."""
    labelled, unlabelled = task.labelled, task.unlabelled
    if workers.elsewhere:
        labelled = labelled.in_memory()
        unlabelled = None if unlabelled is None else unlabelled.in_memory()
    return workers.share(RacePixels(labelled, unlabelled))


def run_trials(
    task: RaceTask,
    trials: Sequence[Trial],
    rung: Rung,
    workers: Workers,
    pixels: Shared[RacePixels],
) -> Iterator[Training]:
    """Train each racer to the length of a rung; yield trainings in the order of the trials.

    A training that diverges, runs out of memory, or has a recipe that its network does not support
    has a reason in place of figures: one racer fails, and not the race. A training that runs out of
    memory in parallel with others of this machine is repeated alone, after all others.

    Args:
        task: of the race.
        trials: trainings to run.
        rung: gives their length.
        workers: that train.
        pixels: of the race (`share_pixels`).

    Raises:
        OSError: a worker that trained was lost.
    """

    def job(trial: Trial) -> tuple[Trial, nn.Module, int, _Fold]:
        recipe = task.recipes[trial.racer.recipe]
        train_pixels, held_out = task.all_folds[trial.fold]
        schedule = rung_schedule(rung, recipe, len(train_pixels))
        # No early stopping, because another rung may follow.
        fold = _Fold(
            pixels,
            train_pixels,
            held_out,
            replace(recipe, patience=1.0),
            schedule,
            task.seed,
            task.device,
            task.checkpoint(trial.racer.key, trial.fold) if workers.sees_files else None,
            task.augmented,
        )
        return trial, task.build(trial.racer.finalist.architecture, recipe), rung.steps, fold

    alone = []
    for trial, training in zip(
        trials, workers.run(_train_racer, map(job, trials), len(trials)), strict=True
    ):
        if workers.shares_memory and is_out_of_memory(training.reason):
            alone.append(trial)
        else:
            yield training
    yield from OneByOne().run(_train_racer, map(job, alone), len(alone))


def rung_schedule(rung: Rung, recipe: Recipe, pixels: int) -> Schedule:
    """Return the schedule of a rung.

    The learning rate stays at its peak, so the next rung can continue. In the semifinal and
    the last rung it falls, beginning at the end of the rung before.

    Args:
        rung: of `plan_rungs`.
        recipe: of the racer.
        pixels: training pixels.
    """

    def epochs(steps: int) -> int:
        return max(1, -(-steps // recipe.steps_per_epoch(pixels)))

    warmup = recipe.warmup * rung.first
    if rung.before is None:
        return Schedule(epochs(rung.steps), warmup, None)
    steady = epochs(rung.before) * recipe.steps_per_epoch(pixels)
    return Schedule(epochs(rung.steps), warmup, float(steady))


def _train_racer(trial: Trial, network: nn.Module, steps: int, fold: _Fold) -> Training:
    started, reason, predictions, right = time.monotonic(), "", b"", b""
    figures: dict[str, float] = {}
    try:
        with one_thread_on_cpu(fold.device):
            figures, right = _figures(network, fold)
            predictions = _predictions(network, fold)
    except (InputError, MemoryError, RuntimeError) as error:
        reason = one_line(error)
        if not isinstance(error, InputError) and not is_out_of_memory(reason):
            raise
    if fold.device.type == "cuda":
        torch.cuda.empty_cache()  # for other processes on this GPU
    return Training(
        *trial.racer.key,
        steps,
        trial.fold,
        len(fold.held_out),
        figures,
        time.monotonic() - started,
        reason,
        predictions,
        right,
    )


def _figures(network: nn.Module, fold: _Fold) -> tuple[dict[str, float], bytes]:
    """Train the network; return figures for rankings, and packed flags of correct pixels."""
    _remove_useless(fold)
    training, validation = map(fold.pixels.get().labelled.subset, (fold.train, fold.held_out))
    result = train(
        network,
        training,
        validation,
        fold.recipe,
        seed=fold.seed,
        device=fold.device,
        schedule=fold.schedule,
        checkpoint=fold.checkpoint,
        keep=True,
    )
    augmented = augmented_accuracy(
        network.eval(), validation, fold.augmented, seed=fold.seed, device=fold.device
    )
    best = result.history[result.best_epoch - 1]
    assert best.validation_probability is not None
    assert best.validation_oa is not None
    figures = {
        "accuracy": best.validation_oa,
        "augmented_accuracy": augmented,
        "probability": best.validation_probability,
    }
    predicted = logits_of(network, validation, fold.device).argmax(axis=1)
    return figures, pack_flags(predicted == validation.targets)


def _predictions(network: nn.Module, fold: _Fold) -> bytes:
    """Return the packed classes that a trained network predicts for the unlabelled pixels."""
    unlabelled = fold.pixels.get().unlabelled
    if unlabelled is None:
        return b""
    return pack_classes(logits_of(network, unlabelled, fold.device).argmax(axis=1))


def _remove_useless(fold: _Fold) -> None:
    """Remove a checkpoint that is damaged, or of a longer training than this one."""
    path = fold.checkpoint
    if path is None or not path.exists():
        return
    try:
        facts, _ = read_tensors(path)
        useful = len(facts["history"]) <= fold.schedule.epochs
    except (InputError, KeyError, TypeError):
        useful = False
    if not useful:
        path.unlink()
