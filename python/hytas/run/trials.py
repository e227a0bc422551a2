"""Trains finalists of a race side by side: one a core, each with one thread."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray
from torch import nn

from hytas.models import build_network
from hytas.run.context import RunContext
from hytas.search import Evaluation, Training
from hytas.train import LabelledPixels, Recipe, retrain, shifted_accuracy

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
class Ground:
    """What every finalist of a race is trained and judged on."""

    training: LabelledPixels
    validation: LabelledPixels
    recipe: Recipe
    seed: int
    device: torch.device


def train_finalists(
    context: RunContext, chosen: Sequence[Evaluation], steps: int
) -> Iterator[tuple[Evaluation, Training]]:
    """Each finalist trained from the start for `steps` optimiser steps, in the order they end.

    On a CPU as many are trained at once as torch has threads (OMP_NUM_THREADS, or the cores), each
    with one thread, so that a training is the same however many run beside it. A GPU trains one
    after another.
    """
    ground = Ground(
        context.labelled(context.split.train),
        context.labelled(context.split.validation),
        replace(context.config.recipe, steps=steps, epochs=None, most_epochs=None),
        context.config.seed,
        context.device,
    )
    networks = (
        build_network(
            finalist.architecture,
            context.shape,
            drop_path=ground.recipe.drop_path,
            seed=ground.seed,
        )
        for finalist in chosen
    )
    workers = min(torch.get_num_threads(), len(chosen))
    if context.device.type == "cpu" and workers > 1 and _bytes(context) <= MOST_BYTES:
        sent = replace(ground, training=_cut(ground.training), validation=_cut(ground.validation))
        jobs = (delayed(train)(item, net, sent) for item, net in zip(chosen, networks, strict=True))
        with parallel_config("loky", inner_max_num_threads=1, idle_worker_timeout=IDLE_SECONDS):
            yield from Parallel(workers, return_as="generator_unordered")(jobs)
        return
    for finalist, network in zip(chosen, networks, strict=True):
        yield train(finalist, network, ground)


def train(finalist: Evaluation, network: nn.Module, ground: Ground) -> tuple[Evaluation, Training]:
    """One training; `ground.recipe` says for how many steps."""
    with _one_thread(ground.device):
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
    return finalist, Training(
        finalist.id,
        ground.recipe.steps,
        best.validation_probability,
        best.validation_oa,
        shifted,
        sum(epoch.seconds for epoch in result.history),
    )


@contextmanager
def _one_thread(device: torch.device) -> Iterator[None]:
    """On a CPU sums depend on the number of threads, and so would who wins."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if device.type == "cpu" else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _bytes(context: RunContext) -> int:
    pixels = len(context.split.train) + len(context.split.validation)
    return 4 * pixels * context.config.patch_size**2 * context.shape.bands


def _cut(pixels: LabelledPixels) -> LabelledPixels:
    return replace(pixels, patches=_CutPatches(pixels.pixels, pixels.patches(pixels.pixels)))
