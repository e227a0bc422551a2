"""Published networks, trained as published, without any part of hytas' own recipe."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from hytas.data import Preprocessing
from hytas.lab.published.gscvit import GSCViT
from hytas.lab.published.s2mamba import S2Mamba
from hytas.lab.published.spectralformer import SpectralFormer
from hytas.lab.published.training import TrainingPlan, fit, reference_shape, seeded
from hytas.models import build_network
from hytas.references.task import FitProgress, Predicted, Task

HYTAS = {"space": "hytas", "depth": 7, "embed_dim": 112, "num_heads": [4] * 7, "mlp_ratio": [4] * 7}

TURNS: tuple[Callable[[NDArray[np.float32]], NDArray[np.float32]], ...] = (
    np.fliplr,
    np.flipud,
    *(partial(np.rot90, k=times) for times in (1, 2, 3)),
)


def spectralformer(task: Task, progress: FitProgress) -> Predicted:
    """Train SpectralFormer on patches, with the published size and recipe.

    The recipe is Adam at 5e-4 with weight decay 5e-3 (as an L2 penalty), batch 64 and
    cross-entropy. The learning rate falls by a tenth after each tenth of the training. Training
    takes 3300 steps, like the 300 epochs on Indian Pines in the paper.
    Published for Indian Pines: OA .818, AA .878, kappa .792.
    Source: Hong et al., IEEE TGRS 60, 2022, and its released code.
    """
    scaling = task.fit_scaling("minmax")
    network = seeded(task, lambda: SpectralFormer(reference_shape(task, scaling)))
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4, weight_decay=5e-3)
    steps = task.steps or 3300

    def schedule(done: float) -> float:
        return 0.9 ** math.floor(10 * done)

    return fit(network, optimizer, task, scaling, TrainingPlan(steps, 64, schedule), progress)


def hytas(task: Task, progress: FitProgress) -> Predicted:
    """Train a network of the HyTAS space on patches, as in the HyTAS benchmark.

    The network has depth 7 and width 112, the medians of the 2000 published networks (the paper
    names no default), 4 heads and MLP ratio 4. The recipe is AdamW at 3.1e-4 with weight decay
    5e-3, a warm-up of 5 of 300 epochs, then a cosine down to 1e-5, drop-path 0.1, batch 320 and
    cross-entropy. The benchmark's sampler shows every pixel three times in a batch, so a step has
    107 pixels. On Indian Pines it makes one step per epoch, so training takes 300 steps. Larger
    scenes get the number of steps that this sampler makes there.
    Published for this size on Indian Pines: OA .79 (median), .85 (best of 2000).
    Source: Zhou et al., HyTAS, ECCV 2024, and its released code.
    """
    scaling = task.fit_scaling("minmax")
    network = seeded(
        task,
        lambda: build_network(HYTAS, reference_shape(task, scaling), drop_path=0.1, seed=task.seed),
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=3.1e-4, weight_decay=5e-3)
    # Five processes with batch 64 share whole multiples of 256 pixels; the others are dropped.
    an_epoch = max(1, len(task.train) // 256 * 256 // 5 // 64)
    steps = task.steps or 300 * an_epoch

    def schedule(done: float) -> float:
        least, warmup = 1e-5 / 3.1e-4, 5 / 300
        if done < warmup:
            return max(done / warmup, 1e-6 / 3.1e-4)
        return least + (1.0 - least) * 0.5 * (1.0 + math.cos(math.pi * done))

    return fit(network, optimizer, task, scaling, TrainingPlan(steps, 107, schedule), progress)


def s2mamba(task: Task, progress: FitProgress) -> Predicted:
    """Train S2Mamba on patches, with the published size and the command that its code names.

    The recipe is AdamW at 5e-4 with dropout and stochastic depth 0.4, weight decay 5e-3, batch 64,
    cross-entropy, and no augmentation. The learning rate falls by a hundredth before each epoch.
    Training takes 400 epochs, 4400 steps on Indian Pines. Fewer steps are the first of these
    epochs. Bands are standardised, here by the training pixels and there by all pixels.
    Published for Indian Pines: OA .979.
    Source: Wang et al., S2Mamba, IEEE TGRS 2025 (arXiv 2404.18213), and its released code.
    """
    scaling = task.fit_scaling("standard")
    network = seeded(task, lambda: S2Mamba(reference_shape(task, scaling)))
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-4, weight_decay=5e-3)
    an_epoch = math.ceil(len(task.train) / 64)
    steps = task.steps or 400 * an_epoch

    def schedule(done: float) -> float:
        return 0.99 ** (1 + round(done * steps) // an_epoch)

    return fit(
        network, optimizer, task, scaling, TrainingPlan(steps, 64, schedule, rest=True), progress
    )


def gscvit(task: Task, progress: FitProgress) -> Predicted:
    """Train GSC-ViT on patches, with the size and the recipe of its released code.

    The recipe is AdamW at 1e-3 with weight decay 0.05, batch 128 and cross-entropy. Half of the
    patches are flipped or turned. Training takes 200 epochs, 1200 steps on Indian Pines. The last
    weights are kept; the released code keeps those with the best accuracy on validation pixels,
    which train here.
    Source: Zhao et al., IEEE TGRS 62, 2024, and its released code. Their training pixels are
    drawn at random, so their figures are for other pixels.
    """
    scaling = one_range(task)
    network = seeded(task, lambda: GSCViT(reference_shape(task, scaling)))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.05)
    steps = task.steps or 200 * math.ceil(len(task.train) / 128)
    plan = TrainingPlan(steps, 128, lambda _: 1.0, rest=True, augment=flipped_or_turned)
    return fit(network, optimizer, task, scaling, plan, progress)


def one_range(task: Task) -> Preprocessing:
    """Return a scaling that takes each band's mean away and divides all bands by one range.

    The range is that of all values. Both come from the training pixels, in the released code from
    all pixels.
    """
    ends = task.fit_scaling("minmax")
    whole = (ends.offset + ends.scale).max() - ends.offset.min()
    centred = task.fit_scaling("standard")
    return replace(centred, scale=np.full_like(centred.scale, whole))


def flipped_or_turned(
    patches: NDArray[np.float32], generator: np.random.Generator
) -> NDArray[np.float32]:
    """Flip half of the patches (n, P, P, bands) left to right or upside down, or turn them."""
    ways = generator.integers(10, size=len(patches))
    for index in np.flatnonzero(ways < len(TURNS)):
        patches[index] = TURNS[ways[index]](patches[index]).copy()
    return patches
