"""RandAugment, random crops and random erasing, as DeiT and AutoFormer train; for images.

The operations are those of timm's increasing policy, `rand-m9-mstd0.5-inc1`. They work on values
between the smallest and the largest of an image, so they take any number of channels.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

APPLIED = 0.5
"""Probability that a drawn operation is applied, as in timm."""
MOST_CROP_RATIO = 4 / 3
SPREAD, MOST_LEVEL = 0.5, 10.0
LEAST_AREA, MOST_AREA, MOST_RATIO = 0.02, 1 / 3, 1 / 0.3


def rand_augment(
    images: Tensor, operations: int, magnitude: float, generator: torch.Generator
) -> Tensor:
    """Apply random operations to each image (N, side, side, channels).

    Source: RandAugment (Cubuk et al., NeurIPS 2020).

    Args:
        images: scaled; not changed.
        operations: drawn for each image, one after the other.
        magnitude: of the operations, 0 to 10; each has its own, around it.
        generator: the source of randomness, on the CPU.
    """
    low, high = images.amin((1, 2, 3), True), images.amax((1, 2, 3), True)
    size = (high - low).clamp_min(1e-12)
    values, count = (images - low) / size, len(images)
    for _ in range(operations):
        chosen = torch.randint(len(OPERATIONS), (count,), generator=generator)
        levels = magnitude + SPREAD * torch.randn(count, generator=generator)
        levels = levels.clamp(0, MOST_LEVEL) / MOST_LEVEL
        signs = torch.where(torch.rand(count, generator=generator) < 0.5, -1.0, 1.0)
        applied = torch.rand(count, generator=generator) < APPLIED
        for number, operation in enumerate(OPERATIONS):
            at = torch.nonzero(applied & (chosen == number)).flatten().to(images.device)
            if len(at):
                own = (each.to(images.device)[at].view(-1, 1, 1, 1) for each in (levels, signs))
                values = values.index_copy(0, at, operation(values[at], *own).clamp(0, 1))
    return low + values * size


def random_crop(images: Tensor, least: float, generator: torch.Generator) -> Tensor:
    """Enlarge a random rectangle of each image (N, side, side, channels) to the whole image.

    Bicubic, as `RandomResizedCrop` of AutoFormer; no value leaves the range of its image.

    Source: Going deeper with convolutions (Szegedy et al., CVPR 2015).

    Args:
        least: share of the area that a rectangle has at least; its sides differ by 4/3 at most.
    """
    count = len(images)
    area = least + (1 - least) * torch.rand(count, generator=generator)
    ratio = torch.exp((2 * torch.rand(count, generator=generator) - 1) * math.log(MOST_CROP_RATIO))
    sizes = torch.stack([(area * ratio).sqrt(), (area / ratio).sqrt()]).clamp_max(1)
    centres = (2 * torch.rand(2, count, generator=generator) - 1) * (1 - sizes)
    zero = torch.zeros(count)
    rows = (sizes[0], zero, centres[0]), (zero, sizes[1], centres[1])
    place = torch.stack([torch.stack(row, 1) for row in rows], 1).to(images)
    laid = images.permute(0, 3, 1, 2)
    grid = F.affine_grid(place, list(laid.shape), False)
    found = F.grid_sample(laid, grid, "bicubic", "border", align_corners=False)
    low, high = laid.amin((1, 2, 3), True), laid.amax((1, 2, 3), True)
    return found.clamp(low, high).permute(0, 2, 3, 1)


def erase(images: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Replace a random rectangle of some images (N, side, side, channels) by normal noise.

    Source: Random Erasing (Zhong et al., AAAI 2020), per pixel.

    Args:
        share: probability that an image is changed.
    """
    count, side = images.shape[:2]
    area = LEAST_AREA + (MOST_AREA - LEAST_AREA) * torch.rand(count, generator=generator)
    ratio = torch.exp((2 * torch.rand(count, generator=generator) - 1) * math.log(MOST_RATIO))
    sizes = torch.stack([(area * ratio).sqrt(), (area / ratio).sqrt()]) * side
    sizes = sizes.round().clamp(1, side)
    starts = (torch.rand(2, count, generator=generator) * (side - sizes + 1)).floor()
    place = torch.arange(side)
    inside = (place >= starts[..., None]) & (place < (starts + sizes)[..., None])  # (2, N, side)
    taken = inside[0][:, :, None] & inside[1][:, None, :]
    taken &= (torch.rand(count, generator=generator) < share)[:, None, None]
    noise = torch.randn(images.shape, generator=generator).to(images.device)
    return torch.where(taken[..., None].to(images.device), noise, images)


def _mean(values: Tensor) -> Tensor:
    return values.mean((1, 2, 3), True)


def _grey(values: Tensor) -> Tensor:
    return values.mean(3, True)


def _blurred(values: Tensor) -> Tensor:
    """Return images with the means of 3 x 3 pixels, the centre five times."""
    channels = values.shape[3]
    kernel = values.new_ones(channels, 1, 3, 3) / 13
    kernel[:, :, 1, 1] = 5 / 13
    laid = F.pad(values.permute(0, 3, 1, 2), (1, 1, 1, 1), mode="replicate")
    return F.conv2d(laid, kernel, groups=channels).permute(0, 2, 3, 1)


def _away(other: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return an operation that moves images towards another one, or away from it."""

    def enhance(values: Tensor, level: Tensor, sign: Tensor) -> Tensor:
        rest = other(values)
        return rest + (values - rest) * (1 + 0.9 * level * sign)

    return enhance


def _stretch(values: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    low, high = values.amin((1, 2), True), values.amax((1, 2), True)
    return (values - low) / (high - low).clamp_min(1e-12)


def _equalize(values: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    flat = values.flatten(1, 2)
    ranks = flat.argsort(1).argsort(1).to(values.dtype)
    return (ranks / max(1, flat.shape[1] - 1)).view_as(values)


def _posterize(values: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    steps = 2.0 ** (4 - (4 * level).floor()).clamp_min(1)
    return (values * steps).floor().clamp_max(steps - 1) / (steps - 1)


def _solarize(values: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    return torch.where(values >= 1 - level, 1 - values, values)


def _solarize_add(values: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    return torch.where(values < 0.5, values + 110 / 255 * level, values)


def _moved(
    place: Callable[[Tensor], tuple[tuple[Tensor | float, ...], ...]],
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return an operation that draws images at the places of an affine map; 0 comes in."""

    def move(values: Tensor, level: Tensor, sign: Tensor) -> Tensor:
        amount = (level * sign).flatten()
        rows = [
            torch.stack([torch.as_tensor(each).to(amount).expand_as(amount) for each in row], 1)
            for row in place(amount)
        ]
        grid = F.affine_grid(torch.stack(rows, 1), list(values.permute(0, 3, 1, 2).shape), False)
        laid = F.grid_sample(values.permute(0, 3, 1, 2), grid, align_corners=False)
        return laid.permute(0, 2, 3, 1)

    return move


def _turned(amount: Tensor) -> tuple[tuple[Tensor | float, ...], ...]:
    angle = amount * math.radians(30)
    return (angle.cos(), -angle.sin(), 0.0), (angle.sin(), angle.cos(), 0.0)


OPERATIONS: tuple[Callable[[Tensor, Tensor, Tensor], Tensor], ...] = (
    _stretch,
    _equalize,
    lambda values, level, sign: 1 - values,
    _moved(_turned),
    _posterize,
    _solarize,
    _solarize_add,
    _away(_grey),
    _away(_mean),
    _away(torch.zeros_like),
    _away(_blurred),
    _moved(lambda amount: ((1.0, 0.3 * amount, 0.0), (0.0, 1.0, 0.0))),
    _moved(lambda amount: ((1.0, 0.0, 0.0), (0.3 * amount, 1.0, 0.0))),
    _moved(lambda amount: ((1.0, 0.0, 0.9 * amount), (0.0, 1.0, 0.0))),
    _moved(lambda amount: ((1.0, 0.0, 0.0), (0.0, 1.0, 0.9 * amount))),
)
"""Of values 0..1, a level 0..1 and a sign: auto-contrast, equalize, invert, rotate, posterize,
solarize, solarize and add, colour, contrast, brightness, sharpness, shears and translations."""
