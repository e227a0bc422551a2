"""The network against its published sizes and a naive evaluation."""

import csv
import json

import pytest
import torch
from torch.nn import functional

from hytas.models import InputShape, SpectralTransformer, build_network, count_parameters
from hytas.models.layers import repeat_ends
from hytas.models.spectral import POOLINGS, TOKENS, Layers

ARCHITECTURE = {
    "space": "hytas",
    "depth": 5,
    "embed_dim": 32,
    "num_heads": [3, 4, 5, 6, 3],
    "mlp_ratio": [1, 2, 3, 4, 5],
}
SHAPE = InputShape(bands=12, classes=5)


def test_logits_have_one_column_a_class() -> None:
    logits = build_network(ARCHITECTURE, SHAPE)(torch.randn(3, 7, 7, 12))
    assert logits.shape == (3, 5)


def test_seed_alone_decides_the_weights() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = (build_network(ARCHITECTURE, SHAPE, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.head.weight, same.head.weight)
    assert not torch.equal(one.head.weight, other.head.weight)


def test_embedding_stacks_neighbouring_bands() -> None:
    """The convolution equals the linear map of stacked patches that the papers describe."""
    network = build_network(ARCHITECTURE, SHAPE)
    patches = torch.randn(2, 7, 7, 12)
    padded = torch.cat([patches[..., :1], patches, patches[..., -1:]], dim=3).flatten(1, 2)
    weight = network.band_embed.project.weight  # (E, 49, 3)
    for band in range(12):
        stacked = padded[:, :, band : band + 3].flatten(1)
        expected = functional.linear(stacked, weight.flatten(1), network.band_embed.project.bias)
        assert torch.allclose(network.band_embed(patches)[:, band], expected, atol=1e-5)


@pytest.mark.parametrize("margin", [0, 1, 7])
def test_bands_beyond_the_ends_repeat_them_with_and_without_a_gradient(margin: int) -> None:
    pixels = torch.randn(2, 4, 9, dtype=torch.float64)
    expected = functional.pad(pixels, (margin, margin), mode="replicate") if margin else pixels
    assert torch.equal(repeat_ends(pixels, margin), expected)
    entering = pixels.clone().requires_grad_()
    assert torch.equal(repeat_ends(entering, margin), expected)
    assert torch.autograd.gradcheck(lambda x: repeat_ends(x, margin), entering)


def test_attention_scales_by_the_truncated_head_width() -> None:
    attention = build_network(ARCHITECTURE, SHAPE).band_stream.blocks[0].attention
    tokens = torch.randn(1, 13, 32)
    query, key, value = (part.view(13, 3, 10) for part in attention.qkv(tokens, tokens, scale=1.0))
    mixed = [
        torch.softmax(query[:, h] @ key[:, h].T * 10**-0.5, dim=1) @ value[:, h] for h in range(3)
    ]
    expected = attention.proj(torch.cat(mixed, dim=1))
    assert torch.allclose(attention(tokens)[0], expected, atol=1e-5)


def test_fusion_mixes_the_input_of_two_layers_ago() -> None:
    network = build_network(ARCHITECTURE, SHAPE).eval()
    seen = []
    for block in network.band_stream.blocks:
        block.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    network(torch.randn(1, 7, 7, 12))
    fusion = network.band_stream.fusions[1]  # before layer 3, of the output of 2 and the input of 1
    expected = fusion.weight[0] @ seen[2][1] + fusion.weight[1] @ seen[1][0] + fusion.bias[:, None]
    assert torch.allclose(seen[3][0], expected, atol=1e-5)


def test_drop_path_acts_in_training_only() -> None:
    network = build_network(ARCHITECTURE, SHAPE, drop_path=0.9)
    patches = torch.randn(4, 7, 7, 12)
    assert not torch.equal(network(patches), network(patches))
    network.eval()
    assert torch.equal(network(patches), network(patches))


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_last_layer_of_what_is_read_is_the_whole_layer(tokens: str, pooling: str) -> None:
    """Logits and gradients are those of a network whose last layers compute every token."""
    layers = Layers((2, 4, 2), (1, 2, 1))
    torch.manual_seed(0)
    genes = {
        "tokens": tokens,
        "patch": 3,
        "band_width": 3,
        "band_stride": 2,
        "pooling": pooling,
        "fusion": "yes",
        "embed_dim": 16,
    }
    shape = InputShape(bands=12, classes=5, patch_size=5)
    network = SpectralTransformer(shape, genes, {"band": layers, "pixel": layers})
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3.0)
    patches = torch.randn(4, 5, 5, 12)
    read = network(patches)
    gradients = torch.autograd.grad(read.square().mean(), list(network.parameters()))
    seen: list[torch.Size] = []
    for stream in network.token_streams.values():
        stream.observer = lambda tokens: seen.append(tokens.shape)
    whole = network(patches)
    expected = torch.autograd.grad(whole.square().mean(), list(network.parameters()))
    counts = {"band": 7, "pixel": 10}
    assert [shape[1] for shape in seen] == [counts[name] for name in network.token_streams]
    assert torch.allclose(read, whole, rtol=0, atol=1e-6)
    for found, wanted in zip(gradients, expected, strict=True):
        assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("scene", "bands", "classes", "group"),
    [("indian", 200, 16, 3), ("houston", 144, 15, 3), ("pavia", 103, 9, 7)],
)
def test_size_is_the_published_one_and_the_fusions(
    shared, scene: str, bands: int, classes: int, group: int
) -> None:
    shape = InputShape(bands, classes, 7, group)
    with (shared / "hytas2000" / f"{scene}.csv").open() as file:
        rows = list(csv.DictReader(file))[::100]
    assert rows
    for row in rows:
        heads, ratios = json.loads(row["num_heads"]), json.loads(row["mlp_ratio"])
        with torch.device("meta"):
            genes = {"embed_dim": int(row["embed_dim"]), "num_heads": heads, "mlp_ratio": ratios}
            network = build_network({"space": "hytas", **genes}, shape)
        fusions = (len(heads) - 2) * (2 * shape.tokens**2 + shape.tokens)
        # The published counts leave the fusions out and give qkv a bias that the network lacks.
        bias = sum(3 * h * (int(row["embed_dim"]) // h) for h in heads)
        assert count_parameters(network) == int(row["params"]) + fusions - bias
