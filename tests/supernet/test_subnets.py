"""A subnet computes what a network built alone computes with the same values."""

from typing import Any

import pytest
import torch

from hytas._engine import Feasible
from hytas.models import InputShape, build_network, count_parameters
from hytas.models.weight_sharing import full_sizes
from hytas.spaces import open_space
from hytas.spaces.shape import ImageShape
from hytas.supernet import Supernet
from hytas.train.slicing import put, runs_by_axis

SHAPE = InputShape(bands=7, classes=3, patch_size=5, band_group=3)
IMAGES = ImageShape.of("autoformer-mini", channels=7, classes=3, image_size=5)
# Networks of the other spaces for images are large; tests/models cuts slices of them.
SHAPES = {"hytas": SHAPE, "hytas-wide": SHAPE, "autoformer-mini": IMAGES}


def sampled(space: str, count: int) -> list[dict[str, Any]]:
    opened, budget = open_space(space, "100K-params", offered=SHAPES[space].variables())
    return opened.unpack(Feasible(opened, budget).sample(count, 5, "choices"))


def filled(space: str) -> Supernet:
    """A supernet with weights of chance for a part of each parameter."""
    generator = torch.Generator().manual_seed(1)
    shape = SHAPES[space]
    supernet = Supernet.new(space, shape, seed=4)
    for name, size in full_sizes(space, shape).items():
        part = size if len(size) != 2 else (size[0], max(1, size[1] // 2))
        supernet.weights[name] = 0.2 * torch.randn(*part, generator=generator)
    return supernet


@pytest.mark.parametrize("space", list(SHAPES))
def test_logits_and_counts_equal_those_of_networks_built_alone(space: str) -> None:
    supernet = filled(space)
    patches = torch.randn(2, 5, 5, 7, generator=torch.Generator().manual_seed(0))
    seen = []
    for place, architecture in enumerate(sampled(space, 60)):
        subnet = supernet.subnet(architecture)
        values = supernet.values(subnet)
        subnet.network.eval()
        with torch.no_grad():
            seen.append(subnet(values, patches))
            if place % 5 == 0:
                alone = build_network(architecture, SHAPES[space]).eval().requires_grad_(False)
                alone.load_state_dict(values)
                assert count_parameters(alone) == sum(v.numel() for v in values.values())
                assert torch.equal(seen[-1], alone(patches)), architecture
            assert torch.equal(seen[-1], supernet.network(architecture)(patches)), architecture
    assert torch.stack(seen).std() > 0.1


@pytest.mark.parametrize("space", list(SHAPES))
def test_what_was_never_trained_is_as_the_seed_gives_it(space: str) -> None:
    (architecture,) = sampled(space, 1)
    shape = SHAPES[space]
    fresh, kept = Supernet.new(space, shape, seed=4), filled(space)
    subnet = fresh.subnet(architecture)
    initial, values = fresh.values(subnet), kept.values(subnet)
    for name, value in values.items():
        part = kept.weights[name]
        if part.ndim == 2 and value.ndim == 2 and value.shape[1] > part.shape[1]:
            assert torch.equal(value[:, part.shape[1] :], initial[name][:, part.shape[1] :])
            assert not torch.equal(value[:, : part.shape[1]], initial[name][:, : part.shape[1]])
    again = Supernet.new(space, shape, seed=4).values(subnet)
    assert all(torch.equal(initial[name], again[name]) for name in initial)
    other = Supernet.new(space, shape, seed=5).values(subnet)
    assert not torch.equal(initial["head.weight"], other["head.weight"])


@pytest.mark.parametrize(
    ("name", "full", "part"),
    [
        ("pixel_stream.blocks.0.attention.qkv.weight", (24, 8), (12, 4)),
        ("pixel_stream.position", (1, 26, 8), (1, 10, 6)),
        ("pixel_stream.fusions.0.weight", (2, 26, 26), (2, 10, 10)),
        ("band_embed.project.weight", (8, 25, 7), (4, 9, 3)),
        ("head.weight", (3, 8), (3, 5)),
    ],
)
def test_a_slice_is_written_where_it_was_cut(name, full, part) -> None:
    whole = torch.arange(torch.Size(full).numel()).view(full)
    runs = runs_by_axis(name, torch.Size(full), torch.Size(part))
    places = [torch.cat([torch.arange(*run) for run in axis]) for axis in runs]
    values = -1 - torch.arange(torch.Size(part).numel()).view(part)
    expected = whole.clone()
    expected[torch.meshgrid(*places, indexing="ij")] = values
    written = whole.clone()
    put(name, written, values)
    assert torch.equal(written, expected)
    assert (written != whole).sum() == values.numel()
