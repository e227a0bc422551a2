"""Augmentation keeps shapes and classes, and draws from its generator alone."""

import itertools
from dataclasses import replace

import torch

from hytas.train import Recipe
from hytas.train.augment import augment, foreign_side, mix, random_symmetry

STILL = Recipe(flips=False, borders=0.0, band_noise=0.0, illumination=0.0, brightness=0.0)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def symmetries(patch: torch.Tensor) -> list[torch.Tensor]:
    turned = [torch.rot90(patch, quarter, (0, 1)) for quarter in range(4)]
    return turned + [item.transpose(0, 1) for item in turned]


def test_every_symmetry_of_the_square_occurs_and_nothing_else() -> None:
    patch = torch.arange(9.0 * 2).reshape(3, 3, 2)
    changed = random_symmetry(patch.repeat(400, 1, 1, 1), generator())
    counts = [sum(bool(torch.equal(one, other)) for one in changed) for other in symmetries(patch)]
    assert sum(counts) == 400
    assert min(counts) > 20  # 50 expected of each


def test_the_batch_given_is_left_as_it_was() -> None:
    patches = torch.randn(5, 3, 3, 4)
    before = patches.clone()
    changed = augment(patches, Recipe(brightness=0.2, band_noise=0.1), generator())
    assert torch.equal(patches, before)
    assert changed.shape == patches.shape


def test_a_foreign_side_is_the_same_side_of_another_patch_and_no_centre() -> None:
    count, side = 400, 5
    number = torch.arange(float(count))[:, None, None].expand(count, side, side)
    place = torch.arange(float(side * side)).view(1, side, side).expand(count, side, side)
    patches = torch.stack([number, place], dim=-1)
    changed = foreign_side(patches, 0.5, generator())
    assert torch.equal(changed[..., 1], patches[..., 1])  # every pixel stays in its place
    foreign = changed[..., 0] != number
    assert not foreign[:, 2, 2].any()
    touched = foreign.flatten(1).any(1)
    assert 150 < int(touched.sum()) < 250
    shapes = set()
    for mask, donor in zip(foreign[touched], changed[touched][..., 0], strict=True):
        assert len(donor[mask].unique()) == 1
        rows, columns = mask.any(1).tolist(), mask.any(0).tolist()
        assert bool((mask == torch.tensor(rows)[:, None] & torch.tensor(columns)).all())
        shapes.add((tuple(rows), tuple(columns)))
    whole = (True,) * side
    depths = [(True, False, False, False, False), (True, True, False, False, False)]
    expected = {(d[::s], whole) for d in depths for s in (1, -1)}
    assert shapes == expected | {(columns, rows) for rows, columns in expected}
    assert foreign_side(patches[:, :1, :1], 1.0, generator()).equal(patches[:, :1, :1])


def test_illumination_is_one_factor_of_the_raw_values_of_a_patch() -> None:
    offset, scale = torch.tensor([5.0, 40.0]), torch.tensor([2.0, 8.0])
    raw = 10.0 * torch.rand(6, 3, 3, 2) + 1.0
    recipe = replace(STILL, illumination=0.3)
    lit = augment((raw - offset) / scale, recipe, generator(), -offset / scale) * scale + offset
    factors = (lit / raw).reshape(6, -1)
    assert torch.allclose(factors, factors[:, :1].expand_as(factors), atol=1e-4)
    assert len(set(factors[:, 0].round(decimals=4).tolist())) == 6
    assert float((factors[:, 0] - 1.0).abs().max()) < 1.2


def test_light_and_noise_are_those_of_one_step_after_the_other() -> None:
    patches, dark = torch.randn(5, 3, 3, 4), torch.randn(4)
    recipe = replace(STILL, illumination=0.3, brightness=0.2, band_noise=0.1)
    draws = generator()
    light, factor, offset = (torch.randn(5, 1, 1, 1, generator=draws) for _ in range(3))
    noise = torch.empty_like(patches).normal_(0.0, 0.1, generator=draws)
    lit = (patches - dark) * (1.0 + 0.3 * light) + dark
    expected = lit * (1.0 + 0.2 * factor) + 0.2 * offset + noise
    torch.testing.assert_close(augment(patches, recipe, generator(), dark), expected)


def test_without_augmentation_nothing_changes() -> None:
    patches = torch.randn(5, 3, 3, 4)
    assert torch.equal(augment(patches, STILL, generator()), patches)


def test_mixup_mixes_inputs_and_targets_by_one_share() -> None:
    patches = torch.eye(6).reshape(6, 1, 1, 6)
    targets = torch.eye(6)
    mixed, soft = mix(patches, targets, Recipe(mixup=0.4), generator(1))
    assert torch.allclose(mixed.reshape(6, 6), soft)
    assert torch.allclose(soft.sum(1), torch.ones(6))
    shares = {round(float(row.max()), 6) for row in soft}
    assert len(shares) <= 2  # the share, or 1 for a pixel paired with itself


def test_draws_repeat_with_the_generator() -> None:
    patches = torch.randn(5, 3, 3, 4)
    recipe = Recipe(brightness=0.2, band_noise=0.1)
    first, again, other = (augment(patches, recipe, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise([first, other]))


def test_dropped_bands_are_dropped_for_the_whole_patch() -> None:
    patches = torch.ones(200, 3, 3, 50)
    recipe = replace(STILL, band_dropout=0.5)
    kept = augment(patches, recipe, generator())
    assert set(kept.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(kept, kept[:, :1, :1].expand_as(kept))
    share = 1.0 - kept[:, 0, 0].mean(dim=1)
    assert 0.2 < float(share.mean()) < 0.3  # between none and half of the bands, each alike
    assert float(share.max()) < 0.75
