"""Importance of bands and of neighbours, and attention, on networks whose answer is known."""

import numpy as np
import pytest
import torch
from torch import nn

from hytas.models import build_network
from hytas.run.explaining import explain, neighbouring
from hytas.spaces.shape import ImageShape, InputShape
from hytas.train import LabelledPixels


class Planted(nn.Module):
    """Tells two classes by one band of one pixel."""

    def __init__(self, row: int, column: int, band: int) -> None:
        super().__init__()
        self.place = (slice(None), row, column, band)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        value = 4 * patches[self.place]
        return torch.stack([-value, value], dim=1)


def samples(side: int, bands: int, count: int = 120) -> LabelledPixels:
    """Noise, and classes by the sign of band 5 at row 1, column 2 (0 of a single pixel)."""
    patches = np.random.default_rng(0).normal(size=(count, side, side, bands)).astype(np.float32)
    values = patches[:, min(1, side - 1), min(2, side - 1), 5]
    targets = (values > 0).astype(np.int64)
    return LabelledPixels(lambda at: patches[at], np.arange(count), targets, 2)


@pytest.mark.parametrize("side", [1, 5, 16])
def test_the_planted_band_and_pixel_rank_first(side: int) -> None:
    network = Planted(min(1, side - 1), min(2, side - 1), 5)
    groups = neighbouring(np.arange(12), 6)
    found = explain(network, samples(side, 12), groups)
    assert found.accuracy == 1.0
    assert found.bands.order()[0] == 2  # bands 5 and 6, counted from 1
    assert found.bands.accuracy[2] == pytest.approx(0.5, abs=0.15)
    assert found.bands.gradient.tolist() == [0, 0, 1, 0, 0, 0]
    others = [0, 1, 3, 4, 5]
    assert not found.bands.probability[others].any()
    if side == 1:
        assert found.cells is None
    else:
        place = 1 * 5 + 2 if side == 5 else 1  # cells of an image of 16 pixels have 2
        assert found.cells is not None
        assert found.cells.order()[0] == place == int(found.cells.gradient.argmax())
    assert not found.attention


def test_probabilities_are_calibrated() -> None:
    network, data, groups = Planted(0, 0, 5), samples(1, 12), neighbouring(np.arange(12), 6)
    found = explain(network, data, groups, temperature=2.0)
    value = np.abs(data.patches(data.pixels)[:, 0, 0, 5])
    assert found.probability == pytest.approx(np.mean(1 / (1 + np.exp(-8 * value / 2))))
    assert found.accuracy == explain(network, data, groups).accuracy


@pytest.mark.parametrize("of", ["scene", "images"])
def test_attention_is_that_of_the_layers(of: str) -> None:
    genes = {"depth": 2, "embed_dim": 32, "num_heads": [3, 4], "mlp_ratio": [1, 1]}
    if of == "scene":
        network = build_network({"space": "hytas", **genes}, InputShape(12, 2, 5, 1))
        shape, stream, tokens = samples(5, 12), "band", 13
    else:
        sizes = ImageShape(6, 2, 16, 4, 2)
        network = build_network({"space": "autoformer-mini", **genes}, sizes)
        shape, stream, tokens = samples(16, 6), "patch", 17
    with torch.no_grad():  # the first head of the first layer attends to all tokens alike
        attention = network.token_streams[stream].blocks[0].attention
        attention.qkv.weight[: attention.head_dim] = 0
    data = LabelledPixels(shape.patches, shape.pixels, shape.targets * 0, 2)
    before = network(torch.from_numpy(shape.patches(np.arange(3))))
    found = explain(network, data, neighbouring(np.arange(3), 3), repeats=1)
    assert [(one.stream, one.layer) for one in found.attention] == [(stream, 1), (stream, 2)]
    for one, heads in zip(found.attention, (3, 4), strict=True):
        assert one.tokens is not None
        assert one.tokens.shape == (heads, tokens)
        np.testing.assert_allclose(one.tokens.sum(1), 1, rtol=1e-5)
        assert one.alike is not None
        assert -1 <= one.alike <= 1
    np.testing.assert_allclose(found.attention[0].tokens[0], 1 / tokens, rtol=1e-4)
    after = network(torch.from_numpy(shape.patches(np.arange(3))))  # nothing observes it now
    torch.testing.assert_close(before, after)


def test_groups_of_bands_respect_gaps() -> None:
    bands = np.array([0, 1, 2, 3, 10, 11, 20])
    assert [part.tolist() for part in neighbouring(bands, 4)] == [[0, 1], [2, 3], [4, 5], [6]]
    assert [part.tolist() for part in neighbouring(bands, 2)] == [[0, 1, 2, 3], [4, 5, 6]]
    assert [len(part) for part in neighbouring(bands, 99)] == [1] * 7
