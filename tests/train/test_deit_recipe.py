"""What AutoFormer trains with: RandAugment, random erasing, SGD, and a teacher."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from hytas.train import PRESETS, LabelledPixels, Recipe, train
from hytas.train.image_augment import OPERATIONS, erase, rand_augment, random_crop

PLAIN = replace(Recipe(**PRESETS["plain"]), whitened=False, dropout=0.0, ema_decay=0.0)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_each_operation_keeps_shape_and_numbers() -> None:
    values = torch.rand(6, 12, 12, 3)
    level = torch.linspace(0, 1, 6).view(-1, 1, 1, 1)
    for sign in (-torch.ones_like(level), torch.ones_like(level)):
        for operation in OPERATIONS:
            found = operation(values, level, sign)
            assert found.shape == values.shape
            assert found.isfinite().all()
    # Without a level, what moves or enhances leaves an image as it is.
    for place in (3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14):
        still = OPERATIONS[place](values[:1], level[:1], torch.ones(1, 1, 1, 1))
        torch.testing.assert_close(still, values[:1], atol=1e-5, rtol=0)


def test_operations_do_what_they_are_called() -> None:
    ramp = torch.linspace(0, 1, 16).view(1, 1, 16, 1).expand(1, 16, 16, 1)
    full, plus = torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1)
    invert, rotate, posterize, across = (OPERATIONS[at] for at in (2, 3, 4, 13))
    torch.testing.assert_close(invert(ramp, full, plus), 1 - ramp)
    assert len(posterize(ramp, full, plus).unique()) == 2
    moved = across(ramp, full, plus)[0, 8, :, 0]
    torch.testing.assert_close(moved[:4], ramp[0, 8, 7:11, 0], atol=0.1, rtol=0)
    assert not moved[10:].any()  # zeros come in
    turned = rotate(ramp, full, plus)[0, :, 8, 0]
    assert abs(float(turned[12] - turned[3])) > 0.2  # a column was even before
    stretched = OPERATIONS[0](0.2 + 0.1 * ramp, full, plus)
    assert (float(stretched.min()), float(stretched.max())) == pytest.approx((0, 1), abs=1e-5)


def test_rand_augment_keeps_the_range_and_draws_from_its_generator() -> None:
    images = 5 * torch.randn(40, 8, 8, 4) - 3
    before = images.clone()
    found = rand_augment(images, 2, 9.0, generator())
    assert torch.equal(images, before)
    assert torch.equal(found, rand_augment(images, 2, 9.0, generator()))
    same = (found - images).abs().amax((1, 2, 3)) < 1e-4
    assert 2 <= int(same.sum()) <= 20  # a quarter expected: each operation applies by a half
    for one, own in zip(found, images, strict=True):
        assert float(one.min()) >= float(own.min()) - 1e-4
        assert float(one.max()) <= float(own.max()) + 1e-4


def test_a_crop_is_a_rectangle_enlarged() -> None:
    ramp = torch.linspace(0, 1, 48).expand(200, 48, 48)
    images = torch.stack([ramp, ramp.mT], 3)  # the values are the places
    found = random_crop(images, 0.08, generator())
    assert torch.equal(found, random_crop(images, 0.08, generator()))
    across, down = found[:, 24, :, 0], found[:, :, 24, 1]
    sides = torch.stack([one[:, -3] - one[:, 2] for one in (across, down)]) * 47 / 43
    area = sides.prod(0)
    assert 0.07 < float(area.min()) < 0.12
    assert 0.95 < float(area.max()) <= 1.01
    ratio = sides[0] / sides[1]
    assert 0.7 < float(ratio.min()) < 0.8 < 1.25 < float(ratio.max()) < 1.4
    assert float(across.amin()) < 0.02
    assert float(down.amax()) > 0.98
    # Straight lines stay straight, as far as single pixels allow.
    steps = across[:, 3:-3].diff()
    assert float((steps - steps.mean(1, True)).abs().max()) < 4e-3
    whole = random_crop(images, 1.0, generator(1))[0]  # all of it, or as much as its sides allow
    assert float((whole - images[0]).abs().max()) < 0.2


def test_erasing_replaces_one_rectangle_in_its_share_of_the_images() -> None:
    images = torch.full((600, 16, 16, 2), 7.0)
    found = erase(images, 0.25, generator())
    changed = (found != 7.0).all(3)
    hit = changed.flatten(1).any(1)
    assert 110 < int(hit.sum()) < 190
    areas = changed[hit].flatten(1).float().mean(1)
    assert float(areas.min()) > 0.005
    assert float(areas.max()) < 0.45
    for one in changed[hit][:20]:
        rows, columns = one.any(1), one.any(0)
        assert torch.equal(one, rows[:, None] & columns[None])


def pixels(teacher=None) -> LabelledPixels:
    values = np.random.default_rng(0).normal(size=(64, 1, 1, 4)).astype(np.float32)
    targets = (values[:, 0, 0, 0] > 0).astype(np.int64)
    return LabelledPixels(lambda at: values[at], np.arange(64), targets, 2, teacher=teacher)


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        return self.layer(patches.flatten(1))


def trained(recipe: Recipe, labelled: LabelledPixels) -> nn.Module:
    torch.manual_seed(0)
    network = Line()
    train(network, labelled, labelled.subset(labelled.pixels[:0]), recipe, seed=0)
    return network


def test_sgd_is_that_of_torch() -> None:
    recipe = replace(
        PLAIN, optimiser="sgd", learning_rate=0.1, weight_decay=0.01, epochs=5, batch_size=64
    )
    recipe = replace(recipe, clip_norm=1e9, warmup=0.0, patience=1.0)
    found = trained(recipe, pixels())
    torch.manual_seed(0)
    other = Line()
    groups = [
        {"params": [other.layer.weight], "weight_decay": 0.01},
        {"params": [other.layer.bias], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True)
    schedule = recipe.schedule(64)
    patches, targets = pixels().batch(np.arange(64), torch.device("cpu"))
    for step in range(5):
        for group in optimiser.param_groups:
            group["lr"] = 0.1 * schedule.share(step, 5)
        optimiser.zero_grad()
        nn.functional.cross_entropy(other(patches), targets).backward()
        optimiser.step()
    torch.testing.assert_close(found.layer.weight, other.layer.weight, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.layer.bias, other.layer.bias, atol=1e-5, rtol=1e-4)


def test_the_recipes_of_the_papers() -> None:
    for name, epochs in (("autoformer-paper", 500), ("s3-paper", 300)):
        recipe = Recipe(**PRESETS[name])
        assert (recipe.epochs, recipe.rand_augment, recipe.magnitude) == (epochs, 2, 9.0)
        assert (recipe.erasing, recipe.mixup, recipe.cutmix) == (0.25, 0.8, 1.0)
        assert (recipe.crop, recipe.repeats) == (0.08, 3)
        assert recipe.warmup * epochs == pytest.approx(20)
