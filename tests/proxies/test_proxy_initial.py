"""Initial weights: slices of one pool, by the initializers of the network."""

import math

import pytest
import torch
from small_networks import SMALL, WIDE
from torch import nn

from hytas.models import build_network
from hytas.proxies.initial import NOISE, DrawnPool, start_of


def pool(seed: int = 0) -> DrawnPool:
    return DrawnPool(seed, torch.device("cpu"), torch.float32)


def values_of(architecture, shape, draws) -> dict[str, torch.Tensor]:
    return start_of(architecture, shape, draws).values


def test_draws_depend_on_seed_and_name_alone() -> None:
    one, other = pool(), pool()
    first = one.draws("a", "normal", (70, 300))
    other.draws("b", "normal", (70, 300))
    other.draws("a", "uniform", (70, 300))
    assert torch.equal(other.draws("a", "normal", (70, 300)), first)
    assert not torch.equal(other.draws("b", "normal", (70, 300)), first)
    assert not torch.equal(pool(1).draws("a", "normal", (70, 300)), first)
    assert len(torch.unique(first)) > 0.99 * first.numel()


def test_matrices_of_any_size_share_what_they_have_in_common() -> None:
    whole = pool().draws("w", "normal", (700, 1000))
    grown = pool()
    for rows, columns in ((700, 90), (80, 1000), (300, 224), (64, 512), (65, 513), (300, 336)):
        assert torch.equal(grown.draws("w", "normal", (rows, columns)), whole[:rows, :columns])
        assert torch.equal(pool().draws("w", "normal", (rows, columns)), whole[:rows, :columns])
    whole = pool().draws("qkv", "normal", (3 * 200, 100), 3).view(3, 200, 100)
    part = pool().draws("qkv", "normal", (3 * 70, 40), 3).view(3, 70, 40)
    assert torch.equal(part, whole[:, :70, :40])


def test_initial_weights_follow_the_networks_own_laws(wide_shape) -> None:
    networks = [*WIDE, {**SMALL[0], "embed_dim": 96}]
    for architecture in networks:
        values = values_of(architecture, wide_shape, pool())
        own = dict(build_network(architecture, wide_shape).named_parameters())
        assert values.keys() == own.keys()
        for name, value in values.items():
            assert value.shape == own[name].shape
            if own[name].std() == 0 or own[name].numel() == 1:
                assert torch.equal(value, own[name]), name
                continue
            # The deviation of a sample of n varies by less than 1 / sqrt(2 n).
            close = 5.0 / math.sqrt(value.numel())
            assert value.std().item() == pytest.approx(own[name].std().item(), rel=close), name
            assert abs(value.mean()) < close * own[name].std(), name
            if value.numel() > 1000:
                assert value.abs().max() < 1.5 * own[name].abs().max(), name


def test_networks_share_what_they_have_in_common(wide_shape) -> None:
    draws = pool()

    def values(**genes: object) -> dict[str, torch.Tensor]:
        return values_of({**WIDE[1], **genes}, wide_shape, draws)

    name = "pixel_stream.blocks.0.fc2.weight"
    narrow, broad = (values(embed_dim=width, pixel_mlp=[2] * 3)[name] for width in (32, 48))
    assert torch.equal(narrow, broad[:32, :64])
    few, many = (values(pixel_mlp=[ratio] * 3)[name] for ratio in (1, 4))
    assert torch.equal(few, many[:, :32])
    # A width that the space does not list is cut from larger draws of the same name.
    assert torch.equal(values(embed_dim=300)[name][:32, :64], narrow)


def test_the_twin_has_noise_on_every_linear_weight(wide_shape) -> None:
    start = start_of(WIDE[3], wide_shape, pool())
    twin = start.perturbed(start.values)
    modules = dict(start.network.named_modules())
    for name, value in start.values.items():
        moved = twin[name] - value
        module = modules[name.rpartition(".")[0]]
        seen = isinstance(module, nn.Linear | nn.Conv1d) and name.endswith("weight")
        expected = NOISE * value.norm().item() if seen else 0.0
        assert moved.norm().item() == pytest.approx(expected, rel=1e-3), name
    patches = torch.randn(5, 3, 3, 20, generator=torch.Generator().manual_seed(0))
    moved = pool().perturbed(patches) - patches
    assert moved.norm().item() == pytest.approx(NOISE * patches.norm().item(), rel=1e-3)


def test_the_sign_step_leaves_what_it_is_told_to(wide_shape) -> None:
    start = start_of(WIDE[3], wide_shape, pool())
    assert start.signed("none") is start.values
    for name, value in start.signed("weights").items():
        assert torch.equal(value, start.values[name].abs())
    released = start.signed("released")
    assert torch.equal(released["head.weight"], start.values["head.weight"])
    for name in ("band_stream.fusions.0.weight", "pixel_embed.near.weight", "band_stream.position"):
        assert torch.equal(released[name], start.values[name].abs())
