"""HyLITE's global-local alignment."""

import pytest
import torch
from torch import nn

from hytas.errors import InputError
from hytas.models import InputShape, Network, build_network
from hytas.train.alignment import Alignment
from refusals import refuses
from small import NARROW

SHAPE = InputShape(bands=6, classes=3, patch_size=3)


def test_penalty_is_the_distance_of_class_token_and_mean_of_the_others() -> None:
    network = build_network(NARROW, SHAPE, seed=3)
    patches = torch.randn(5, 3, 3, 6)
    found: list[torch.Tensor] = []
    network.band_stream.observer = found.append
    network(patches)
    (tokens,) = found
    assert tokens.shape == (5, 7, 32)  # all of them, though one is read
    expected = ((tokens[:, 0] - tokens[:, 1:].mean(1)) ** 2).sum(1).mean() / 32
    with Alignment(network) as aligned:
        network(patches)
    assert aligned.penalty.item() == pytest.approx(expected.item(), rel=1e-5)
    # Outside the context nothing is looked at.
    network(2 * patches)
    assert aligned.penalty.item() == pytest.approx(expected.item(), rel=1e-5)


def test_descending_it_draws_the_tokens_together() -> None:
    network = build_network(NARROW, SHAPE, seed=3)
    patches = torch.randn(16, 3, 3, 6)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    found = []
    for _ in range(20):
        with Alignment(network) as aligned:
            network(patches)
        found.append(aligned.penalty.item())
        optimizer.zero_grad()
        aligned.penalty.backward()
        optimizer.step()
    assert found[-1] < 0.5 * found[0]


class Silent(Network):
    """A network that overrides nothing of what it could do."""


def test_a_network_without_class_tokens_is_refused() -> None:
    with refuses("recipe", "alignment", "a Silent has no class token to align"):
        Alignment(Silent())


def test_a_module_that_does_not_say_what_it_can_do_is_refused() -> None:
    with pytest.raises(InputError, match="recipe alignment: a Linear does not say what it can do"):
        Alignment(nn.Linear(3, 2))
