"""Random changes of a batch that keep its classes, and mixup, which mixes them."""

import torch
from torch import Tensor

from hytas.train.recipe import Recipe


def augment(
    patches: Tensor, recipe: Recipe, generator: torch.Generator, dark: Tensor | None = None
) -> Tensor:
    """Return patches with random neighbours, symmetry, light, noise and missing bands.

    Args:
        patches: scaled patches (N, P, P, bands); not changed.
        generator: the source of randomness, on the CPU, so that every device draws the same.
        dark: scaled values (bands,) of a pixel without light; None means 0.
    """
    count = patches.shape[0]

    def normal(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator).to(patches.device)

    if recipe.borders:
        patches = foreign_side(patches, recipe.borders, generator)
    if recipe.flips:
        patches = random_symmetry(patches, generator)
    if recipe.illumination:
        # In raw values this is one factor: the same ground under more or less light.
        centre = torch.zeros(()) if dark is None else dark
        patches = centre + (patches - centre) * (1.0 + recipe.illumination * normal(count, 1, 1, 1))
    if recipe.brightness:
        factor = 1.0 + recipe.brightness * normal(count, 1, 1, 1)
        patches = patches * factor + recipe.brightness * normal(count, 1, 1, 1)
    if recipe.band_noise:
        patches = patches + recipe.band_noise * normal(*patches.shape)
    if recipe.band_dropout:
        share = recipe.band_dropout * torch.rand(count, 1, 1, 1, generator=generator)
        kept = torch.rand(count, 1, 1, patches.shape[-1], generator=generator) >= share
        patches = patches * kept.to(patches.device)  # the mean of a standardised band is 0
    return patches


def foreign_side(patches: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Replace one side of some patches (N, P, P, bands) by the same side of another patch.

    This is CutMix (Yun et al., ICCV 2019) without the centre, so the class stays. It imitates the
    border of a field, where a pixel has neighbours of another class.

    Args:
        share: probability that a patch is changed.
    """
    count, side = patches.shape[:2]
    if side == 1:
        return patches
    other = torch.randperm(count, generator=generator)
    depth = torch.randint(1, side // 2 + 1, (count, 1, 1), generator=generator)
    depth = depth * (torch.rand(count, 1, 1, generator=generator) < share)
    from_end, across = torch.rand(2, count, 1, 1, generator=generator) < 0.5
    place = torch.arange(side).expand(count, side, side)
    place = torch.where(across, place, place.mT)
    place = torch.where(from_end, side - 1 - place, place)
    foreign = (place < depth)[..., None].to(patches.device)
    return torch.where(foreign, patches[other.to(patches.device)], patches)


def random_symmetry(patches: Tensor, generator: torch.Generator) -> Tensor:
    """Apply a random symmetry of the square to each patch (N, P, P, bands)."""
    chosen = torch.rand(3, patches.shape[0], generator=generator).to(patches.device) < 0.5
    chosen = chosen[:, :, None, None, None]
    patches = torch.where(chosen[0], patches.flip(1), patches)
    patches = torch.where(chosen[1], patches.flip(2), patches)
    return torch.where(chosen[2], patches.transpose(1, 2), patches)


def mix(
    patches: Tensor, targets: Tensor, recipe: Recipe, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Mix pairs of patches and their target distributions: mixup (Zhang et al., ICLR 2018).

    Args:
        patches: (N, P, P, bands).
        targets: class distributions (N, C).
    """
    if not recipe.mixup:
        return patches, targets
    # Two gamma draws make a Beta draw; torch's own Beta takes no generator.
    draws = torch._standard_gamma(torch.full((2,), recipe.mixup), generator=generator)
    share = float(draws[0] / draws.sum().clamp_min(1e-12))
    order = torch.randperm(patches.shape[0], generator=generator).to(patches.device)
    mixed = share * patches + (1.0 - share) * patches[order]
    return mixed, share * targets + (1.0 - share) * targets[order]
