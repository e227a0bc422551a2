"""Class prior: when a run adapts its network to the shares around the labels, and what for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from one_candidate import CONFIG, trained
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from hytas.data import Scene, Split, scene_from_arrays
from hytas.decide.decisions import Decisions, choose_by_brier_score, maps_of
from hytas.decide.records import HeldOut
from hytas.results import Calibration, ClassPrior, SelfTraining, SmoothingChoice
from hytas.run import RunConfig, prepared
from hytas.run.context import RunContext, prepare
from hytas.run.final import prior
from hytas.run.final.fits import observed
from hytas.run.final.prior import adapt_prior, no_prior, shifted, smoothing_with
from hytas.run.start import StartingModel
from hytas.run.weights import load_weights
from hytas.train import Recipe, logits_of
from hytas.types import Pixels

CPU = torch.device("cpu")
DRAWN = replace(CONFIG, class_prior="auto", train_per_class=40, patch_size=1)


def strips(shares: tuple[float, ...], noise: float, height: int = 60) -> Scene:
    """A scene of strips as wide as the shares; spectra overlap."""
    width = 60
    ends = np.round(np.cumsum(shares) * width).astype(int)
    labels = np.tile(np.searchsorted(ends, np.arange(width), side="right") + 1, (height, 1))
    angles = 2 * np.pi * labels / len(shares)
    flat = np.zeros(labels.shape)
    cube = 10 + np.stack([np.cos(angles), np.sin(angles), flat, flat, flat], axis=-1)
    cube = cube + noise * np.random.default_rng(3).normal(size=cube.shape)
    return scene_from_arrays(cube.astype(np.float32), labels, name="strips")


class Linear(nn.Module):
    """A linear classifier of the spectrum of a pixel, fitted on pixels with labels."""

    def __init__(self, context: RunContext, pixels: Pixels, *, biased: bool = True) -> None:
        super().__init__()
        labelled = context.data.labelled(pixels)
        values = labelled.batch(np.arange(len(pixels)), CPU)[0].flatten(1).numpy()
        fitted = LogisticRegression().fit(values, context.data.targets(pixels))
        self.head = nn.Linear(values.shape[1], len(fitted.classes_), bias=biased)
        self.head.weight.data = torch.from_numpy(fitted.coef_.astype(np.float32))
        if biased:
            self.head.bias.data = torch.from_numpy(fitted.intercept_.astype(np.float32))

    def forward(self, patches: Tensor) -> Tensor:
        logits: Tensor = self.head(patches.flatten(1))
        return logits


def decisions(method: str = "none", reason: str = "") -> Decisions:
    calibration = Calibration(1.0, 40, reason=reason)
    return Decisions(calibration, SmoothingChoice(method), SelfTraining(False))


def adapted(
    scene: Scene, config: RunConfig = DRAWN, made: Decisions | None = None, *, biased: bool = True
) -> tuple[ClassPrior, NDArray[np.bool_], NDArray[np.bool_], list[HeldOut], list[HeldOut]]:
    """Adapt a classifier; return what it has right, and its records, before and after."""
    context = prepare(config, scene, CPU)
    data, split = context.data.as_scene, context.data.split
    network = Linear(context, split.train, biased=biased)
    targets = data.targets(split.test)

    def right() -> NDArray[np.bool_]:
        predicted = logits_of(network, data.unlabelled(split.test), CPU).argmax(axis=1)
        return np.asarray(predicted == targets)

    def recorded() -> list[HeldOut]:
        return [observed(network, data, split.train, split.validation, CPU)]

    before, records = right(), recorded()
    choice = adapt_prior(network, context, config.recipe, split.train, records, made or decisions())
    return choice, before, right(), records, recorded()


def test_more_test_pixels_are_right_where_the_scene_has_other_shares() -> None:
    choice, before, after, records, others = adapted(strips((0.7, 0.2, 0.1), 0.9))
    assert choice.used, choice.reason
    assert choice.labels == pytest.approx([1 / 3] * 3)
    assert choice.scene == pytest.approx([0.7, 0.2, 0.1], abs=0.08)
    assert choice.unlabelled > 1000
    assert choice.distance > 2 * choice.error
    assert after.mean() > before.mean() + 0.01
    # The shifted records are those of the adapted network.
    assert shifted(records, choice, decisions())[0].logits == pytest.approx(
        others[0].logits, abs=1e-4
    )
    change = others[0].logits - records[0].logits
    ratio = np.log(np.divide(choice.scene, choice.labels))
    assert change[0] == pytest.approx(choice.strength * ratio, abs=1e-4)
    assert "assumes the class shares around the labels" in choice.describe()


@pytest.mark.parametrize("noise", [0.7, 1.2])
def test_nothing_changes_where_the_scene_has_the_shares_of_the_labels(noise: float) -> None:
    choice, before, after, _, _ = adapted(strips((0.34, 0.33, 0.33), noise))
    assert not choice.used
    assert choice.reason == "the estimate is not sure enough"
    assert choice.distance < 2 * choice.error
    assert np.array_equal(before, after)
    assert "their estimate errs by" in choice.describe()


def test_a_class_is_not_given_up_for_the_others() -> None:
    """Held-out pixels of small classes limit the factors."""
    asked = replace(DRAWN, train_per_class=80)
    choice, before, after, _, _ = adapted(strips((0.9, 0.05, 0.05), 0.7), asked)
    assert choice.used
    assert choice.strength == 0.25
    assert after.mean() > before.mean() + 0.05


def test_a_class_without_a_training_pixel_keeps_a_finite_bias() -> None:
    """Its probabilities may all be 0, and a share of 0 has no logarithm."""
    context = prepare(DRAWN, strips((0.6, 0.2, 0.1, 0.1), 0.9), CPU)
    data, split = context.data.as_scene, context.data.split
    train, held_out = (
        pixels[data.targets(pixels) < 3] for pixels in (split.train, split.validation)
    )
    network = Linear(context, train)
    weight, bias = network.head.weight.data, network.head.bias.data
    network.head = nn.Linear(weight.shape[1], 4)
    network.head.weight.data = torch.cat([weight, torch.zeros_like(weight[:1])])
    network.head.bias.data = torch.cat([bias, torch.full_like(bias[:1], -1e4)])
    records = [observed(network, data, train, held_out, CPU)]
    choice = adapt_prior(network, context, Recipe(), train, records, decisions())
    assert choice.unlabelled
    assert np.isfinite(np.log(choice.scene)).all()
    assert torch.isfinite(network.head.bias).all()


@pytest.mark.parametrize(
    ("config", "biased", "reason", "why"),
    [
        (replace(DRAWN, class_prior="labels"), True, "", "class_prior is labels"),
        (replace(DRAWN, split="blocks", block=8), True, "", "spatially disjoint"),
        (
            replace(DRAWN, train_per_class=None, train_fraction=0.1),
            True,
            "",
            "few classes have the same number",
        ),
        (replace(DRAWN, recipe=Recipe(class_weights=1.0)), True, "", "class_weights"),
        (DRAWN, True, "like chance", "not calibrated"),
        (DRAWN, False, "", "the read-out has no bias"),
    ],
)
def test_the_shares_of_the_labels_are_kept(
    config: RunConfig, biased: bool, reason: str, why: str
) -> None:
    scene = strips((0.6, 0.3, 0.1), 0.9)
    choice, before, after, records, same = adapted(
        scene, config, decisions(reason=reason), biased=biased
    )
    assert not choice.used
    assert why in choice.reason
    assert np.array_equal(before, after)
    assert all(
        np.array_equal(one.logits, other.logits) for one, other in zip(records, same, strict=True)
    )


def test_a_fixed_split_needs_test_pixels_next_to_training_pixels() -> None:
    context = prepare(DRAWN, strips((0.6, 0.3, 0.1), 0.9), CPU)
    split = context.data.split

    def of(**changed: Any) -> str:
        data = replace(context.data, split=replace(split, **changed))
        return no_prior(replace(context, data=data), DRAWN.recipe)

    assert of(kind="fixed", overlap=0.6) == ""
    assert of(kind="fixed", overlap=0.4).startswith("only 40% of the test pixels")
    assert of(test_only=split.test[:3]).startswith("other scenes")
    assert of(test=split.train).startswith("no test pixels")
    begun = replace(context, origin=StartingModel.__new__(StartingModel))
    assert no_prior(begun, DRAWN.recipe) == "the run begins with a trained model"


def test_two_classes_that_differ_in_number_may_have_the_shares_of_the_scene() -> None:
    scene = strips((0.8, 0.2), 0.9)
    by_share = replace(DRAWN, train_per_class=None, train_fraction=0.1)
    for config, why in ((DRAWN, ""), (by_share, "few classes have the same number")):
        context = prepare(config, scene, CPU)
        assert no_prior(context, config.recipe).startswith(why)
        assert bool(no_prior(context, config.recipe)) == bool(why)


@pytest.mark.parametrize("smooth", ["auto", "none"])
def test_the_smoothing_of_an_adapted_network_is_chosen_again(smooth: str) -> None:
    chosen = SmoothingChoice("none", 40, 0.6, 0.7, "as before")
    made = decisions()._replace(smoothing=chosen)
    scene = strips((0.7, 0.2, 0.1), 0.9)
    choice, *_, records = adapted(scene, made=made)
    assert choice.used
    context = prepare(replace(DRAWN, smooth=smooth), scene, CPU)
    found = smoothing_with(choice, records, made, context)
    maps = maps_of(records, False, context.data.as_scene.smoother, 1.0)
    weights = np.array(choice.scene) / np.array(choice.labels)
    again = choose_by_brier_score(chosen, maps, weights)
    assert again not in (chosen, choose_by_brier_score(chosen, maps, np.ones(3)))
    assert found == (again if smooth == "auto" else chosen)


def test_a_run_ships_the_adapted_network_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No label of a test pixel is read, and the first weights are those without adaptation."""
    scene = strips((0.8, 0.1, 0.1), 0.3)
    config = replace(DRAWN, patch_size=CONFIG.patch_size, recipe=Recipe(epochs=5, batch_size=8))
    monkeypatch.setattr(prior, "LEAST_RATIO", 0.0)  # a short training's estimate is not sure
    monkeypatch.setattr(prior, "STRENGTHS", (0.05,))
    split = prepare(config, scene, CPU).data.split

    def same_split(*_: object, **__: object) -> Split:
        return split  # it is drawn by the labels

    monkeypatch.setattr(prepared, "make_split", same_split)
    poisoned = scene.labels.copy()
    others = np.setdiff1d(np.arange(poisoned.size), split.train_and_validation)
    poisoned.flat[others] = poisoned.flat[others] % 3 + 1
    kept, clean, other = (
        load_weights(trained(asked, replace(scene, labels=labels), tmp_path / name).weights)
        for name, asked, labels in (
            ("kept", replace(config, class_prior="labels"), scene.labels),
            ("clean", config, scene.labels),
            ("poisoned", config, poisoned),
        )
    )
    facts = clean.training["class_prior"]
    assert facts["used"], facts["reason"]
    assert clean.training["smoothing"]["reason"].startswith("Brier score")
    assert other.training == clean.training
    assert other.card == clean.card
    weights = np.array(facts["scene"]) ** 0.05  # the labels have three equal shares
    assert clean.card.class_shares == {
        "labels": pytest.approx([1 / 3] * 3),
        "assumed": pytest.approx(weights / weights.sum()),
    }
    assert kept.card.class_shares is None
    states = [model.network.state_dict() for model in (kept, clean, other)]
    for name, value in states[1].items():
        assert torch.equal(value, states[2][name]), name
        is_adapted = name in ("head.bias", "shift.bias")
        assert torch.equal(value, states[0][name]) != is_adapted, name
    assert kept.training["class_prior"]["reason"] == "class_prior is labels"
