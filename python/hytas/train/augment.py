"""Random changes of a batch that keep its classes, and mixup, which mixes them."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from hytas.plugins import fill
from hytas.train.image_augment import erase, rand_augment, random_crop
from hytas.train.recipe import NONE, Recipe

AUGMENTATIONS: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {}
"""Name -> augmentation of a plug-in."""
fill("augmentation", AUGMENTATIONS, built_in=(NONE,))
SMALL_SIDE, SMALL_SHIFT = 32, 1 / 8
"""Images of at most this side, which AutoFormer moves by up to 4 of 32 pixels instead of a crop."""


def random_order(
    count: int, repeats: int, generator: torch.Generator, draws: Tensor | None = None
) -> Tensor:
    """Return the positions (count,) of one epoch, of `count` samples, in a random order.

    Args:
        repeats: copies of a sample, which follow each other; so many times fewer are drawn.
        draws: (count,) share of each sample among those drawn; None draws each once.
    """
    if draws is None:
        order = _permutation(generator, count)
    else:
        order = torch.multinomial(draws, count, replacement=True, generator=generator)
    return order[: math.ceil(count / repeats)].repeat_interleave(repeats)[:count]


def augment(
    patches: Tensor, recipe: Recipe, generator: torch.Generator, dark: Tensor | None = None
) -> Tensor:
    """Return patches with random neighbours, symmetry, light, noise and missing bands.

    Args:
        patches: scaled patches (N, P, P, bands); not changed.
        generator: the source of randomness. One on the CPU draws the same for every device.
        dark: scaled values (bands,) of a pixel without light; None means 0.
    """
    count, side = patches.shape[:2]

    def normal(*sizes: int) -> Tensor:
        drawn = torch.randn(*sizes, generator=generator, device=generator.device)
        return drawn.to(patches.device)

    # Pixels move by their numbers, which are small, and their bands follow once.
    unmoved = places = torch.arange(count * side * side, device=generator.device).view(
        count, side, side, 1
    )
    if recipe.borders:
        places = foreign_side(places, recipe.borders, generator)
    if recipe.crop or recipe.shift:
        patches, places = _taken(patches, places), unmoved
    if recipe.crop and side > SMALL_SIDE:
        patches = random_crop(patches, recipe.crop, generator)
    elif recipe.crop:
        patches = random_shift(patches, SMALL_SHIFT, generator)
    if recipe.shift:
        patches = random_shift(patches, recipe.shift, generator)
    if recipe.mirror:
        chosen = _uniform(generator, count, 1, 1, 1) < 0.5
        places = torch.where(chosen, places.flip(2), places)
    if recipe.flips:
        places = random_symmetry(places, generator)
    if places is not unmoved:
        patches = _taken(patches, places)
    if recipe.rand_augment:
        patches = rand_augment(patches, recipe.rand_augment, recipe.magnitude, generator)
    factor, offset = _light(patches, recipe, normal, dark)
    if recipe.band_noise:
        noise = torch.empty(patches.shape, device=generator.device)
        noise = noise.normal_(0.0, recipe.band_noise, generator=generator).to(patches.device)
        patches = noise.add_(offset).addcmul_(patches, factor)
    elif recipe.illumination or recipe.brightness:
        patches = torch.addcmul(offset, patches, factor)
    if recipe.band_dropout:
        share = recipe.band_dropout * _uniform(generator, count, 1, 1, 1)
        kept = _uniform(generator, count, 1, 1, patches.shape[-1]) >= share
        patches = patches * kept.to(patches.device)  # the mean of a standardised band is 0
    if recipe.erasing:
        patches = erase(patches, recipe.erasing, generator)
    if recipe.augmentation != NONE:
        patches = AUGMENTATIONS[recipe.augmentation](patches, generator)
    return patches


def _light(
    patches: Tensor, recipe: Recipe, normal: Callable[..., Tensor], dark: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return factor (N, 1, 1, 1) and offset (N, 1, 1, 1 or bands) of the values of patches."""
    count = len(patches)
    factor = torch.ones(count, 1, 1, 1, device=patches.device)
    offset = torch.zeros_like(factor)
    if recipe.illumination:
        # In raw values this is one factor: the same ground under more or less light.
        factor += recipe.illumination * normal(count, 1, 1, 1)
        offset = offset if dark is None else dark * (1.0 - factor)
    if recipe.brightness:
        brighter = 1.0 + recipe.brightness * normal(count, 1, 1, 1)
        factor, offset = factor * brighter, offset * brighter
        offset += recipe.brightness * normal(count, 1, 1, 1)
    return factor, offset


def _taken(patches: Tensor, places: Tensor) -> Tensor:
    """Return the pixels of patches (N, P, P, bands) at `places` (N, P, P, 1), numbers in order."""
    pixels = patches.reshape(-1, patches.shape[-1])
    return pixels.index_select(0, places.flatten().to(patches.device)).view(patches.shape)


def _uniform(generator: torch.Generator, *sizes: int) -> Tensor:
    return torch.rand(*sizes, generator=generator, device=generator.device)


def _permutation(generator: torch.Generator, count: int) -> Tensor:
    if generator.device.type == "cpu":
        return torch.randperm(count, generator=generator, device="cpu")
    return _uniform(generator, count).argsort(stable=True)  # a CUDA graph has no `randperm`


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
    device = generator.device
    other = _permutation(generator, count)
    depth = torch.randint(1, side // 2 + 1, (count, 1, 1), generator=generator, device=device)
    depth = depth * (_uniform(generator, count, 1, 1) < share)
    from_end, across = _uniform(generator, 2, count, 1, 1) < 0.5
    place = torch.arange(side, device=device).expand(count, side, side)
    place = torch.where(across, place, place.mT)
    place = torch.where(from_end, side - 1 - place, place)
    foreign = (place < depth)[..., None].to(patches.device)
    return torch.where(foreign, patches.index_select(0, other.to(patches.device)), patches)


def random_shift(patches: Tensor, most: float, generator: torch.Generator) -> Tensor:
    """Move each image (N, side, side, channels) along both axes; zeros come in.

    Args:
        most: largest share of the side by which an image is moved, rounded down to whole pixels.
    """
    count, side = patches.shape[:2]
    reach = int(most * side)
    if not reach:
        return patches
    moved = torch.randint(-reach, reach + 1, (2, count, 1), generator=generator)
    rows, columns = torch.arange(side) + moved  # of the source, (N, side) each
    inside = [(place >= 0) & (place < side) for place in (rows, columns)]
    kept = (inside[0][:, :, None] & inside[1][:, None, :])[..., None].to(patches.device)
    each = torch.arange(count)[:, None, None]
    source = patches[
        each.to(patches.device),
        rows.clamp(0, side - 1)[:, :, None].to(patches.device),
        columns.clamp(0, side - 1)[:, None, :].to(patches.device),
    ]
    return torch.where(kept, source, torch.zeros_like(source))


def random_symmetry(patches: Tensor, generator: torch.Generator) -> Tensor:
    """Apply a random symmetry of the square to each patch (N, P, P, bands)."""
    chosen = _uniform(generator, 3, patches.shape[0]).to(patches.device) < 0.5
    chosen = chosen[:, :, None, None, None]
    patches = torch.where(chosen[0], patches.flip(1), patches)
    patches = torch.where(chosen[1], patches.flip(2), patches)
    return torch.where(chosen[2], patches.transpose(1, 2), patches)


def mix(
    patches: Tensor, targets: Tensor, recipe: Recipe, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Mix pairs of patches and their target distributions.

    By mixup (Zhang et al., ICLR 2018), or by cutmix (Yun et al., ICCV 2019); where the recipe has
    both, one of them is drawn for the batch.

    Args:
        patches: (N, P, P, bands).
        targets: class distributions (N, C).
    """
    amount, cut = recipe.mixup, False
    if recipe.cutmix:
        cut = not recipe.mixup or bool(torch.rand((), generator=generator) < 0.5)
        amount = recipe.cutmix if cut else recipe.mixup
    if not amount:
        return patches, targets
    # Two gamma draws make a Beta draw; torch's own Beta takes no generator.
    shapes = torch.full((2,), amount, device=generator.device)
    draws = torch._standard_gamma(shapes, generator=generator)
    share = (draws[0] / draws.sum().clamp_min(1e-12)).to(patches.device)
    order = _permutation(generator, patches.shape[0]).to(patches.device)
    others = patches.index_select(0, order)
    if cut:
        mixed, share = _with_rectangle(patches, others, float(share), generator)
    else:
        mixed = others.lerp_(patches, share)
    return mixed, share * targets + (1.0 - share) * targets.index_select(0, order)


def _with_rectangle(
    patches: Tensor, others: Tensor, share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Put a rectangle of `others` into `patches`; return them, and the share that is left."""
    side = patches.shape[1]
    half = round(side * (1.0 - share) ** 0.5) / 2
    centre = torch.randint(0, side, (2,), generator=generator)
    place = torch.arange(side)
    inside = [(place >= middle - half) & (place < middle + half) for middle in centre]
    taken = (inside[0][:, None] & inside[1][None, :])[None, :, :, None]
    taken = taken.to(patches.device)
    return torch.where(taken, others, patches), 1.0 - taken.float().mean()
