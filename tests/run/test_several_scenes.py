"""A run on several scenes: one pipeline, figures of each scene, and a card that names them."""

import json
from pathlib import Path

import numpy as np
import pytest
from three_scenes import config

from hytas.data import Scene, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.job import run_pipeline
from hytas.run import RunConfig


@pytest.mark.filterwarnings("ignore:the cube has values")  # of a scene that was not trained on
def test_each_scene_has_figures(run_of_three: Path, three_scenes: Path) -> None:
    metrics = json.loads((run_of_three / "metrics.json").read_text())
    found = [(one["name"], one["learnt"], one["test"]["pixels"]) for one in metrics["scenes"]]
    assert [one[:2] for one in found] == [("a", True), ("b", True), ("c", False)]
    assert found[0][2] + found[1][2] == metrics["test"]["pixels"] == metrics["split"]["test"]
    assert found[2][2] == metrics["split"]["apart"] == 240
    assert metrics["parity"]["pixels"] == metrics["test"]["pixels"] + 240
    for method in metrics["references"]["methods"].values():
        assert [one["name"] for one in method["scenes"]] == ["a", "b", "c"]
    model = DeployedModel.load(run_of_three / "model.onnx", "cpu")
    with np.load(three_scenes / "c.npz") as file:
        cube, labels = file["cube"], file["labels"]
    raw = classify_scene(model, cube, smooth="none").labels
    right = (raw == labels)[labels > 0].mean()
    assert metrics["scenes"][2]["test"]["OA"] == pytest.approx(right)
    smooth = classify_scene(model, cube, smooth="guided").labels
    right = (smooth == labels)[labels > 0].mean()
    assert metrics["scenes_smoothed"][2]["test"]["OA"] == pytest.approx(right)


def test_the_card_names_what_the_model_learnt_from(run_of_three: Path) -> None:
    card = DeployedModel.load(run_of_three / "model.onnx", "cpu").card
    assert [one["name"] for one in card.learnt_from] == ["a", "b"]
    assert sum(one["pixels"] for one in card.learnt_from) == 30
    assert len({one["fingerprint"] for one in card.learnt_from}) == 2
    assert "c</bdi>" in (run_of_three / "report.html").read_text()


def test_a_model_of_scenes_scaled_by_themselves_scales_the_next(
    three_scenes: Path, tmp_path: Path
) -> None:
    settings = config(three_scenes, scale_by="scene")
    run_pipeline(settings, settings.load_scene(), tmp_path / "run", device="cpu")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    model = DeployedModel.load(tmp_path / "run" / "model.onnx", "cpu")
    assert model.card.scale_by == "scene"
    with np.load(three_scenes / "c.npz") as file:
        cube, labels = file["cube"], file["labels"]
    found = [
        classify_scene(model, values, smooth="none").labels for values in (cube, 2 * cube + 100)
    ]
    right = (found[0] == labels)[labels > 0].mean()
    assert metrics["scenes"][2]["test"]["OA"] == pytest.approx(right)
    assert (found[0] == found[1]).mean() > 0.99


def test_two_label_files_of_a_scene_are_its_training_and_test_map(tmp_path: Path) -> None:
    cube = np.arange(60, dtype=np.int16).reshape(4, 5, 3)
    train, test = np.zeros((2, 4, 5), np.uint8)
    train[0, :4] = test[2, :4] = 1, 2, 1, 2
    for name, values in {"cube": cube, "train": train, "test": test}.items():
        np.save(tmp_path / f"{name}.npy", values)
    paths = {name: str(tmp_path / f"{name}.npy") for name in ("cube", "train", "test")}
    settings = RunConfig(data=paths["cube"], labels=[paths["train"], paths["test"]])
    scene = RunConfig.from_dict(json.loads(json.dumps(settings.to_dict()))).load_scene()
    np.testing.assert_array_equal(scene.train, train)
    np.testing.assert_array_equal(scene.test, test)


def test_a_scene_without_parts_is_as_before() -> None:
    scene: Scene = scene_from_arrays(
        np.arange(60).reshape(4, 5, 3), np.arange(20).reshape(4, 5) % 2 + 1
    )
    assert [(part.trains, part.window) for part in scene.parts] == [
        (True, (slice(0, 4), slice(0, 5)))
    ]
    assert scene.without_test_only() is scene
