"""Soft labels for self-training: what a network says of unlabelled pixels of its scene, smoothed.

The network classifies pixels without a label, a guided filter smooths their probabilities, and the
network is trained further with the smoothed probabilities as soft labels, next to the labelled
pixels. So the spatial context that the filter uses passes into the weights.

Sources: Lee, Pseudo-Label, ICML 2013 workshop; Xie et al., Noisy Student, CVPR 2020 (soft labels,
and noise while the student learns); Kang et al., IEEE TGRS 52, 2014 (the filter).
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.models.layers import probabilities
from hytas.run.prepared import PreparedScene
from hytas.train import LabelledPixels, Recipe, logits_of
from hytas.types import Pixels

ROUNDS = 2
"""Trainings that follow; each begins with the predictions of the network that the last one left."""
SHARE = 0.25
"""Optimiser steps of a round, of those of the first training."""
UNLABELLED = 3
"""Pixels without a label for each labelled one. Ten times as many gained nothing."""
WARMUP = 0.3
"""Of the steps: the weights are good already, and a large rate at once would spoil them."""
MOST_READ = 2**15
"""Pixels that the network classifies for their soft labels; the filter needs all neighbours."""
TILE = 32
"""Side of the tiles that are read of a larger scene, in pixels."""


def round_recipe(recipe: Recipe, pixels: int) -> Recipe:
    """Return the recipe of a round after a training with `recipe` on `pixels` pixels."""
    return replace(
        recipe,
        steps=max(1, round(SHARE * recipe.steps_for(pixels))),
        epochs=None,
        most_epochs=None,
        warmup=WARMUP,
        whitened=False,  # which would replace the embedding that was trained
    )


def with_soft_labels(
    network: nn.Module,
    data: PreparedScene,
    trained: Pixels,
    most: int,
    seed: int,
    device: torch.device,
) -> LabelledPixels:
    """Return labelled pixels, and others with a network's smoothed probabilities as soft labels.

    No other label is looked at: validation and test pixels count as pixels without one.

    Args:
        network: trained on `trained`.
        data: the scene; of several, those that may train.
        trained: flat indices (n,) of labelled pixels.
        most: pixels that a round can train on once. Where there are more, some are drawn.
        seed: draws them.
        device: where to classify.
    """
    generator = np.random.default_rng(seed)
    read = _pixels_to_read(data, generator)
    labelled, kept = np.sort(trained), max(1, most // (1 + UNLABELLED))
    if len(labelled) > kept:
        labelled = np.sort(generator.permutation(labelled)[:kept])
    others = generator.permutation(np.setdiff1d(read, trained))[: UNLABELLED * len(labelled)]
    own = data.labelled(labelled)
    pixels = np.sort(np.concatenate([labelled, others]))
    is_own = np.isin(pixels, labelled)
    soft_labels = np.zeros((len(pixels), own.classes), np.float32)
    soft_labels[is_own, own.targets] = 1
    logits = torch.from_numpy(logits_of(network, data.unlabelled(read), device))
    assert data.smoother is not None  # else there is no self-training
    smoothed = data.smoother(read, probabilities(logits).numpy())
    soft_labels[~is_own] = smoothed[np.searchsorted(read, pixels[~is_own])]
    targets = soft_labels.argmax(axis=1)
    return replace(own, pixels=pixels, targets=targets, soft_labels=soft_labels)


def _pixels_to_read(data: PreparedScene, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return flat indices, ascending, of all usable pixels; of a large scene those of tiles."""
    usable = data.usable
    if np.count_nonzero(usable) <= MOST_READ:
        return np.flatnonzero(usable)
    height, width = usable.shape
    tiles = [(row, column) for row in range(0, height, TILE) for column in range(0, width, TILE)]
    chosen, count = np.zeros_like(usable), 0
    for number in generator.permutation(len(tiles)):
        row, column = tiles[number]
        tile = slice(row, row + TILE), slice(column, column + TILE)
        count += int(np.count_nonzero(usable[tile]))
        if count > MOST_READ:
            break
        chosen[tile] = usable[tile]
    return np.flatnonzero(chosen)
