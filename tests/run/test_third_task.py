"""A task of one's own: plumes on background, whose rare pixels are drawn as often as all others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from one_candidate import CONFIG
from sklearn.metrics import f1_score
from without_references import run_pipeline

from hytas.data import Scene, scene_from_arrays
from hytas.data.samples import Samples
from hytas.data.splits.settings import SplitSettings
from hytas.deploy import DeployedModel
from hytas.model_card import ModelCard
from hytas.tasks import Classes, table, task_of
from hytas.train import LabelledPixels
from hytas.train.augment import random_order

NAMES = ("background", "plume")


class Plumes(Classes):
    """Two classes; the figure is pixel F1 of the plume."""

    @classmethod
    def of_data(cls, data: Samples) -> Self | None:
        return cls(2) if data.class_names == NAMES else None

    @classmethod
    def of_card(cls, card: ModelCard) -> Self | None:
        return cls(2) if card.class_names == NAMES else None

    def draws(self, targets: NDArray[Any]) -> NDArray[np.float64] | None:
        return 1.0 / np.bincount(targets, minlength=2)[targets]

    def report(self, truth: NDArray[Any], predicted: NDArray[Any], *rest: Any) -> dict[str, Any]:
        return super().report(truth, predicted, *rest) | {"F1": f1_score(truth, predicted)}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(table, "TASKS", (Plumes, *table.TASKS))
    random = np.random.default_rng(0)
    labels = np.where(random.random((40, 40)) < 0.03, 2, 1)
    cube = random.normal(size=(40, 40, 8)).astype(np.float32)
    cube[..., :3] += 3.0 * (labels == 2)[..., None]
    return scene_from_arrays(cube, labels, class_names=NAMES)


def test_a_third_task_is_one_file_and_one_name(scene: Scene, tmp_path: Path) -> None:
    config = replace(CONFIG, split=SplitSettings("random", train_fraction=0.5), patch_size=1)
    outcome = run_pipeline(config, scene, tmp_path, device="cpu", workers="1")
    test = json.loads((tmp_path / "metrics.json").read_text())["test"]
    (_, false), (missed, hit) = test["confusion"]
    assert test["F1"] == pytest.approx(2 * hit / (2 * hit + false + missed))
    assert outcome.results is not None
    assert f"; F1 {outcome.results.of_map['F1']:.4f})" in outcome.results.headline
    assert "F1" in (tmp_path / "report.html").read_text()
    assert isinstance(DeployedModel.load(tmp_path / "model.onnx").task, Plumes)


def test_its_rare_pixels_are_drawn_as_often_as_all_others(scene: Scene) -> None:
    targets = scene.targets(np.arange(1600))
    pixels = LabelledPixels(lambda _: np.empty(0), np.arange(1600), targets, 2, of=task_of(scene))
    order = random_order(1600, 1, torch.Generator().manual_seed(0), pixels.draws())
    assert targets.mean() < 0.05
    assert targets[order.numpy()].mean() == pytest.approx(0.5, abs=0.05)
