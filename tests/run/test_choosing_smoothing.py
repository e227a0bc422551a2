"""Whether a run smooths its maps: by validation pixels alone, and said everywhere."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hytas.data import Scene, make_split, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.run import RunConfig, run_pipeline
from hytas.run.fitting.smoothing import choose_smoothing, count_right
from hytas.run.prepared import prepare_scene
from hytas.train import LabelledPixels, Recipe

CONFIG = RunConfig(
    budget="30K..60K-params",
    space="hytas",
    proxy="params",
    population=2,
    generations=1,
    finalists=1,
    patch_size=3,
    split="random",
    train_per_class=10,
    recipe=Recipe(epochs=2, batch_size=8),
)


@pytest.fixture(scope="module")
def scene() -> Scene:
    generator = np.random.default_rng(1)
    labels = np.repeat(np.arange(1, 4), 8)[None].repeat(12, 0)
    cube = generator.normal(labels[..., None], 0.5, (12, 24, 6)).astype(np.float32)
    return scene_from_arrays(cube, labels, name="stripes")


@pytest.mark.parametrize(
    ("asked", "counts", "method", "words"),
    [
        ("auto", (50, 40, 41), "guided", "50 validation pixels 0.8000 raw and 0.8200 smoothed"),
        ("auto", (50, 40, 40), "none", "not smoothed: OA on 50 validation pixels"),
        ("auto", (9, 1, 9), "none", "9 validation pixels to judge by; at least 10 are needed"),
        ("auto", (0, 0, 0), "none", "no validation pixels to judge by"),
        ("guided", (50, 40, 30), "guided", "--smooth guided asks for it; OA on 50"),
        ("none", (0, 0, 0), "none", "--smooth none asks for it"),
    ],
)
def test_what_is_chosen(asked: str, counts: tuple[int, int, int], method: str, words: str) -> None:
    choice = choose_smoothing(asked, np.array(counts))
    assert choice.method == method
    assert words in choice.describe()


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
    pixels, raw, smoothed = count_right(data, held_out, logits)
    assert pixels == len(held_out)
    assert raw == (answers.argmax(axis=1) == scene.labels.ravel() - 1)[held_out].sum()
    assert smoothed > raw
    poisoned = scene.labels.copy()
    test = np.setdiff1d(np.arange(scene.labels.size), held_out)
    poisoned.flat[test] = 1 + poisoned.flat[test] % 3
    other = prepare_scene(CONFIG, replace(scene, labels=poisoned), data.split)
    assert count_right(other, held_out, logits).tolist() == [pixels, raw, smoothed]
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
    pixels, _, _ = count_right(data, data.split.test, lambda given: answers[given.pixels])
    assert 0 < pixels <= 20


@pytest.mark.parametrize("smooth", ["auto", "guided"])
def test_a_run_says_and_ships_the_choice(smooth: str, scene: Scene, tmp_path: Path) -> None:
    config = replace(CONFIG, smooth=smooth)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    found, choice = metrics["smoothed"], metrics["smoothing"]
    assert "smoothing" not in metrics["training"]
    assert choice["pixels"] == 30
    if smooth == "auto":
        better = choice["OA_smoothed"] > choice["OA_raw"]
        assert choice["method"] == ("guided" if better else "none")
    else:
        assert choice["method"] == "guided"
    deployed = DeployedModel.load(tmp_path / "run" / "model.onnx", "cpu")
    assert deployed.smoothing is not None
    assert deployed.smoothing.method == choice["method"]
    labels = classify_scene(deployed, scene.cube, smooth="guided").labels
    test = make_split(scene, config.split, seed=0, patch_size=3).test
    right = (labels == np.asarray(scene.class_ids)[scene.labels - 1]).flat[test].mean()
    assert found["OA"] == pytest.approx(right)
    assert {"OA", "AA", "kappa", "ECE", "per_class"} <= set(found)
