"""Steps on tensors of the device alone: the weights of the usual steps, and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hytas.models import InputShape, build_network
from hytas.train import LabelledPixels, Recipe, TrainingResult, loop, train
from hytas.train.captured import ResidentSteps
from hytas.train.learner import OneNetwork
from hytas.train.state import TrainingState
from hytas.train.step import Course
from small import GATED

CPU = torch.device("cpu")
SHAPE = InputShape(bands=6, classes=3, patch_size=5)
CONV = GATED | {"patch": 5, "embed_dim": 16, "pixel_depth": 2, "pixel_mlp": [2, 2]}
CLASS = {**CONV, "pixel_mixer": "attention", "pixel_gate": "no", "pooling": "class"}
SERIES = {**CLASS, "tokens": "series", "fusion": "yes", "band_depth": 2, "band_mlp": [1, 2]}
RECIPE = Recipe(epochs=3, batch_size=8, drop_path=0.3)


def pixels(count: int, seed: int) -> LabelledPixels:
    """Pixels whose patches are noise."""
    generator = np.random.default_rng(seed)
    patches = generator.normal(size=(count, 5, 5, 6)).astype(np.float32)
    targets = generator.integers(0, 3, count)
    dark = np.full(6, -1.0, np.float32)
    return LabelledPixels(lambda chosen: patches[chosen], np.arange(count), targets, 3, dark)


def soft(count: int, seed: int) -> LabelledPixels:
    labels = np.random.default_rng(seed).dirichlet(np.ones(3), count).astype(np.float32)
    return replace(pixels(count, seed), soft_labels=labels)


def trained(
    architecture: dict[str, Any], recipe: Recipe, training: LabelledPixels, **options: Any
) -> tuple[dict[str, torch.Tensor], TrainingResult]:
    network = build_network(architecture, SHAPE, drop_path=recipe.drop_path, seed=3)
    result = train(network, training, pixels(9, 1), recipe, seed=7, **options)
    return network.state_dict(), result


@pytest.fixture
def resident(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after which trainings take these steps on the CPU."""
    return lambda: monkeypatch.setattr(loop, "captured_steps", ResidentSteps)


@pytest.mark.parametrize(
    ("architecture", "recipe", "data"),
    [
        (CONV, RECIPE, pixels),
        (SERIES, replace(RECIPE, class_weights=0.5, label_smoothing=0.1), pixels),
        (CLASS, replace(RECIPE, mixup=0.0), soft),
        (CONV, replace(RECIPE, repeats=2, band_dropout=0.3, mirror=True, dropout=0.1), pixels),
    ],
    ids=["convolutions", "series", "class token", "repeats"],
)
def test_the_weights_are_those_of_the_usual_steps(
    resident: Callable[[], None],
    architecture: dict[str, Any],
    recipe: Recipe,
    data: Callable[[int, int], LabelledPixels],
) -> None:
    expected, history = trained(architecture, recipe, data(27, 0))  # the last batch has 3 pixels
    resident()
    weights, same = trained(architecture, recipe, data(27, 0))
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value, rtol=1e-6, atol=1e-6)
    for one, other in zip(history.history, same.history, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-6)
        assert one.validation_oa == other.validation_oa


def steps_of(architecture: dict[str, Any], recipe: Recipe) -> ResidentSteps:
    """The steps of a training on the CPU before its first epoch."""
    learner = OneNetwork(build_network(architecture, SHAPE, drop_path=0.3, seed=3))
    data = pixels(27, 0)
    course = Course(data, recipe, recipe.schedule(len(data)), 1e-3, 0, CPU)
    return ResidentSteps(learner, TrainingState.of(learner.weights, {}), course, pixels(9, 1))


class Device(TorchDispatchMode):
    """Refuse operations for which a GPU would have to wait for the host."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func.overloadpacket)
        refused = (
            "_local_scalar_dense",
            "item",
            "nonzero",
            "masked_select",
            "unique",
            "is_nonzero",
        )
        assert not any(name == f"aten.{each}" for each in refused), name
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("architecture", [CONV, CLASS, SERIES, {**CONV, "tokens": "parallel"}])
def test_a_step_reads_and_makes_tensors_of_its_device_alone(architecture: dict[str, Any]) -> None:
    recipe = replace(RECIPE, class_weights=0.5, band_dropout=0.2, mirror=True, dropout=0.1)
    depth = {"band_depth": 1, "band_mlp": [1]} if architecture["tokens"] == "parallel" else {}
    steps = steps_of({**architecture, **depth}, recipe)
    steps.epoch()
    steps.step_in_epoch.zero_()
    # A tensor that is made without the name of its device would be on another one.
    with torch.device("meta"), Device():
        steps.step(8)
        steps.step(3)
        steps.evaluation()
    assert steps.losses.isfinite()
    assert steps.step_in_epoch == 2
