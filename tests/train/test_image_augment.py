"""Changes of images in training: they move, and rectangles of others are put in."""

import torch

from hytas.train import PRESETS, Recipe
from hytas.train.augment import mix, random_order, random_shift


def test_a_shifted_image_is_the_image_moved() -> None:
    images = 1.0 + torch.arange(36.0).view(1, 6, 6, 1).repeat(40, 1, 1, 1)
    moved = random_shift(images, 0.4, torch.Generator().manual_seed(0))
    seen = set()
    for one in moved[..., 0]:
        found = [
            (down, right)
            for down in range(-2, 3)
            for right in range(-2, 3)
            if torch.equal(one, by_hand(images[0, ..., 0], down, right))
        ]
        assert len(found) == 1
        seen.add(found[0])
    assert len(seen) > 10
    assert random_shift(images, 0.1, torch.Generator()) is images  # less than a pixel


def by_hand(image: torch.Tensor, down: int, right: int) -> torch.Tensor:
    found = torch.zeros_like(image)
    for row in range(6):
        for column in range(6):
            if 0 <= row - down < 6 and 0 <= column - right < 6:
                found[row, column] = image[row - down, column - right]
    return found


def test_cutmix_mixes_targets_by_area() -> None:
    recipe = Recipe(**{**PRESETS["plain"], "cutmix": 1.0})
    images = torch.arange(8.0).view(8, 1, 1, 1).expand(8, 10, 10, 1)
    cut = 0
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        mixed, targets = mix(images, torch.eye(8), recipe, generator)
        for number in range(8):
            kept = float((mixed[number] == number).float().mean())
            assert targets[number].sum() == 1.0
            torch.testing.assert_close(float(targets[number, number]), kept)
            cut += kept < 1.0
    assert cut > 50


def test_repeats_put_copies_of_a_sample_into_a_batch() -> None:
    drawn = [random_order(10, 3, torch.Generator().manual_seed(seed)) for seed in range(30)]
    for order in drawn:
        _, copies = order.unique(return_counts=True)
        assert len(order) == 10
        assert sorted(copies.tolist()) == [1, 3, 3, 3]
        assert order[:9].view(3, 3).eq(order[:9:3, None]).all()
    assert torch.cat(drawn).unique().tolist() == list(range(10))
    usual = random_order(10, 1, torch.Generator().manual_seed(4))
    assert usual.tolist() == torch.randperm(10, generator=torch.Generator().manual_seed(4)).tolist()
