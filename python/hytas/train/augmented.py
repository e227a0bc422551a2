"""Augmented accuracy: accuracy on pixels that are augmented more strongly than in training."""

from dataclasses import replace

import torch
from torch import nn

from hytas.machine import arithmetic
from hytas.train.augment import augment
from hytas.train.pixels import LabelledPixels
from hytas.train.recipe import Recipe

COPIES = 8
STRENGTH = 2.0
"""Noise, illumination and brightness vary this many times as much as in the recipe."""


@torch.no_grad()
def augmented_accuracy(
    network: nn.Module,
    pixels: LabelledPixels,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
) -> float:
    """Return the overall accuracy on augmented copies of labelled pixels.

    Each pixel is classified `COPIES` times. Every copy is augmented as in training, but noise,
    illumination and brightness vary `STRENGTH` times as much. Most networks classify a few
    validation pixels next to training pixels without an error. Their accuracy on augmented copies
    predicts the accuracy on distant ground (docs/log.md has the measurement).

    Args:
        network: maps scaled patches (N, P, P, bands) to logits (N, C), in evaluation mode.
        pixels: one or more.
        recipe: of the training.
        seed: of the augmentation, which is the same for every network.
        device: where the network is.
    """
    device = torch.device(device)
    stronger = replace(
        recipe,
        band_noise=STRENGTH * recipe.band_noise,
        illumination=STRENGTH * recipe.illumination,
        brightness=STRENGTH * recipe.brightness,
    )
    generator = torch.Generator().manual_seed(seed)
    dark = None if pixels.dark is None else torch.tensor(pixels.dark, device=device)
    hits = 0
    with arithmetic("float32", device):
        for chosen in pixels.positions(device):
            patches, classes = pixels.batch(chosen, device)
            for _ in range(COPIES):
                predictions = network(augment(patches, stronger, generator, dark)).argmax(1)
                hits += int((predictions == classes).sum())
    return hits / (COPIES * len(pixels))
