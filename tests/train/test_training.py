"""The training loop: it learns, watches, stops, and resumes to the same bit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hytas.errors import InputError
from hytas.models import InputShape, build_network
from hytas.train import DivergedError, LabelledPixels, Recipe, train
from small import NARROW, pixels

SHAPE = InputShape(bands=6, classes=3, patch_size=3)
RECIPE = Recipe(epochs=6, batch_size=8, mixup=0.2, band_noise=0.1, brightness=0.1)


NOTHING = LabelledPixels(
    lambda chosen: np.empty((0, 3, 3, 6), np.float32),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    3,
)


def network() -> torch.nn.Module:
    return build_network(NARROW, SHAPE, drop_path=0.1, seed=3)


def test_it_learns() -> None:
    recipe = Recipe(epochs=25, batch_size=8, patience=1.0)
    result = train(network(), pixels(48, 0), pixels(24, 1), recipe, seed=0)
    best = result.history[result.best_epoch - 1]
    assert best.validation_oa is not None
    assert best.validation_oa > 0.9
    assert best.loss < result.history[0].loss


def test_same_seed_same_weights_and_another_seed_others() -> None:
    weights = []
    for seed in (0, 0, 1):
        trained = network()
        train(trained, pixels(24, 0), pixels(8, 1), RECIPE, seed=seed)
        weights.append(trained.head.weight)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_order_of_patches_in_memory_changes_nothing() -> None:
    """Scenes are read band by band; a copy of their patches on another machine is not."""
    by_pixel = pixels(48, 0)
    by_band = replace(
        by_pixel,
        patches=lambda chosen: np.moveaxis(
            np.ascontiguousarray(np.moveaxis(by_pixel.patches(chosen), -1, 0)), 0, -1
        ),
    )
    for one, other in zip(
        by_pixel.batch(np.arange(4), torch.device("cpu")),
        by_band.batch(np.arange(4), torch.device("cpu")),
        strict=True,
    ):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_stops_when_validation_no_longer_improves() -> None:
    """Random labels in the validation pixels cannot be learned."""
    watched = pixels(30, 1)
    watched = replace(watched, targets=np.random.default_rng(0).permutation(watched.targets))
    recipe = Recipe(epochs=40, batch_size=8, patience=0.1)
    result = train(network(), pixels(24, 0), watched, recipe, seed=0)
    assert result.stopped_early
    assert len(result.history) == result.best_epoch + 4


def test_without_validation_pixels_the_last_epoch_counts() -> None:
    result = train(network(), pixels(24, 0), NOTHING, replace(RECIPE, patience=0.1), seed=0)
    assert result.best_epoch == len(result.history) == 6
    assert result.history[-1].validation_oa is None


def test_a_training_that_diverges_says_so() -> None:
    wild = replace(RECIPE, learning_rate=1e30, clip_norm=1e30)
    with pytest.raises(DivergedError, match=r"recipe learning_rate 1e\+30: .* diverged in epoch"):
        train(network(), pixels(24, 0), pixels(9, 1), wild, seed=0)
    # In its only step, whose loss is still a number, with no validation pixel to see it.
    with pytest.raises(DivergedError, match="diverged in epoch 1 of 1"):
        train(network(), pixels(8, 0), NOTHING, replace(wild, epochs=1), seed=0)


def test_the_callers_random_numbers_stay_as_they_were() -> None:
    model = network()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(model, pixels(24, 0), NOTHING, RECIPE, seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_steps_become_whole_epochs() -> None:
    recipe = Recipe(steps=100, batch_size=64)
    assert recipe.epochs_for(640) == 10
    assert recipe.epochs_for(650) == 10
    assert recipe.epochs_for(10) == 100
    assert recipe.with_epochs(0).epochs_for(10) == 0


@pytest.mark.parametrize(
    ("field", "value"), [("epochs", -1), ("steps", 0), ("batch_size", 0), ("learning_rate", 0.0)]
)
def test_bad_recipes_are_refused(field: str, value: float) -> None:
    with pytest.raises(InputError, match=str(value)):
        Recipe(**{field: value})


def test_class_weights_raise_what_is_rare() -> None:
    """One in sixteen training pixels is rare and looks like the others: its probability rises."""
    generator = np.random.default_rng(5)
    patches = generator.normal(0, 0.3, (64, 3, 3, 6)).astype(np.float32)
    targets = np.zeros(64, np.int64)
    targets[:4] = 1
    training = LabelledPixels(lambda chosen: patches[chosen], np.arange(64), targets, 3)
    looked = torch.from_numpy(generator.normal(0, 0.3, (32, 3, 3, 6)).astype(np.float32))
    probability = {}
    for weight in (0.0, 1.0):
        trained = network()
        recipe = Recipe(epochs=12, batch_size=8, mixup=0.0, class_weights=weight)
        train(trained, training, NOTHING, recipe, seed=0)
        with torch.no_grad():
            probability[weight] = float(trained.eval()(looked).softmax(dim=1)[:, 1].mean())
    assert probability[1.0] > 1.5 * probability[0.0]
