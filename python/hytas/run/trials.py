"""Trains finalists of a race side by side: one a core, each with one thread."""

import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from numpy.typing import NDArray
from torch import nn

from hytas.errors import one_line
from hytas.machine import one_thread
from hytas.models import build_network
from hytas.run.context import RunContext
from hytas.search import Evaluation, Training
from hytas.train import DivergedError, LabelledPixels, Recipe, retrain, shifted_accuracy

ENOUGH_PIXELS = 60
"""Validation pixels that a race is to rank on, of all folds together; each fold costs as much."""
MOST_BYTES = 2**30
"""Of patches that are sent to other processes; more are cut as they are needed, by one process."""
IDLE_SECONDS = 30
"""After so long a worker process that has nothing to do ends, also when its parent was killed."""


@dataclass(frozen=True)
class _CutPatches:
    """Patches that were cut before: what `LabelledPixels` reads, in a form that can be sent.

    Attributes:
        pixels: flat indices (N,), ascending.
        patches: theirs (N, P, P, bands).
    """

    pixels: NDArray[np.int64]
    patches: NDArray[np.float32]

    def __call__(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.patches[np.searchsorted(self.pixels, chosen)]


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


def race_folds(context: RunContext) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Training and validation pixels of each fold of a race: several where pixels are few."""
    return context.split.folds(context.scene, ENOUGH_PIXELS)


def run_trials(context: RunContext, trials: Sequence[Trial], steps: int) -> Iterator[Training]:
    """Each trained from the start for `steps` optimiser steps, in the order they end.

    On a CPU as many are trained at once as there are cores (OMP_NUM_THREADS, where it is set), each
    with one thread, so that a training is the same however many run beside it. A GPU trains one
    after another.

    Raises:
        OSError: a process that trained was killed.
    """
    workers = _workers(context, len(trials))
    side_by_side = workers > 1
    grounds = _cut(_grounds(context, steps)) if side_by_side else _grounds(context, steps)
    drop_path = context.config.recipe.drop_path
    jobs = (
        (
            trial,
            build_network(
                trial.finalist.architecture,
                context.shape,
                drop_path=drop_path,
                seed=context.config.seed,
            ),
            grounds[trial.fold],
        )
        for trial in trials
    )
    if side_by_side:
        try:
            with parallel_config("loky", inner_max_num_threads=1, idle_worker_timeout=IDLE_SECONDS):
                yield from Parallel(workers, return_as="generator_unordered")(
                    delayed(train)(*job) for job in jobs
                )
        except BrokenProcessPool:
            raise OSError(
                f"one of {workers} training processes was killed, as where memory runs out: the "
                "same command goes on, and with OMP_NUM_THREADS=1 it trains one after another"
            ) from None
        return
    for job in jobs:
        yield train(*job)


def end_workers(context: RunContext) -> None:
    """End the processes that trained, which otherwise wait for more.

    While they wait, the threads of this process share a core (seen on Linux, with two cores:
    retraining took three times as long), and each holds some 300 MB.
    """
    if _workers(context, 2) > 1:
        get_reusable_executor().shutdown(wait=True)


def _grounds(context: RunContext, steps: int) -> list[_Ground]:
    """One for each fold."""
    recipe = replace(context.config.recipe, steps=steps, epochs=None, most_epochs=None)
    return [
        _Ground(
            context.labelled(training),
            context.labelled(validation),
            recipe,
            context.config.seed,
            context.device,
        )
        for training, validation in race_folds(context)
    ]


def train(trial: Trial, network: nn.Module, ground: _Ground) -> Training:
    """One training; `ground.recipe` says for how many steps.

    One that diverges is one finalist's failure, not the race's.
    """
    started = time.monotonic()
    try:
        return _train(trial, network, ground)
    except DivergedError as error:
        reason = one_line(error)
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


def _workers(context: RunContext, trials: int) -> int:
    """Processes to train in; 1 is this one."""
    pixels = len(context.split.train) + len(context.split.validation)
    patches = 4 * pixels * context.config.patch_size**2 * context.shape.bands  # bytes
    if context.device.type != "cpu" or patches > MOST_BYTES:
        return 1
    # torch counts the cores of the machine, joblib those that a container may use.
    cores: int = cpu_count()
    return min(torch.get_num_threads(), cores, trials)


def _cut(grounds: Sequence[_Ground]) -> list[_Ground]:
    """The same with patches that can be sent; those of all folds are the same pixels'."""
    first = grounds[0]
    pixels = np.union1d(first.training.pixels, first.validation.pixels)
    cut = _CutPatches(pixels, first.training.patches(pixels))
    return [
        replace(
            ground,
            training=replace(ground.training, patches=cut),
            validation=replace(ground.validation, patches=cut),
        )
        for ground in grounds
    ]
