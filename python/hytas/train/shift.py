"""How a network classifies pixels under other light than they were taken in."""

from dataclasses import replace

import torch
from torch import nn

from hytas.machine import arithmetic
from hytas.train.augment import augment
from hytas.train.loop import LabelledPixels
from hytas.train.recipe import Recipe

COPIES = 8
STRENGTH = 2.0
"""Noise, illumination and brightness vary so many times as much as the recipe's."""


@torch.no_grad()
def shifted_accuracy(
    network: nn.Module,
    pixels: LabelledPixels,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
) -> float:
    """Overall accuracy on copies of labelled pixels, each changed as in training, but more.

    A few validation pixels beside those trained on are often all classified, by every network; how
    many still are under other light and more noise tells which network will do on ground further
    off (docs/log.md has the measurement).

    Args:
        network: maps scaled patches (N, P, P, bands) to logits (N, C), in evaluation mode.
        pixels: one or more.
        recipe: of the training.
        seed: of the changes; they are the same for every network.
    """
    device = torch.device(device)
    stronger = replace(
        recipe,
        band_noise=STRENGTH * recipe.band_noise,
        illumination=STRENGTH * recipe.illumination,
        brightness=STRENGTH * recipe.brightness,
    )
    generator = torch.Generator().manual_seed(seed)
    dark = None if pixels.dark is None else torch.from_numpy(pixels.dark).to(device)
    hits = 0
    with arithmetic("float32", device):
        for chosen in pixels.positions():
            patches, classes = pixels.batch(chosen, device)
            for _ in range(COPIES):
                answers = network(augment(patches, stronger, generator, dark)).argmax(1)
                hits += int((answers == classes).sum())
    return hits / (COPIES * len(pixels))
