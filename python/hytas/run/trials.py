"""Trainings of a race: a finalist on a fold, for some steps, and what it reaches there."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import nn

from hytas.errors import is_out_of_memory, one_line
from hytas.machine import one_thread
from hytas.run.context import Pixels, RunContext
from hytas.run.workers import Labelled, side_by_side
from hytas.search import Evaluation, Training
from hytas.train import DivergedError, LabelledPixels, Recipe, retrain, shifted_accuracy

ENOUGH_PIXELS = 60
"""Validation pixels that a race is to rank on, of all folds together; each fold costs as much."""


@dataclass(frozen=True)
class Trial:
    """One training to be done: an architecture, and on which fold."""

    finalist: Evaluation
    fold: int


@dataclass(frozen=True)
class _Ground:
    """What a finalist is trained and judged on."""

    training: LabelledPixels
    validation: LabelledPixels
    recipe: Recipe
    seed: int
    device: torch.device


def race_folds(context: RunContext) -> list[tuple[Pixels, Pixels]]:
    """Training and validation pixels of each fold of a race: several where pixels are few."""
    return context.split.folds(context.scene, ENOUGH_PIXELS)


def run_trials(context: RunContext, trials: Sequence[Trial], steps: int) -> Iterator[Training]:
    """Each trained from the start for `steps` optimiser steps, in the order they end.

    Raises:
        OSError: a process that trained was killed.
    """

    def jobs(labelled: Labelled) -> Iterator[tuple[Trial, nn.Module, _Ground]]:
        grounds = _grounds(context, steps, labelled)
        for trial in trials:
            yield trial, context.network(trial.finalist.architecture), grounds[trial.fold]

    yield from side_by_side(context, train, len(trials), jobs)


def _grounds(context: RunContext, steps: int, labelled: Labelled) -> list[_Ground]:
    """One for each fold."""
    config = context.config
    recipe = replace(config.recipe, steps=steps, epochs=None, most_epochs=None)
    return [
        _Ground(labelled(training), labelled(validation), recipe, config.seed, context.device)
        for training, validation in race_folds(context)
    ]


def train(trial: Trial, network: nn.Module, ground: _Ground) -> Training:
    """One training; `ground.recipe` says for how many steps.

    One that diverges, or has not the memory it needs, is one finalist's failure, not the race's.
    """
    started = time.monotonic()
    try:
        return _train(trial, network, ground)
    except (DivergedError, MemoryError, RuntimeError) as error:
        reason = one_line(error)
        if not isinstance(error, DivergedError) and not is_out_of_memory(reason):
            raise
    if ground.device.type == "cuda":
        torch.cuda.empty_cache()  # for the next one
    return Training(
        trial.finalist.id,
        ground.recipe.steps,
        trial.fold,
        len(ground.validation),
        math.nan,
        math.nan,
        math.nan,
        time.monotonic() - started,
        reason,
    )


def _train(trial: Trial, network: nn.Module, ground: _Ground) -> Training:
    with one_thread() if ground.device.type == "cpu" else nullcontext():
        result = retrain(
            network,
            ground.training,
            ground.validation,
            ground.recipe,
            seed=ground.seed,
            device=ground.device,
        )
        shifted = shifted_accuracy(
            network.eval(),
            ground.validation,
            ground.recipe,
            seed=ground.seed,
            device=ground.device,
        )
    best = result.history[result.best_epoch - 1]
    assert best.validation_probability is not None
    assert best.validation_oa is not None
    return Training(
        trial.finalist.id,
        ground.recipe.steps,
        trial.fold,
        len(ground.validation),
        best.validation_probability,
        best.validation_oa,
        shifted,
        sum(epoch.seconds for epoch in result.history),
    )
