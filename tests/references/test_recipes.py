"""The recipes of published networks: what the released code does to pixels and learning rates."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from hytas.data import Scene, SplitSettings, scene_from_arrays
from hytas.lab.published import networks
from hytas.lab.published.s2mamba import S2Mamba
from hytas.references import ReferenceSettings, Task
from hytas.spaces.shape import InputShape
from hytas.train import Recipe, loop
from hytas.train.schedule import Schedule


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
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Recipe, Schedule]]:
    """What is asked of training, which is left out."""
    asked: list[tuple[Recipe, Schedule]] = []

    def note(task: Task, *values: Any) -> None:
        recipe, *schedule = values[3:]
        epochs = recipe.epochs_for(len(task.train))
        asked.append((recipe, (schedule or [Schedule])[0](epochs, 0.0, None)))

    monkeypatch.setattr(networks, "fit_published", note)
    return asked


def test_s2mamba_trains_as_published(task: Task, asked: list[tuple[Recipe, Schedule]]) -> None:
    """400 epochs of two batches; the learning rate falls by a hundredth before each."""
    networks.s2mamba(task, lambda *_: None)
    recipe, schedule = asked[0]
    assert (len(task.train), schedule.epochs) == (120, 400)
    assert (recipe.learning_rate, recipe.weight_decay, recipe.batch_size) == (5e-4, 5e-3, 64)
    rates = [schedule.share(step, 800) for step in range(800)]
    assert rates == [0.99 ** (1 + step // 2) for step in range(800)]


def test_s2mamba_drops_the_mixture_of_its_branches_as_often_as_values() -> None:
    mixed = S2Mamba(InputShape(6, 3, 3, 3)).train().skip.dropped(torch.ones(4000, 1, 1))
    assert float((mixed == 0).float().mean()) == pytest.approx(0.4, abs=0.03)


def test_gscvit_trains_as_released(task: Task, asked: list[tuple[Recipe, Schedule]]) -> None:
    networks.gscvit(task, lambda *_: None)
    recipe, schedule = asked[0]
    assert schedule.epochs == 200
    assert (recipe.learning_rate, recipe.weight_decay, recipe.batch_size) == (1e-3, 0.05, 128)
    assert schedule.share(0, 200) == schedule.share(199, 200) == 1.0


def test_the_state_of_a_training_holds_the_means_of_batch_normalisation(
    task: Task, tmp_path: Path
) -> None:
    method = networks.gscvit
    whole = method(replace(task, steps=6), lambda *_: None)
    stopping = replace(task, steps=6, fits=tmp_path / "fits")

    def stop(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with patch.object(loop, "CHECKPOINT_SECONDS", 0.0):
        with pytest.raises(KeyboardInterrupt):
            method(stopping, stop)
        steps: list[int] = []
        went_on = method(stopping, lambda what, done, total: steps.append(done))
    assert steps[0] == 3
    np.testing.assert_array_equal(went_on.probabilities, whole.probabilities)


def test_gscvit_divides_all_bands_by_one_range(task: Task) -> None:
    scaled = task.spectra(task.train, networks.one_range(task))
    raw = task.spectra(task.train, task.fit_scaling("minmax"))
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-6)
    rows, columns = np.unravel_index(task.train, (20, 12))
    values = np.asarray(task.read.cube[rows, columns], np.float64)
    whole = values.max() - values.min()
    np.testing.assert_allclose(np.ptp(scaled, axis=0), np.ptp(values, axis=0) / whole, rtol=1e-5)
    np.testing.assert_allclose(np.ptp(raw, axis=0), 1.0, rtol=1e-5)
