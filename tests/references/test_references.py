"""Reference methods: one split for all, nothing seen of test labels, and every stop resumed."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch

from commands import run_here
from hytas.data import Scene, load_scene, scene_from_arrays
from hytas.deploy.smoothing import Smoothing, smooth_pixels
from hytas.lab.published.spectralformer import SpectralFormer
from hytas.models import InputShape, count_parameters
from hytas.references import (
    METHODS,
    ReferenceResults,
    ReferenceSettings,
    Task,
    run_references,
)

SETTINGS = ReferenceSettings(split="random", train_per_class=12, patch_size=3, steps=3)


def arrays(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """An int16 cube (24, 20, 12) of three kinds of ground, and its labels 1, 2 and 3."""
    generator = np.random.default_rng(seed)
    labels = np.zeros((24, 20), np.uint8)
    labels[1:7, 1:19], labels[9:15, 1:19], labels[17:23, 1:19] = 1, 2, 3
    spectra = generator.integers(500, 3000, (4, 12))
    cube = spectra[labels] + generator.normal(0, 400, (24, 20, 12))
    return cube.astype(np.int16), labels


@pytest.fixture(scope="module")
def scene() -> Scene:
    return scene_from_arrays(*arrays())


def task_of(scene: Scene, settings: ReferenceSettings = SETTINGS, seed: int = 0) -> Task:
    return Task.of(scene, settings.make_split(scene, seed), settings)


def test_spectralformer_has_the_published_size() -> None:
    """On Indian Pines; the sum written out from the paper's table of the network."""
    tokens, width = 201, 64
    embedding = 49 * 3 * width + width + width + tokens * width
    layer = 2 * 2 * width + 4 * width * width + width + 2 * 8 * width + 8 + width
    fusion = 2 * tokens**2 + tokens
    total = embedding + 5 * layer + 3 * fusion + 2 * width + 16 * (width + 1)
    network = SpectralFormer(InputShape(200, 16, 7, 3))
    assert count_parameters(network) == total == 355_577


def test_spectralformer_closes_the_spectrum_to_a_ring() -> None:
    """The last band is a neighbour of the first, as in the released code."""
    torch.manual_seed(0)
    network = SpectralFormer(InputShape(9, 2, 3, 3)).eval()
    patches = torch.randn(2, 3, 3, 9)
    stacked = torch.stack([patches.roll(1, 3), patches, patches.roll(-1, 3)])  # (3, N, P, P, bands)
    weight = network.embed.weight  # (E, P * P, 3)
    expected = torch.einsum("gnpb,epg->nbe", stacked.flatten(2, 3), weight) + network.embed.bias
    seen: list[torch.Tensor] = []
    network.embed.register_forward_hook(lambda *values: seen.append(values[2]))
    network(patches)
    torch.testing.assert_close(seen[0].transpose(1, 2), expected)


@pytest.mark.parametrize(
    "method", [name for name, one in METHODS.items() if one.module != "hytas.references.regression"]
)
def test_a_seed_repeats_a_fit_whatever_the_labels_of_the_test(method: str, scene: Scene) -> None:
    """Poison every test label: the predictions of a second fit stay as they were."""
    task = task_of(scene)
    labels = scene.labels.copy()
    labels.ravel()[task.test] = 1 + labels.ravel()[task.test] % 3
    split = SETTINGS.make_split(scene, 0)
    poisoned = Task.of(dataclasses.replace(scene, labels=labels), split, SETTINGS)
    fit = METHODS[method].load()(task, lambda *_: None)
    other = METHODS[method].load()(poisoned, lambda *_: None)
    np.testing.assert_array_equal(fit.predicted, other.predicted)
    assert fit.predicted.shape == task.test.shape
    if fit.probabilities is not None:
        np.testing.assert_allclose(fit.probabilities.sum(axis=1), 1.0, atol=1e-6)
        np.testing.assert_array_equal(fit.probabilities.argmax(axis=1), fit.predicted)


def test_seeds_change_the_split_and_all_methods_share_it(scene: Scene) -> None:
    found = run_references(scene, SETTINGS, ["svm", "rf"], [0, 1], ReferenceResults(None, {}))
    assert not np.array_equal(task_of(scene, seed=0).train, task_of(scene, seed=1).train)
    for seed in (0, 1):
        support = [found["methods"][m]["runs"][seed]["test"]["support"] for m in ("svm", "rf")]
        assert support[0] == support[1]
    assert found["methods"]["svm"]["OA"]["mean"] > 0.8
    assert found["methods"]["rf"]["ECE"]["mean"] is not None
    assert "ECE" not in found["methods"]["svm"]
    json.dumps(found, allow_nan=False)


def test_smoothed_maps_are_reported_beside_raw_ones(scene: Scene) -> None:
    run = run_references(scene, SETTINGS, ["svm", "rf"], [0], ReferenceResults(None, {}))["methods"]
    task, split = task_of(scene), SETTINGS.make_split(scene, 0)
    for method in ("svm", "rf"):
        raw = run[method]["runs"][0]["test"]
        everywhere = dataclasses.replace(task, test=np.arange(scene.labels.size))
        fit = METHODS[method].load()(everywhere, lambda *_: None)
        assert raw["OA"] == np.mean(fit.predicted[split.test] == scene.targets(split.test))
        chances = np.eye(3)[fit.predicted] if fit.probabilities is None else fit.probabilities
        scaling = task.fit_scaling(None)
        smoothed = smooth_pixels(
            Smoothing.fit(scene.cube, scaling, None), scene.cube, scaling, everywhere.test, chances
        )
        expected = smoothed[split.test].argmax(axis=1) == scene.targets(split.test)
        found = run[method]["runs"][0]["smoothed"]
        assert found["OA"] == np.mean(expected)
        assert run[method]["smoothed"]["OA"]["mean"] == found["OA"]
        assert ("ECE" in found) == ("ECE" in raw)


def test_svm_chooses_by_cross_validation_and_survives_single_pixels(scene: Scene) -> None:
    details = METHODS["svm"].load()(task_of(scene), lambda *_: None).details
    assert 0.5 < details["cross_validated_OA"] <= 1.0
    few = dataclasses.replace(SETTINGS, train_per_class=1)
    details = METHODS["svm"].load()(task_of(scene, few), lambda *_: None).details
    assert details["cross_validated_OA"] is None


def test_svm_chooses_on_groups_that_it_did_not_see(tmp_path: Path) -> None:
    """Spectra tell their group alone, so only folds that divide groups find the class."""
    generator = np.random.default_rng(0)
    field = np.repeat(np.arange(40), 8)
    spectra = generator.normal(size=(40, 6))[field] + generator.normal(0, 0.01, (320, 6))
    np.savez(tmp_path / "a.npz", x=spectra, y=field % 2, field=field)
    scores = []
    for group_column in (None, "field"):
        table = load_scene(tmp_path / "a.npz", label_column="y", group_column=group_column)
        task = task_of(table, ReferenceSettings(patch_size=1))
        scores.append(METHODS["svm"].load()(task, lambda *_: None).details["cross_validated_OA"])
    assert scores[0] > 0.95
    assert scores[1] < 0.8


def test_one_group_is_enough_to_choose_components_of_plsda(scene: Scene) -> None:
    task = task_of(scene)
    task = dataclasses.replace(task, groups=np.ones(len(task.train), np.int64))
    assert METHODS["plsda"].load()(task, lambda *_: None).details["components"] >= 1


# The command, as a user runs it.


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scene") / "field.mat"
    cube, labels = arrays()
    scipy.io.savemat(path, {"cube": cube, "gt": labels})
    return path


QUICK = ("--patch-size", 3, "--split", "random", "--train-per-class", 12)


def test_command_prints_json_and_a_table(file: Path) -> None:
    done = run_here(
        "references", "--data", file, *QUICK, "--methods", "rf,svm", "--seeds", 2, "--json"
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["seeds"] == [0, 1]
    assert list(found["methods"]) == ["rf", "svm"]
    assert len(found["methods"]["rf"]["OA"]["values"]) == 2
    assert len(found["methods"]["rf"]["per_class"]) == 3
    assert "rf, seed 1: OA" in done.stderr
    assert "optimistic" in done.stderr  # the overlap of training patches and test pixels
    table = run_here("references", "--data", file, *QUICK, "--methods", "rf", "--seeds", 2).stdout
    assert "mean and standard deviation of 2 seeds" in table
    assert f"{found['methods']['rf']['OA']['mean']:.4f} ±" in table


def test_spectra_are_compared_without_a_map(tmp_path: Path) -> None:
    """A table has no pixels next to each other, so nothing is smoothed."""
    spectra = np.random.default_rng(0).normal(size=(60, 4)) + np.arange(60)[:, None] % 2
    np.savez(tmp_path / "a.npz", x=spectra, y=np.arange(60) % 2)
    done = run_here(
        "references", "--data", tmp_path / "a.npz", "--label-column", "y", "--methods", "rf"
    )
    assert done.returncode == 0, done.stderr
    assert "random forest on spectra" in done.stdout
    assert "kappa" in done.stderr
    assert "smoothed map" not in done.stderr
