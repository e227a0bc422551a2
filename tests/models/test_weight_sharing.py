"""One rule a parameter cuts the weights of any network from those of the largest."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from hytas._engine import Feasible, SearchSpace
from hytas.models import NETWORKS, InputShape, count_parameters
from hytas.models.blocks import NO_DROP
from hytas.models.weight_sharing import full_sizes, slice_of
from hytas.spaces.costs import cost

SHAPE = InputShape(bands=12, classes=4, patch_size=9, band_group=3)


def numbered(*size: int) -> Tensor:
    return torch.arange(torch.Size(size).numel()).view(size)


def on_meta(architecture: dict[str, Any]) -> nn.Module:
    """The plain network, without numbers."""
    with torch.device("meta"):
        network = NETWORKS[architecture["space"]](architecture, SHAPE, NO_DROP)
    # A convolution whose weight needs gradients may differ in the last bits.
    return network.eval().requires_grad_(False)


def sampled(space: str, count: int) -> Iterator[dict[str, Any]]:
    opened = SearchSpace.builtin(space, SHAPE.variables())
    for architecture in opened.unpack(Feasible(opened).sample(count, 3, "choices")):
        yield {"space": space, **architecture}


@pytest.mark.parametrize("name", ["band_stream.blocks.0.fc1.weight", "head.weight", "norm.bias"])
def test_leading_rows_and_columns_are_kept(name) -> None:
    full = numbered(6, 5)
    assert torch.equal(slice_of(name, full, torch.Size([4, 3])), full[:4, :3])
    assert torch.equal(slice_of(name, full[0], torch.Size([2])), full[0, :2])


@pytest.mark.parametrize("end", ["weight", "bias"])
def test_queries_keys_and_values_keep_whole_heads(end) -> None:
    heads, width = 4, 2  # of which 3 heads stay
    full = numbered(3, heads, width)
    name = f"pixel_stream.blocks.1.attention.qkv.{end}"
    found = slice_of(name, full.flatten(), torch.Size([3 * 3 * width]))
    assert torch.equal(found.view(3, 3, width), full[:, :3])
    if end == "weight":
        rows = full.flatten()[:, None] + numbered(5)
        found = slice_of(name, rows, torch.Size([3 * 3 * width, 4]))
        assert torch.equal(found, (full[:, :3].flatten()[:, None] + numbered(5))[:, :4])


def test_kernels_keep_their_middle() -> None:
    full = numbered(3, 1, 5, 5)
    found = slice_of("pixel_embed.near.weight", full, torch.Size([2, 1, 3, 3]))
    assert torch.equal(found, full[:2, :, 1:4, 1:4])
    # A band token stacks the pixels of a patch row by row, and the bands around its own.
    full = numbered(4, 5, 5, 7)
    found = slice_of("band_embed.project.weight", full.flatten(1, 2), torch.Size([2, 9, 3]))
    assert torch.equal(found, full[:2, 1:4, 1:4, 2:5].flatten(1, 2))


def test_tokens_keep_the_class_and_the_middle_pixels() -> None:
    place = torch.cat([torch.tensor([0]), 1 + numbered(5, 5)[1:4, 1:4].flatten()])
    full = numbered(1, 26, 8)
    found = slice_of("pixel_stream.position", full, torch.Size([1, 10, 4]))
    assert torch.equal(found, full[:, place, :4])
    full = numbered(2, 26, 26)
    found = slice_of("pixel_stream.fusions.0.weight", full, torch.Size([2, 10, 10]))
    assert torch.equal(found, full[:, place][:, :, place])
    found = slice_of("pixel_stream.fusions.0.bias", full[0, 0], torch.Size([10]))
    assert torch.equal(found, full[0, 0, place])
    # Bands have an order, and no middle.
    full = numbered(1, 26, 8)
    found = slice_of("band_stream.position", full, torch.Size([1, 10, 4]))
    assert torch.equal(found, full[:, :10, :4])


@pytest.mark.parametrize("space", ["hytas", "hytas-wide"])
def test_a_network_built_alone_computes_the_same_from_its_slices(space) -> None:
    generator = torch.Generator().manual_seed(0)
    full = {
        name: 0.1 * torch.randn(size, generator=generator)
        for name, size in full_sizes(space, SHAPE).items()
    }
    patches = torch.randn(2, 9, 9, SHAPE.bands, generator=generator)
    logits = []
    for place, architecture in enumerate(sampled(space, 200)):
        network = on_meta(architecture)
        views = {n: slice_of(n, full[n], p.shape) for n, p in network.named_parameters()}
        values = {name: view.contiguous() for name, view in views.items()}
        with torch.no_grad():
            lent = functional_call(network, values, (patches,))
            if place % 20 == 0:  # a stride changes the order of a sum, no more
                of_views = functional_call(network, views, (patches,))
                torch.testing.assert_close(of_views, lent, rtol=1e-4, atol=1e-5)
            network.load_state_dict(values, assign=True)  # a plain network, with no pool behind it
            assert torch.equal(lent, network(patches)), architecture
        logits.append(lent)
        counted = sum(value.numel() for value in values.values())
        assert counted == count_parameters(network) == cost(architecture, SHAPE, "params")
    assert torch.stack(logits).std() > 0.1  # not all the same, nor all zero
