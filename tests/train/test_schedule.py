"""Learning rates over time, and trainings that a longer one goes on from."""

import pytest
import torch
from torch import Tensor

from hytas.train import LabelledPixels, Schedule


def test_a_steady_rate_falls_only_at_the_end() -> None:
    assert {Schedule(10, 0.0, None).share(step, 100) for step in range(100)} == {1.0}
    late = Schedule(10, 0.0, 60.0)
    assert {late.share(step, 100) for step in range(61)} == {1.0}
    assert late.share(80, 100) == pytest.approx(0.5)


def pixels() -> LabelledPixels:
    generator = torch.Generator().manual_seed(0)
    targets = (torch.arange(40) % 2).numpy()
    patches = torch.randn(40, 3, 3, 4, generator=generator).numpy()
    return LabelledPixels(lambda chosen: patches[chosen], torch.arange(40).numpy(), targets, 2)


class Network(torch.nn.Module):
    """One linear layer, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.drop = torch.nn.Linear(36, 2), torch.nn.Dropout(0.2)

    def forward(self, patches: Tensor) -> Tensor:
        return self.linear(self.drop(patches.flatten(1)))
