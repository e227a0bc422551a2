"""Published networks: their sizes, and their scans and attention against plain loops."""

import math

import pytest
import torch
from torch import Tensor, nn

from hytas.lab.published.gscvit import GSCViT, WindowedAttention
from hytas.lab.published.s2mamba import RANK, STATES, S2Mamba, Scan, SpatialBranch, SpectralBranch
from hytas.models import InputShape, count_parameters
from hytas.models.network import Network

INDIAN_PINES = InputShape(200, 16, 7, 3)


def test_s2mamba_has_the_published_size() -> None:
    """118,632 on Indian Pines; the sum is written out from the equations of the paper."""

    def branch(scans: int, channels: int) -> int:
        a_scan = channels * (4 + 2 * 16) + 4 * channels + channels + 16 * channels + channels
        return 64 * 256 + (9 + 1) * 128 + scans * a_scan + 2 * channels + 128 * 64

    gate = 2 * 128 + 128 * 128 + 128 + 2 * 128 + 2
    ends = (200 + 1) * 64 + 2 * 64 + 2 * 64 + (64 + 1) * 16
    assert count_parameters(S2Mamba(INDIAN_PINES)) == 118_632
    assert branch(4, 128) + branch(2, 49) + gate + ends == 118_632


def test_gscvit_has_the_released_size() -> None:
    """638,480 on Indian Pines in the released code, with a 3 x 3 convolution that is not called."""

    def stage(entering: int, width: int) -> int:
        convolutions = entering * width // 8 + width + 9 * width * width // 8 + width + 2 * width
        tokens = width + 2 * 16 + 256 * 512 + 512
        attention = 3 * 256 * width + tokens + 256 * width + width
        return convolutions + 2 * width + attention + 2 * width + width * width + width + 2 * width

    never_called = 64 * 128 * 9 + 128
    ends = 200 * 256 + 256 + 4 * 256 + 2 * 64 + 64 * 16 + 16
    found = count_parameters(GSCViT(INDIAN_PINES))
    assert found == stage(256, 128) + stage(128, 64) + ends == 564_624
    assert found + never_called == 638_480


@pytest.mark.parametrize("kind", [S2Mamba, GSCViT])
def test_published_networks_learn(kind: type[Network]) -> None:
    torch.manual_seed(0)
    network = kind(InputShape(12, 3, 3, 3))
    targets = torch.arange(6) % 3
    patches = torch.randn(6, 3, 3, 12) + targets[:, None, None, None]
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(10):
        loss = nn.functional.cross_entropy(network(patches), targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert min(losses[-3:]) < 0.7 * losses[0]


def changed(module: nn.Module) -> nn.Module:
    """The module with parameters unlike those that it starts with, in double precision."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return module.double().eval()


def plain_scan(scan: Scan, number: int, sequence: Tensor) -> Tensor:
    """One scan of one sequence (L, C), a value at a time."""
    project, widen, bias = scan.project[number], scan.widen[number], scan.bias[number]
    length, channels = sequence.shape
    found = torch.zeros(length, channels, dtype=sequence.dtype)
    state = [[0.0] * STATES for _ in range(channels)]
    for place in range(length):
        projected = sequence[place] @ project
        low, into, out_of = projected[:RANK], projected[RANK : RANK + STATES], projected[-STATES:]
        for channel in range(channels):
            step = math.log1p(math.exp(float(low @ widen[:, channel] + bias[channel])))
            value = float(sequence[place, channel])
            total = float(scan.skip[number, channel]) * value
            for index in range(STATES):
                rate = -math.exp(float(scan.log_rates[number, channel, index]))
                kept = math.exp(step * rate) * state[channel][index]
                state[channel][index] = kept + step * float(into[index]) * value
                total += float(out_of[index]) * state[channel][index]
            found[place, channel] = total
    return found


@torch.no_grad()
def test_scans_are_those_of_a_plain_loop() -> None:
    scan = changed(Scan(2, 3))
    assert isinstance(scan, Scan)
    sequences = torch.randn(2, 2, 5, 3, dtype=torch.float64)
    plain = [[plain_scan(scan, k, sequences[n, k]) for k in range(2)] for n in range(2)]
    expected = torch.stack([torch.stack(pair) for pair in plain])
    torch.testing.assert_close(scan(sequences), expected)


@torch.no_grad()
def test_pixels_are_scanned_by_rows_and_columns_from_both_ends() -> None:
    branch = changed(SpatialBranch(2))
    assert isinstance(branch, SpatialBranch)
    values = torch.randn(1, 4, 128, dtype=torch.float64)
    total = torch.zeros_like(values[0])
    for number, order in enumerate(([0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0], [3, 1, 2, 0])):
        sequences = values[:, None, order].expand(-1, 4, -1, -1)
        total[order] += branch.scan(sequences)[0, number]
    torch.testing.assert_close(branch.mix(values)[0], branch.norm(total))


@torch.no_grad()
def test_features_are_scanned_with_the_pixels_as_channels() -> None:
    branch = changed(SpectralBranch(2))
    assert isinstance(branch, SpectralBranch)
    values = torch.randn(1, 4, 9, dtype=torch.float64)
    first, second = (plain_scan(branch.scan, number, values[0].T) for number in (0, 1))
    expected = branch.norm(first + torch.flip(second, (0,))).T
    torch.testing.assert_close(branch.mix(values)[0], expected)


@torch.no_grad()
def test_small_shares_of_the_mixture_are_zero() -> None:
    network = S2Mamba(InputShape(12, 3, 3, 3)).eval()
    last = network.shares[3]
    assert isinstance(last, nn.Linear)
    last.bias.copy_(torch.tensor([3.0, -3.0]))
    patches = torch.randn(2, 3, 3, 12)
    before = network(patches)
    network.spectral.out.weight.mul_(-5.0)
    network.shares[0].weight.zero_()  # type: ignore[operator]
    torch.testing.assert_close(network(patches), before, atol=1e-3, rtol=0)


@torch.no_grad()
def test_windowed_attention_is_that_of_plain_loops() -> None:
    """On 4 x 8 pixels: two windows."""
    module = changed(WindowedAttention(5))
    assert isinstance(module, WindowedAttention)
    pixels = torch.randn(1, 4, 8, 5, dtype=torch.float64)
    inside = module.inside.weight.reshape(3, 16, 16, 5)
    expected = torch.zeros(4, 8, 16, 16, dtype=torch.float64)
    tokens, windows = [], []
    for left in (0, 4):
        own = torch.cat([module.token[None], pixels[0, :, left : left + 4].reshape(16, 5)])
        query, key, value = (own @ part.transpose(1, 2) for part in inside)  # (heads, 17, d)
        seen = torch.softmax(query @ key.transpose(1, 2) / 4.0, dim=-1) @ value
        tokens.append(seen[:, 0])
        windows.append(seen[:, 1:])
    between = [module.between(module.summary(token).flatten()).reshape(16, 32) for token in tokens]
    for number, left in enumerate((0, 4)):
        for head in range(16):
            query = between[number][head, :16]
            logits = torch.stack([query @ other[head, 16:] / 4.0 for other in between])
            shares = torch.softmax(logits, dim=0)
            mixed = shares[0] * windows[0][head] + shares[1] * windows[1][head]
            expected[:, left : left + 4, head] = mixed.reshape(4, 4, 16)
    torch.testing.assert_close(module(pixels)[0], module.out(expected.flatten(2)))
