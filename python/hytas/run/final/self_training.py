"""Self-training: train a network further with pixels of its scene that have no label.

The network classifies pixels without a label, a guided filter smooths their probabilities, and the
network is trained further with the smoothed probabilities as soft labels, next to the labelled
pixels. So the spatial context that the filter uses passes into the weights.

Sources: Lee, Pseudo-Label, ICML 2013 workshop; Xie et al., Noisy Student, CVPR 2020 (soft labels,
and noise while the student learns); Kang et al., IEEE TGRS 52, 2014 (the filter).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.errors import InputError
from hytas.models.layers import probabilities
from hytas.run.final.train import FinalTask, Progress
from hytas.run.prepared import PreparedScene
from hytas.tensors import read_facts
from hytas.train import LabelledPixels, Recipe, TrainingResult, logits_of, train
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


def self_train(
    task: FinalTask,
    data: PreparedScene,
    line: Callable[[str], None],
    progress: Progress = lambda _: None,
) -> list[TrainingResult]:
    """Train the network of a fitted task further, in place.

    It is the same after a stop: rounds that ended are read from their checkpoints.

    Args:
        task: its recipe is followed, with fewer steps.
        data: the scene.
        line: receives one line for the log.
        progress: called with each epoch.

    Returns:
        The result of each round.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    recipe = round_recipe(task.recipe, len(task.trained))
    results: list[TrainingResult] = []
    for number in range(ROUNDS):
        checkpoint = task.round_checkpoint(number)
        # Another seed in each round: other pixels, and other noise on the labelled ones.
        seed = int(np.random.SeedSequence([task.seed, number]).generate_state(1)[0])
        most = recipe.steps * recipe.batch_size
        task.forget_damaged(line, number)
        ended = is_complete(checkpoint) or task.is_followed(number)
        with task.threads():
            pixels = with_soft_labels(
                None if ended else task.network, data, task.trained, most, seed, task.device
            )
            if not results:
                line(
                    f"self-training: {ROUNDS} rounds of {len(pixels)} pixels, most of them without "
                    "a label"
                )
            result = train(
                task.network,
                pixels,
                task.labelled.subset(task.trained[:0]),
                recipe,
                seed=seed,
                device=task.device,
                checkpoint=checkpoint,
                keep=True,
                progress=progress,
                deadline=0.0 if ended else task.deadline,
            )
        results.append(result)
    return results


def is_complete(checkpoint: Path) -> bool:
    """Return whether a round has ended."""
    try:
        history = read_facts(checkpoint)["history"]
        return bool(len(history) == history[-1]["epochs"])
    except (OSError, InputError, KeyError, TypeError, IndexError):
        return False


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
    network: nn.Module | None,
    data: PreparedScene,
    trained: Pixels,
    most: int,
    seed: int,
    device: torch.device,
) -> LabelledPixels:
    """Return labelled pixels, and others with a network's smoothed probabilities as soft labels.

    No other label is looked at: validation and test pixels count as pixels without one.

    Args:
        network: trained on `trained`; None leaves the soft labels 0, where nothing reads them.
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
    if network is not None:
        logits = torch.from_numpy(logits_of(network, data.unlabelled(read), device))
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
