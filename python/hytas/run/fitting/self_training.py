"""Self-training: a trained network goes on with pixels of its scene that have no label.

The network classifies pixels without a label, a guided filter smooths what it says, and the network
goes on with the smoothed probabilities of these pixels as soft labels, beside the labelled pixels.
So what the filter knows of neighbours passes into the weights.

Sources: Lee, Pseudo-Label, ICML 2013 workshop; Xie et al., Noisy Student, CVPR 2020 (soft labels,
and noise while the student learns); Kang et al., IEEE TGRS 52, 2014 (the filter).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.deploy.smoothing import smooth_pixels
from hytas.metrics import compare_answers
from hytas.models.layers import probabilities
from hytas.results import SelfTraining
from hytas.run.context import Run, RunContext
from hytas.run.damage import forget_damaged
from hytas.run.fitting.smoothing import (
    LEAST_JUDGED,
    Judged,
    choose_smoothing,
)
from hytas.run.prepared import Pixels, PreparedScene
from hytas.train import Epoch, LabelledPixels, Recipe, TrainingResult, logits_of, train

ROUNDS = 2
"""Trainings that follow; each begins with answers of the network that the one before it left."""
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


def refusal(context: RunContext) -> str:
    """Return why a run trains without unlabelled pixels, whatever held-out pixels say; or ""."""
    if context.config.self_training == "none":
        return "--self-training none asks for it"
    if not context.data.scene.has_map:
        return "images have no neighbours"
    if context.start is not None:
        return "the run begins with a trained model"
    learnt, _ = context.final_pixels
    if not np.setdiff1d(np.flatnonzero(context.data.usable), learnt).size:
        return "every pixel of the scene is a training pixel"
    return ""


def choose_self_training(asked: str, apart: bool, before: Judged, after: Judged) -> SelfTraining:
    """Choose by what networks say of held-out pixels, without and with self-training.

    Where test pixels lie apart from labelled ones, it is used unless it loses a pixel. Where they
    lie among labelled ones, as in a random split, little is left to learn from neighbours. There it
    must gain more pixels than chance would (`hytas.metrics.compare_answers`).

    Args:
        asked: how maps are smoothed, "auto", "guided" or "none"; such maps are compared.
        apart: whether test pixels lie apart.
        before, after: what the same networks say without and with it, of the same pixels.
    """
    pixels = len(before.targets)
    if pixels < LEAST_JUDGED:
        few = f"{pixels or 'no'} validation pixels"
        return SelfTraining(False, reason=f"{few} to judge by; at least {LEAST_JUDGED} are needed")
    old, new = _right(asked, before), _right(asked, after)
    gained, lost, beyond_chance = compare_answers(old, new)
    used = gained >= lost if apart else beyond_chance
    reason = ""
    if gained >= lost and not used:
        reason = "no more than chance would give, and test pixels lie among labelled ones"
    return SelfTraining(used, pixels, float(old.mean()), float(new.mean()), reason)


def _right(asked: str, judged: Judged) -> NDArray[np.bool_]:
    """Return which pixels maps have right, smoothed or not as would be chosen."""
    smoothed = choose_smoothing(asked, judged).method == "guided"
    answers = judged.smoothed if smoothed else judged.raw
    return np.asarray(answers.argmax(axis=1) == judged.targets)


def train_further(
    run: Run,
    network: nn.Module,
    learnt: Pixels,
    progress: Callable[[Epoch], None],
    fold: int | None = None,
) -> list[TrainingResult]:
    """Train a trained network further, in place, with unlabelled pixels beside its own.

    It is the same after a stop: rounds that ended are read from their checkpoints, and soft labels
    are made again.

    Args:
        run: its recipe is followed, with fewer steps.
        network: as its training on `learnt` left it.
        learnt: flat indices of labelled pixels.
        progress: called with each epoch.
        fold: number of the fold that the network was trained without, if any.

    Returns:
        The result of each round.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    context, data = run.context, run.context.data
    recipe = round_recipe(run.recipe[1], len(learnt))
    results: list[TrainingResult] = []
    for number in range(ROUNDS):
        checkpoint = run.folder.self_training_checkpoint(number, fold)
        forget_damaged(checkpoint, run.report.line)
        # Another seed in each round: other pixels, and other noise on the labelled ones.
        seed = int(np.random.SeedSequence([context.config.seed, number]).generate_state(1)[0])
        most = recipe.steps * recipe.batch_size
        pixels = with_soft_labels(network, data, learnt, most, seed, context.device)
        if not results:
            run.report.line(
                f"self-training: {ROUNDS} rounds of {len(pixels)} pixels, most of them without a "
                "label"
            )
        result = train(
            network,
            pixels,
            data.labelled(learnt[:0]),
            recipe,
            seed=seed,
            device=context.device,
            checkpoint=checkpoint,
            keep=True,
            progress=progress,
        )
        results.append(result)
    return results


def round_recipe(recipe: Recipe, pixels: int) -> Recipe:
    """Return the recipe of a round after a training with `recipe` on `pixels` pixels."""
    steps = recipe.epochs_for(pixels) * recipe.steps_per_epoch(pixels)
    return replace(
        recipe,
        steps=max(1, round(SHARE * steps)),
        epochs=None,
        most_epochs=None,
        warmup=WARMUP,
        whitened=False,  # which would replace the embedding that was learnt
    )


def with_soft_labels(
    network: nn.Module,
    data: PreparedScene,
    learnt: Pixels,
    most: int,
    seed: int,
    device: torch.device,
) -> LabelledPixels:
    """Return labelled pixels, and others with the smoothed answers of a network as soft labels.

    No other label is looked at: validation and test pixels count as pixels without one.

    Args:
        network: trained on `learnt`.
        data: the scene; of several, those that are learnt from.
        learnt: flat indices (n,) of labelled pixels.
        most: pixels that a round can train on once. Where there are more, some are drawn.
        seed: draws them.
        device: where to classify.
    """
    generator = np.random.default_rng(seed)
    read = _pixels_to_read(data, generator)
    labelled, kept = np.sort(learnt), max(1, most // (1 + UNLABELLED))
    if len(labelled) > kept:
        labelled = np.sort(generator.permutation(labelled)[:kept])
    others = generator.permutation(np.setdiff1d(read, learnt))[: UNLABELLED * len(labelled)]
    own = data.labelled(labelled)
    logits = torch.from_numpy(logits_of(network, data.unlabelled(read), device))
    smoothed = smooth_pixels(
        data.guide, data.pixel_scene.cube, data.preprocessing, read, probabilities(logits).numpy()
    )
    pixels = np.sort(np.concatenate([labelled, others]))
    is_own = np.isin(pixels, labelled)
    soft_labels = np.zeros((len(pixels), own.classes), np.float32)
    soft_labels[is_own, own.targets] = 1
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
