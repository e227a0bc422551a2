"""Learning rates over time, and trainings that a longer one goes on from."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from hytas.train import LabelledPixels, Recipe, Schedule, train
from hytas.train.loop import Watch


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


def test_a_longer_training_goes_on_from_a_shorter_one(tmp_path: Path) -> None:
    recipe, path = Recipe(whitened=False, batch_size=8), tmp_path / "state.safetensors"
    long = Schedule(6, 2.0, 15.0)
    alone = Network()
    whole = train(alone, pixels(), pixels(), recipe, seed=3, schedule=long)
    short, again = Network(), Network()
    train(
        short,
        pixels(),
        pixels(),
        recipe,
        seed=3,
        schedule=Schedule(3, 2.0, None),
        watch=Watch(checkpoint=path),
    )
    assert path.exists()
    kept = Watch(checkpoint=path)
    rest = train(again, pixels(), pixels(), recipe, seed=3, schedule=long, watch=kept)
    torch.testing.assert_close(again.state_dict(), alone.state_dict(), rtol=0, atol=0)
    assert not torch.equal(short.linear.weight, alone.linear.weight)
    assert [e.loss for e in rest.history] == [e.loss for e in whole.history]
