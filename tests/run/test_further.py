"""A run that trains the model of another run further, on a new scene."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from three_scenes import saved

from hytas.data import load_scene
from hytas.decide.decisions import Decisions
from hytas.deploy import DeployedModel
from hytas.job import train_architecture
from hytas.models import small_parameters
from hytas.results import Calibration, SelfTraining, SmoothingChoice
from hytas.run import RunConfig
from hytas.run.start import StartingModel, further_config
from hytas.run.weights import load_weights

SPLIT: dict[str, Any] = {"split": "random", "train_per_class": 8}


def further(start: Path, scene: Path, out: Path, **changed: Any) -> tuple[RunConfig, Path]:
    config, architecture = further_config(start)
    recipe = replace(config.recipe, epochs=4)
    config = replace(config, data=str(scene), recipe=recipe, **{**SPLIT, **changed})
    train_architecture(architecture, config, config.load_scene(), out, device="cpu")
    return config, out


@pytest.fixture(scope="module")
def new_scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("new") / "d.npz"
    saved(path, 7, 1.4, 15)
    return path


@pytest.fixture(scope="module")
def small(run_of_three: Path, new_scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("further") / "small"
    further(run_of_three, new_scene, out, tune="small")
    return out


def test_classes_scaling_and_budget_are_kept(run_of_three: Path, small: Path) -> None:
    before, after = (
        DeployedModel.load(folder / "model.onnx", "cpu").card for folder in (run_of_three, small)
    )
    free = {"temperature", "learnt_from", "smoothing"}
    for name in before.__dataclass_fields__.keys() - free:
        assert getattr(after, name) == getattr(before, name), name
    said = json.loads((small / "metrics.json").read_text())["smoothing"]
    assert said["temperature"] != before.smoothing["temperature"]
    changed = {name: said[name] for name in ("method", "temperature")}
    assert after.smoothing == before.smoothing | changed
    assert [one["name"] for one in after.learnt_from] == ["a", "b", "d"]
    config = json.loads((small / "config.json").read_text())["config"]
    assert config["search"]["budget"] == "6K-params"


def test_further_training_learns_the_class_shares_of_the_new_labels(run_of_three: Path) -> None:
    start = StartingModel.open(run_of_three)
    shares = dict.fromkeys(("labels", "assumed"), [1 / len(start.card.class_ids)] * 3)
    adapted = replace(start.card, class_shares=shares)
    decided = Decisions(Calibration(1.0, 40), SmoothingChoice("none"), SelfTraining(False))
    begun = replace(start, model=replace(start.model, card=adapted))
    assert begun.card_of(start.card, decided).class_shares is None


def test_small_tuning_changes_few_weights(run_of_three: Path, small: Path) -> None:
    before, after = (
        load_weights(folder / "weights.safetensors").network for folder in (run_of_three, small)
    )
    moving = small_parameters(after)
    assert {"head.weight", "head.bias"} <= {name.removeprefix("network.") for name in moving}
    held = after.state_dict()
    same = {name: bool((value == held[name]).all()) for name, value in before.state_dict().items()}
    assert all(same[name] for name in same if name not in moving)
    assert not same["network.head.weight" if "network.head.weight" in same else "head.weight"]


def test_both_scenes_are_compared_before_and_after(
    run_of_three: Path, small: Path, new_scene: Path
) -> None:
    found = json.loads((small / "metrics.json").read_text())["further"]
    assert [(one["name"], one["role"]) for one in found["scenes"]] == [
        ("d", "new"),
        ("a+b+c", "old"),
    ]
    assert found["reason"] == ""
    old = json.loads((run_of_three / "metrics.json").read_text())["test"]
    assert found["scenes"][1]["before"]["OA"] == pytest.approx(old["OA"])
    new = json.loads((small / "metrics.json").read_text())["test"]
    assert found["scenes"][0]["after"]["OA"] == pytest.approx(new["OA"])
    scene = load_scene(new_scene)
    assert found["scenes"][0]["after"]["pixels"] == (scene.labels > 0).sum() - 3 * 8
