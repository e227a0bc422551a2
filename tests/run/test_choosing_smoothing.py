"""Whether a run smooths its maps: by validation pixels alone, and said everywhere."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from one_candidate import CONFIG

from hytas.data import Scene, make_split
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.run import run_pipeline
from hytas.run.fitting.smoothing import Judged, choose_smoothing, judge_smoothing
from hytas.run.prepared import prepare_scene
from hytas.train import LabelledPixels


def sure(pixels: int, right: int, chance: float) -> np.ndarray:
    """Probabilities (pixels, 2) of which the first ones are right, all with the same chance."""
    chosen = np.arange(pixels)[:, None] < right
    found = np.where(chosen, [1 - chance, chance], [chance, 1 - chance])
    return found.astype(np.float32).reshape(-1, 2)


@pytest.mark.parametrize(
    ("asked", "counts", "method", "words"),
    [
        ("auto", (50, 40, 41), "guided", "50 validation pixels 0.8000 raw and 0.8200 smoothed"),
        ("auto", (50, 40, 39), "none", "not smoothed: OA on 50 validation pixels"),
        ("auto", (9, 1, 9), "none", "9 validation pixels to judge by; at least 10 are needed"),
        ("auto", (0, 0, 0), "none", "no validation pixels to judge by"),
        ("guided", (50, 40, 30), "guided", "--smooth guided asks for it; OA on 50"),
        ("none", (0, 0, 0), "none", "--smooth none asks for it"),
    ],
)
def test_what_is_chosen(asked: str, counts: tuple[int, int, int], method: str, words: str) -> None:
    pixels, raw, smoothed = counts
    judged = Judged(np.ones(pixels, int), sure(pixels, raw, 0.6), sure(pixels, smoothed, 0.6))
    choice = choose_smoothing(asked, judged)
    assert choice.method == method
    assert words in choice.describe()


@pytest.mark.parametrize("better", ["raw", "smoothed"])
def test_where_as_many_are_right_the_likelihood_decides(better: str) -> None:
    """One of both is unsure where it is wrong, and sure where it is right."""
    wrong = sure(50, 45, 0.9)
    telling = wrong.copy()
    telling[45:] = [0.55, 0.45]
    pair = (telling, wrong) if better == "raw" else (wrong, telling)
    choice = choose_smoothing("auto", Judged(np.ones(50, int), *pair))
    assert choice.method == ("none" if better == "raw" else "guided")
    assert "as many are right either way; negative log likelihood" in choice.describe()


@pytest.mark.parametrize(
    ("gained", "lost", "likelier", "method"),
    [
        (2, 1, "smoothed", "guided"),
        (2, 1, "raw", "none"),  # a lead of one pixel may be chance
        (9, 1, "raw", "guided"),  # and this one is none
        (1, 2, "smoothed", "none"),
        (0, 9, "smoothed", "none"),
    ],
)
def test_a_lead_within_chance_needs_the_likelihood(
    gained: int, lost: int, likelier: str, method: str
) -> None:
    right = np.ones((2, 50), bool)  # raw, smoothed
    right[0, :gained] = right[1, gained : gained + lost] = False
    pair = []
    for name, each in zip(("raw", "smoothed"), right, strict=True):
        chances = np.where(each, 0.9, 0.45) if name == likelier else np.where(each, 0.9, 0.001)
        pair.append(np.stack([1 - chances, chances], 1).astype(np.float32))
    choice = choose_smoothing("auto", Judged(np.ones(50, int), *pair))
    assert choice.method == method
    assert ("the lead is within chance" in choice.reason) == (gained - lost == 1)


def test_smoothed_probabilities_that_tell_nothing_have_no_temperature() -> None:
    targets = np.arange(40) % 2
    against = np.full((40, 2), 0.9, np.float32)
    against[np.arange(40), targets] = 0.1
    judged = Judged(targets, against, against)
    assert judged.calibrated()[0] == 1
    assert judged.losses()[1] == pytest.approx(-np.log(0.1), abs=1e-6)


def test_another_method_is_refused() -> None:
    with pytest.raises(InputError, match="smooth 'median': must be auto, guided or none"):
        replace(CONFIG, smooth="median")


def speckled(scene: Scene, share: float) -> np.ndarray:
    """Logits (H * W, C) that are right but for a share of the pixels."""
    generator = np.random.default_rng(2)
    classes = scene.labels.ravel() - 1
    wrong = generator.random(classes.size) < share
    classes = np.where(wrong, generator.integers(0, 3, classes.size), classes)
    return np.asarray(5 * np.eye(3, dtype=np.float32)[classes])


def test_speckle_of_a_network_is_counted_and_no_label_around_is_read(scene: Scene) -> None:
    data = prepare_scene(CONFIG, scene)
    held_out = data.split.validation
    answers = speckled(scene, 0.3)
    asked: list[np.ndarray] = []

    def logits(pixels: LabelledPixels) -> np.ndarray:
        asked.append(pixels.pixels)
        assert not pixels.targets.any()
        return answers[pixels.pixels]

    held_out = np.union1d(held_out, data.split.train)  # more of them: the test is of the counting
    judged = judge_smoothing(data, held_out, logits, 1.0)
    assert np.array_equal(judged.raw.argmax(axis=1), answers.argmax(axis=1)[held_out])
    assert np.array_equal(judged.targets, scene.labels.ravel()[held_out] - 1)
    assert judged.accuracies is not None
    assert judged.accuracies[1] > judged.accuracies[0]
    poisoned = scene.labels.copy()
    test = np.setdiff1d(np.arange(scene.labels.size), held_out)
    poisoned.flat[test] = 1 + poisoned.flat[test] % 3
    other = prepare_scene(CONFIG, replace(scene, labels=poisoned), data.split)
    again = judge_smoothing(other, held_out, logits, 1.0)
    assert np.array_equal(again.raw, judged.raw)
    assert np.array_equal(again.smoothed, judged.smoothed)
    # Only what smoothing reads around the judged pixels is classified.
    rows, columns = np.divmod(np.setdiff1d(asked[0], held_out), 24)
    near = [
        np.maximum(abs(rows - row), abs(columns - column))
        for row, column in zip(*np.divmod(held_out, 24), strict=True)
    ]
    assert np.min(near, axis=0).max() <= 8


def test_many_pixels_are_judged_on_some(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hytas.run.fitting.smoothing.MOST_NEIGHBOURS", 200)
    data = prepare_scene(CONFIG, scene)
    answers = speckled(scene, 0.3)
    judged = judge_smoothing(data, data.split.test, lambda given: answers[given.pixels], 1.0)
    assert 0 < len(judged.targets) <= 20


def test_smoothed_probabilities_are_as_sure_as_they_are_right() -> None:
    """Means over a window say .6 where 19 of 20 are right."""
    generator = np.random.default_rng(3)
    targets = generator.integers(0, 3, 400)
    shown = np.where(generator.random(400) < 0.95, targets, (targets + 1) % 3)
    chances = np.full((400, 3), 0.2, np.float32)
    chances[np.arange(400), shown] = 0.6
    choice = choose_smoothing("guided", Judged(targets, chances, chances))
    assert choice.temperature < 0.5
    assert choice.ECE_before == pytest.approx((shown == targets).mean() - 0.6, abs=1e-6)
    assert choice.ECE_after is not None
    assert choice.ECE_after < 0.01
    assert (
        choose_smoothing("guided", Judged(targets[:9], chances[:9], chances[:9])).temperature == 1
    )


@pytest.mark.parametrize("smooth", ["auto", "guided"])
def test_a_run_says_and_ships_the_choice(smooth: str, scene: Scene, tmp_path: Path) -> None:
    config = replace(CONFIG, smooth=smooth)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    found, choice = metrics["smoothed"], metrics["smoothing"]
    assert "smoothing" not in metrics["training"]
    assert choice["pixels"] == 30
    if smooth == "auto":
        tied = choice["OA_smoothed"] == choice["OA_raw"]
        better = choice["OA_smoothed"] > choice["OA_raw"]
        assert tied == ("as many are right" in choice["reason"])
        assert tied or choice["method"] == ("guided" if better else "none")
    else:
        assert choice["method"] == "guided"
    deployed = DeployedModel.load(tmp_path / "run" / "model.onnx", "cpu")
    assert deployed.smoothing is not None
    assert deployed.smoothing.method == choice["method"]
    assert deployed.smoothing.temperature == choice["temperature"] != 1
    labels = classify_scene(deployed, scene.cube, smooth="guided").labels
    test = make_split(scene, config.split, seed=0, patch_size=3).test
    right = (labels == np.asarray(scene.class_ids)[scene.labels - 1]).flat[test].mean()
    assert found["OA"] == pytest.approx(right)
    assert {"OA", "AA", "kappa", "ECE", "per_class"} <= set(found)
