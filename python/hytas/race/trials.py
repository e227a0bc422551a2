"""The trainings of a rung: each finalist, on each fold, and what it reaches there."""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import nn

from hytas.errors import is_out_of_memory, one_line
from hytas.machine import one_thread
from hytas.race.task import RaceTask
from hytas.race.workers import Workers
from hytas.search import Evaluation, Training
from hytas.train import DivergedError, LabelledPixels, Recipe, augmented_accuracy, train


@dataclass(frozen=True)
class Trial:
    """One training to be done: a finalist, and on which fold."""

    finalist: Evaluation
    fold: int


@dataclass(frozen=True)
class _Fold:
    """What a finalist is trained and judged on, and how."""

    training: LabelledPixels
    validation: LabelledPixels
    recipe: Recipe
    seed: int
    device: torch.device


def run_trials(
    task: RaceTask, trials: Sequence[Trial], steps: int, workers: Workers
) -> Iterator[Training]:
    """Train each finalist from the start for `steps` steps; yield trainings in the order they end.

    A training that diverges or runs out of memory has no figures but a reason: it is one
    finalist's failure, not the race's.

    Raises:
        OSError: a process that trained was killed.
    """
    if not trials:
        return
    labelled = task.labelled.in_memory() if workers.count > 1 else task.labelled
    recipe = replace(task.recipe, steps=steps, epochs=None, most_epochs=None)
    folds = [
        _Fold(labelled.subset(learnt), labelled.subset(other), recipe, task.seed, task.device)
        for learnt, other in task.folds
    ]
    jobs = ((trial, task.build(trial.finalist.architecture), folds[trial.fold]) for trial in trials)
    yield from workers.run(_train_finalist, jobs, len(trials))


def _train_finalist(trial: Trial, network: nn.Module, fold: _Fold) -> Training:
    started, reason = time.monotonic(), ""
    figures: dict[str, float] = {}
    try:
        figures = _figures(network, fold)
    except (DivergedError, MemoryError, RuntimeError) as error:
        reason = one_line(error)
        if not isinstance(error, DivergedError) and not is_out_of_memory(reason):
            raise
    if reason and fold.device.type == "cuda":
        torch.cuda.empty_cache()  # for the next finalist
    return Training(
        trial.finalist.id,
        fold.recipe.steps,
        trial.fold,
        len(fold.validation),
        figures,
        time.monotonic() - started,
        reason,
    )


def _figures(network: nn.Module, fold: _Fold) -> dict[str, float]:
    """Train the network and measure, on validation pixels, all that a ranking may use."""
    with one_thread() if fold.device.type == "cpu" else nullcontext():
        result = train(
            network, fold.training, fold.validation, fold.recipe, seed=fold.seed, device=fold.device
        )
        augmented = augmented_accuracy(
            network.eval(), fold.validation, fold.recipe, seed=fold.seed, device=fold.device
        )
    best = result.history[result.best_epoch - 1]
    assert best.validation_probability is not None
    assert best.validation_oa is not None
    return {
        "accuracy": best.validation_oa,
        "augmented_accuracy": augmented,
        "probability": best.validation_probability,
    }
