"""The recipes of published networks: what the released code does to pixels and learning rates."""

import numpy as np
import pytest
import torch

from hytas.data import Scene, SplitSettings, scene_from_arrays
from hytas.lab.published import networks
from hytas.lab.published.s2mamba import S2Mamba
from hytas.lab.published.training import TrainingPlan
from hytas.references import ReferenceSettings, Task
from hytas.spaces.shape import InputShape


@pytest.fixture(scope="module")
def task() -> Task:
    """A task of 20 x 12 pixels: 120 for training, 3 classes, 6 bands."""
    scene = small_scene()
    settings = ReferenceSettings(SplitSettings("random", train_per_class=40), patch_size=3)
    return Task.of(scene, settings.make_split(scene, 0), settings)


def small_scene() -> Scene:
    generator = np.random.default_rng(0)
    labels = np.repeat([1, 2, 3], 80).reshape(20, 12).astype(np.uint8)
    means = generator.integers(500, 3000, (4, 6))
    cube = means[labels] + generator.normal(0, 100, (20, 12, 6))
    return scene_from_arrays(cube.astype(np.int16), labels)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[torch.optim.Optimizer, TrainingPlan]]:
    """What is asked of training, which is left out."""
    asked: list[tuple[torch.optim.Optimizer, TrainingPlan]] = []
    monkeypatch.setattr(networks, "fit", lambda *values: asked.append((values[1], values[4])))
    return asked


def test_s2mamba_trains_as_published(
    task: Task, plans: list[tuple[torch.optim.Optimizer, TrainingPlan]]
) -> None:
    """400 epochs of two batches; the learning rate falls by a hundredth before each."""
    networks.s2mamba(task, lambda *_: None)
    optimizer, plan = plans[0]
    assert isinstance(optimizer, torch.optim.AdamW)
    assert optimizer.defaults["lr"] == 5e-4
    assert optimizer.defaults["weight_decay"] == 5e-3
    assert (len(task.train), plan.steps, plan.batch, plan.rest) == (120, 800, 64, True)
    rates = [plan.schedule(step / plan.steps) for step in range(plan.steps)]
    assert rates == [0.99 ** (1 + step // 2) for step in range(plan.steps)]


def test_s2mamba_drops_the_mixture_of_its_branches_as_often_as_values() -> None:
    mixed = S2Mamba(InputShape(6, 3, 3, 3)).train().skip.dropped(torch.ones(4000, 1, 1))
    assert float((mixed == 0).float().mean()) == pytest.approx(0.4, abs=0.03)


def test_gscvit_trains_as_released(
    task: Task, plans: list[tuple[torch.optim.Optimizer, TrainingPlan]]
) -> None:
    networks.gscvit(task, lambda *_: None)
    optimizer, plan = plans[0]
    assert isinstance(optimizer, torch.optim.AdamW)
    assert optimizer.defaults["lr"] == 1e-3
    assert optimizer.defaults["weight_decay"] == 0.05
    assert (plan.steps, plan.batch, plan.rest) == (200, 128, True)
    assert plan.schedule(0.0) == plan.schedule(0.99) == 1.0


def test_gscvit_divides_all_bands_by_one_range(task: Task) -> None:
    scaled = task.spectra(task.train, networks.one_range(task))
    raw = task.spectra(task.train, task.fit_scaling("minmax"))
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-6)
    rows, columns = np.unravel_index(task.train, (20, 12))
    values = np.asarray(task.read.cube[rows, columns], np.float64)
    whole = values.max() - values.min()
    np.testing.assert_allclose(np.ptp(scaled, axis=0), np.ptp(values, axis=0) / whole, rtol=1e-5)
    np.testing.assert_allclose(np.ptp(raw, axis=0), 1.0, rtol=1e-5)


def test_half_of_the_patches_are_flipped_or_turned() -> None:
    patch = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
    many = np.repeat(patch[None], 2000, axis=0)
    found = networks.flipped_or_turned(many.copy(), np.random.default_rng(0))
    ways = [patch, patch[:, ::-1], patch[::-1], *(np.rot90(patch, turns) for turns in (1, 2, 3))]
    shares = [float((found == way).all(axis=(1, 2, 3)).mean()) for way in ways]
    assert sum(shares) == 1.0
    np.testing.assert_allclose(shares, [0.5, *[0.1] * 5], atol=0.03)
