"""Layers with a mixer and a gate, against their formula written out."""

import pytest
import torch
import torch.nn.functional as F

from hytas.models import InputShape, build_network, count_parameters
from hytas.models.blocks import MIXERS, Drop, Layers, MixerBlock, layer_of
from small import GATED

SIDE, WIDTH = 5, 16


def block(mixer: str, gate: bool, drop: Drop = Drop()) -> MixerBlock:  # noqa: B008
    torch.manual_seed(0)
    made = MixerBlock(WIDTH, mixer, gate, 4, 2, (SIDE, SIDE), drop).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def written_out(made: MixerBlock, tokens: torch.Tensor) -> torch.Tensor:
    """x + fc2(norm(silu(mix(fc1(norm(x))))) * gelu(gate(norm(x)))), pixel by pixel."""
    normed = made.norm1(tokens)
    expanded = normed @ made.fc1.weight.T
    mixed = expanded
    if made.near is not None:
        margin = made.near.kernel_size[0] // 2
        grid = F.pad(expanded.view(-1, SIDE, SIDE, 2 * WIDTH), (0, 0, *(margin,) * 4))
        rows = []
        for row in range(SIDE):
            for column in range(SIDE):
                window = grid[:, row : row + 2 * margin + 1, column : column + 2 * margin + 1]
                kernel = made.near.weight[:, 0].permute(1, 2, 0)  # (k, k, f)
                rows.append((window * kernel).sum((1, 2)) + made.near.bias)
        mixed = torch.stack(rows, 1)
    elif made.attention is not None:
        size = WIDTH * 2 // 4
        query, key, value = (expanded @ made.attention.qkv.weight.T).chunk(3, -1)
        heads = []
        for head in range(4):
            one = slice(head * size, (head + 1) * size)
            weights = torch.softmax(query[..., one] @ key[..., one].mT / size**0.5, -1)
            heads.append(weights @ value[..., one])
        mixed = made.attention.proj(torch.cat(heads, -1))
    branch = made.norm2(mixed * torch.sigmoid(mixed))
    if made.gate is not None:
        gate = normed @ made.gate.weight.T
        branch = branch * gate * 0.5 * (1 + torch.erf(gate / 2**0.5))
    return tokens + branch @ made.fc2.weight.T


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("mixer", MIXERS)
@torch.no_grad()
def test_a_layer_is_its_formula(mixer: str, gate: bool) -> None:
    made, tokens = block(mixer, gate), torch.randn(3, SIDE**2, WIDTH)
    expected = written_out(made, tokens)
    torch.testing.assert_close(made(tokens), expected, rtol=1e-4, atol=1e-4)
    # Only the tokens that are read.
    for read in (slice(12, 13), slice(0, 1), slice(None)):
        torch.testing.assert_close(made(tokens, read), expected[:, read], rtol=1e-4, atol=1e-4)


def test_published_sizes() -> None:
    layer = MixerBlock(64, "conv3", True, 2, 2, (7, 7))
    assert count_parameters(layer) == 26_240
    assert count_parameters(build_network(GATED, InputShape(200, 16))) == 40_272


def test_attention_without_a_gate_is_the_transformers_layer() -> None:
    assert not isinstance(layer_of(Layers([4], [2]), 0, WIDTH, (SIDE, SIDE)), MixerBlock)
    assert isinstance(layer_of(Layers([4], [2], gate=True), 0, WIDTH, (SIDE, SIDE)), MixerBlock)


def test_a_network_without_attention_has_no_class_token() -> None:
    network = build_network(GATED, InputShape(20, 4))
    (stream,) = network.token_streams.values()
    assert stream.class_token is None
    assert stream.position is None
    names = [name for name, _ in network.named_parameters()]
    assert not [name for name in names if "token" in name or "pixel_embed.near" in name]


def test_every_token_counts_alike_in_the_mean() -> None:
    """The norm is taken before the mean: a token that is ten times as large says no more."""
    network = build_network({**GATED, "pixel_mixer": "none"}, InputShape(6, 4, 7)).eval()
    tokens = torch.randn(1, 49, 64)
    scaled = tokens.clone()
    scaled[:, 0] *= 10
    norm = network.norms["pixel"]
    with torch.no_grad():
        moved = norm(scaled).mean(1) - norm(tokens).mean(1)
    assert moved.abs().max() < 0.02
