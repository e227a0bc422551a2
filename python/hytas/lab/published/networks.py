"""Published networks with their published lengths, batches, rates and augmentation.

Unlike there, all train by AdamW, which decays matrices only, and an epoch ends with a small batch.
"""

import math
from dataclasses import replace

import numpy as np
from torch import nn

from hytas.data import Preprocessing
from hytas.lab.published.gscvit import GSCViT
from hytas.lab.published.s2mamba import S2Mamba
from hytas.lab.published.spectralformer import SpectralFormer
from hytas.lab.published.training import fit_published, published_recipe
from hytas.models import InputShape, build_network
from hytas.references.task import FitProgress, Predicted, Task
from hytas.train.schedule import Schedule

HYTAS = {"space": "hytas", "depth": 7, "embed_dim": 112, "num_heads": [4] * 7, "mlp_ratio": [4] * 7}


class Tenths(Schedule):
    """The rate falls by a tenth after each tenth of the training."""

    def share(self, step: int, steps: int) -> float:
        """Return the share of the peak rate in a step, of `steps` in all."""
        share: float = 0.9 ** (10 * step // steps)
        return share


class WarmCosine(Schedule):
    """A warm-up of 5 of 300 epochs, then a cosine down to 1e-5 of a peak of 3.1e-4."""

    def share(self, step: int, steps: int) -> float:
        """Return the share of the peak rate in a step, of `steps` in all."""
        done, least, warmup = step / steps, 1e-5 / 3.1e-4, 5 / 300
        if done < warmup:
            return max(done / warmup, 1e-6 / 3.1e-4)
        return least + (1.0 - least) * 0.5 * (1.0 + math.cos(math.pi * done))


class Hundredths(Schedule):
    """The rate falls by a hundredth before each epoch."""

    def share(self, step: int, steps: int) -> float:
        """Return the share of the peak rate in a step, of `steps` in all."""
        share: float = 0.99 ** (1 + step * self.epochs // steps)
        return share


def spectralformer(task: Task, progress: FitProgress) -> Predicted:
    """Train SpectralFormer on patches, with the published size and recipe.

    The recipe is a rate of 5e-4 with weight decay 5e-3 (there an L2 penalty of Adam), batch 64 and
    cross-entropy. The learning rate falls by a tenth after each tenth of the training. Training
    takes 3300 steps, like the 300 epochs on Indian Pines in the paper.
    Published for Indian Pines: OA .818, AA .878, kappa .792.
    Source: Hong et al., IEEE TGRS 60, 2022, and its released code.
    """
    recipe = published_recipe(task, 3300, learning_rate=5e-4, weight_decay=5e-3)
    return fit_published(task, progress, task.fit_scaling("minmax"), SpectralFormer, recipe, Tenths)


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
    # Five processes with batch 64 share whole multiples of 256 pixels; the others are dropped.
    steps = 300 * max(1, len(task.train) // 256 * 256 // 5 // 64)
    recipe = published_recipe(task, steps, batch_size=107, learning_rate=3.1e-4, weight_decay=5e-3)

    def hytas(shape: InputShape) -> nn.Module:
        return build_network(HYTAS, shape, drop_path=0.1, seed=task.seed)

    return fit_published(task, progress, task.fit_scaling("minmax"), hytas, recipe, WarmCosine)


def s2mamba(task: Task, progress: FitProgress) -> Predicted:
    """Train S2Mamba on patches, with the published size and the command that its code names.

    The recipe is AdamW at 5e-4 with dropout and stochastic depth 0.4, weight decay 5e-3, batch 64,
    cross-entropy, and no augmentation. The learning rate falls by a hundredth before each epoch.
    Training takes 400 epochs, 4400 steps on Indian Pines. Fewer steps are the first of these
    epochs. Bands are standardised, here by the training pixels and there by all pixels.
    Published for Indian Pines: OA .979.
    Source: Wang et al., S2Mamba, IEEE TGRS 2025 (arXiv 2404.18213), and its released code.
    """
    steps = 400 * math.ceil(len(task.train) / 64)
    recipe = published_recipe(task, steps, learning_rate=5e-4, weight_decay=5e-3)
    return fit_published(task, progress, task.fit_scaling("standard"), S2Mamba, recipe, Hundredths)


def gscvit(task: Task, progress: FitProgress) -> Predicted:
    """Train GSC-ViT on patches, with the size and the recipe of its released code.

    The recipe is AdamW at 1e-3 with weight decay 0.05, batch 128 and cross-entropy. Patches are
    flipped and turned; the released code does so with half of them. Training takes 200 epochs,
    1200 steps on Indian Pines. The last weights are kept; the released code keeps those with the
    best accuracy on validation pixels, which train here.
    Source: Zhao et al., IEEE TGRS 62, 2024, and its released code. Their training pixels are
    drawn at random, so their figures are for other pixels.
    """
    steps = 200 * math.ceil(len(task.train) / 128)
    recipe = published_recipe(
        task, steps, batch_size=128, learning_rate=1e-3, weight_decay=0.05, flips=True
    )
    return fit_published(task, progress, one_range(task), GSCViT, recipe)


def one_range(task: Task) -> Preprocessing:
    """Return a scaling that takes each band's mean away and divides all bands by one range.

    The range is that of all values. Both come from the training pixels, in the released code from
    all pixels.
    """
    ends = task.fit_scaling("minmax")
    whole = (ends.offset + ends.scale).max() - ends.offset.min()
    centred = task.fit_scaling("standard")
    return replace(centred, scale=np.full_like(centred.scale, whole))
