"""Weights of a network for images of one size, carried over to another size."""

import pytest
import torch

from hytas.models import build_network
from hytas.models.transfer import carry_over
from hytas.spaces.shape import ImageShape

VIT = {
    "space": "autoformer-mini",
    "depth": 2,
    "embed_dim": 32,
    "num_heads": [2, 2],
    "mlp_ratio": [2, 2],
}
PIT = {
    "space": "pit-tiny",
    "base_dim": 16,
    "depth": [1, 2, 2],
    "num_heads": [2, 2, 2],
    "mlp_ratio": 2,
}
S3 = {
    "space": "s3",
    "embed_dim": 24,
    "window": [7, 7, 7, 7],
    **{f"depth_{n}": 1 for n in range(1, 5)},
    **{f"num_heads_{n}": [n] for n in range(1, 5)},
    **{f"mlp_ratio_{n}": [2] for n in range(1, 5)},
}


def networks(genes: dict, side: int, channels: int = 3, classes: int = 4):
    return build_network(genes, ImageShape.of(genes["space"], channels, classes, side), seed=side)


@pytest.mark.parametrize("genes", [VIT, PIT, S3], ids=lambda genes: genes["space"])
@pytest.mark.parametrize(("side", "channels"), [(32, 3), (64, 3), (16, 1)])
def test_every_space_takes_other_images(genes: dict, side: int, channels: int) -> None:
    old, new = networks(genes, 32), networks(genes, side, channels, classes=7)
    head = new.head.weight.clone()
    carry_over(new, old.state_dict(), same_classes=False)
    assert torch.equal(new.head.weight, head)  # other classes: it begins anew
    found = new(torch.randn(2, side, side, channels))
    assert found.shape == (2, 7)
    assert found.isfinite().all()


def test_positions_are_interpolated() -> None:
    old, new = networks(VIT, 8), networks(VIT, 16)  # 4 x 4 and 8 x 8 patches
    ramp = torch.arange(4.0)[:, None].expand(4, 4).flatten()
    with torch.no_grad():
        old.stream.position[0, 1:] = ramp[:, None]
        old.stream.position[0, 0] = 9.0
    carry_over(new, old.state_dict(), same_classes=True)
    position = new.stream.position.detach()
    grid = position[0, 1:, 0].view(8, 8)
    assert float(position[0, 0, 0]) == 9.0
    assert torch.allclose(grid, grid[:, :1].expand(8, 8), atol=1e-5)
    assert (grid[1:, 0] > grid[:-1, 0]).all()


def test_an_enlarged_image_has_the_same_tokens() -> None:
    old, new = networks(VIT, 32), networks(VIT, 128, channels=1)  # patches of 4 and 16 pixels
    carry_over(new, old.state_dict(), same_classes=True)
    image = torch.randn(1, 32, 32, 1)
    one = old.patch_embed(image.expand(-1, -1, -1, 3))
    other = new.patch_embed(image.repeat_interleave(4, 1).repeat_interleave(4, 2))
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
