"""The winner beside an SVM and a forest: on which pixels, what is said, and what a run keeps."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import one_candidate
import pytest

from hytas.data import Scene, scene_from_arrays
from hytas.job import run_pipeline
from hytas.run.delivering import comparing
from hytas.train import Recipe
from told import Told

NAMES = ("svm", "rf", "lda", "logistic")
# Without self-training and with one epoch the winner stays below the SVM.
CONFIG = replace(one_candidate.CONFIG, self_training="none", recipe=Recipe(epochs=1, batch_size=8))


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Three classes of two kinds of ground each, which no matrix tells apart, but an SVM does."""
    generator = np.random.default_rng(1)
    kinds = np.repeat(np.arange(6), 4)[None].repeat(12, 0)
    truth = kinds % 3 + 1
    cube = generator.normal(2 * kinds[..., None], 0.5, (12, 24, 6)).astype(np.float32)
    return scene_from_arrays(cube, truth, name="stripes")


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


@pytest.fixture(scope="module")
def finished(scene: Scene, told: Told, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    run_pipeline(CONFIG, scene, out, device="cpu", report=told)
    return out


def held(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "references.json").read_text())
    return found


def test_all_are_compared_on_the_pixels_that_calibrate(scene: Scene, finished: Path) -> None:
    records = one_candidate.records_of(CONFIG, scene, finished)
    members = json.loads((finished / "metrics.json").read_text())["mean"]["members"]
    records = [record.mean(members) for record in records]
    right = sum(int((one.logits.argmax(axis=1) == one.targets).sum()) for one in records)
    found = held(finished)["validation"]
    assert found["pixels"] == sum(len(record.pixels) for record in records)
    assert found["folds"] == len(records)
    assert found["OA"]["winner"] == pytest.approx(right / found["pixels"])
    assert set(found["OA"]) == set(found["smoothed"]) == {"winner", *NAMES}
    metrics = json.loads((finished / "metrics.json").read_text())
    assert found["smoothed"]["winner"] == pytest.approx(metrics["smoothing"]["OA_smoothed"])


@pytest.mark.parametrize(("lead", "below"), [(1, []), (2, ["svm"])])
def test_a_lead_by_chance_is_no_lead(lead: int, below: list[str]) -> None:
    svm = np.arange(86) < 80
    winner = svm.copy()
    winner[:lead] = False
    found = comparing.accuracies_of({"winner": [winner], "svm": [svm], "rf": [winner]})
    assert found["below"] == below
    assert found["OA"]["winner"] == (80 - lead) / 86
    assert "smoothed" not in found


def test_the_map_of_the_winner_is_compared_with_smoothed_references() -> None:
    raw, better, best = (np.arange(100) < right for right in (60, 80, 90))
    right = {"winner": [better, better], "svm": [raw, best], "rf": [raw, better]}
    assert comparing.accuracies_of(right)["below"] == ["svm"]
    closed = {**right, "winner": [better, best]}
    assert comparing.accuracies_of(closed, is_smoothed=True)["below"] == []
    facts = {"pixels": 100, **comparing.accuracies_of(closed)}
    assert facts["below"] == ["svm"]
    titles = {"svm": "SVM", "rf": "forest"}
    line = comparing.verdict_of(facts, titles)
    assert "raw and smoothed: winner 0.8000 and 0.9000, SVM 0.6000 and 0.9000" in line


def test_labels_of_test_pixels_change_only_their_figures(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    split = np.load(finished / "split.npz")
    labels = scene.labels.copy()
    labels.flat[split["test"]] = labels.flat[split["test"]] % 3 + 1
    maps = {
        name: np.where(np.isin(np.arange(labels.size), pixels).reshape(labels.shape), labels, 0)
        for name, pixels in (
            ("train", np.union1d(split["train"], split["validation"])),
            ("test", split["test"]),
        )
    }
    true = {name: np.where(one > 0, scene.labels, 0) for name, one in maps.items()}
    config, found = replace(CONFIG, split="fixed"), []
    for number, one in enumerate((true, maps)):
        told, out = Told(), tmp_path / str(number)
        poisoned = replace(scene, labels=one["train"] + one["test"], **one)
        run_pipeline(config, poisoned, out, device="cpu", report=told)
        found.append((held(out), [line for line in told.lines if "winner" in line]))
    (clean, said), (other, said_too) = found
    assert clean["validation"] == other["validation"]
    assert said == said_too
    for name in ("svm", "rf"):
        assert clean["methods"][name]["details"] == other["methods"][name]["details"]
        assert clean["methods"][name]["test"]["OA"] != other["methods"][name]["test"]["OA"]


def test_without_validation_pixels_only_the_test_compares(scene: Scene, tmp_path: Path) -> None:
    run_pipeline(replace(CONFIG, validation_fraction=0), scene, tmp_path / "run", device="cpu")
    found = held(tmp_path / "run")
    assert found["validation"]["pixels"] == 0
    assert found["validation"]["verdict"].startswith("no held-out pixels")
    assert found["methods"]["svm"]["test"]["OA"] > 0.5


def test_validation_pixels_kept_apart_compare_the_network_itself(
    scene: Scene, tmp_path: Path
) -> None:
    config = replace(CONFIG, final_training_on="train", train_per_class=24)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    found = held(tmp_path / "run")["validation"]
    assert (found["pixels"], found["folds"]) == (15, 1)
