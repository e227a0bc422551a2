"""The temperature of a run: its pixels, a kill, further seeds, and runs without one."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hytas.data import Scene, make_split, scene_from_arrays
from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.run import SILENT, RunConfig, RunFolder, run_pipeline
from hytas.run.context import open_run, prepare
from hytas.run.fitting import calibrating, training
from hytas.run.stages import CHOOSING, TRAIN, run_stages
from hytas.run.weights import load_weights
from hytas.train import Recipe

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


@pytest.fixture(scope="module")
def finished(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    run_pipeline(replace(CONFIG, seeds=2), scene, out, device="cpu")
    return out


def test_no_test_pixel_calibrates(scene: Scene, finished: Path) -> None:
    split = prepare(CONFIG, scene, calibrating.torch.device("cpu")).data.split
    folds = json.loads((finished / "calibration.json").read_text())["folds"]
    pixels = [pixel for fold in folds for pixel in fold["pixels"]]
    assert len(folds) == 5
    assert len(set(pixels)) == len(pixels)
    assert set(pixels) <= set(split.learnable.tolist())


def test_every_file_says_the_temperature(finished: Path) -> None:
    metrics = json.loads((finished / "metrics.json").read_text())
    found = metrics["calibration"]
    assert found["reason"] == ""
    assert found["temperature"] != 1
    assert found["ECE_after"] != found["ECE_before"]
    assert metrics["test"]["ECE_before"] != metrics["test"]["ECE"]
    assert "calibration" not in metrics["training"]
    assert DeployedModel.load(finished / "model.onnx").card.temperature == found["temperature"]
    further = json.loads((finished / "seed-1" / "metrics.json").read_text())
    assert further["calibration"] == found


def test_a_digit_of_the_answers_that_changed_is_noticed(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    (run / "weights.safetensors").unlink()
    path = run / "calibration.json"
    content = json.loads(path.read_text())
    content["folds"][0]["logits"][0][0] += 0.5
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"calibration\.json: damaged"):
        run_pipeline(replace(CONFIG, seeds=2), scene, run, device="cpu")


@pytest.mark.parametrize("at", [1, 3])
def test_a_kill_leaves_the_same_temperature(
    at: int, scene: Scene, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []

    def stopping(*positional: object, **named: object) -> object:
        trained.append(1)
        if len(trained) == at:
            raise KeyboardInterrupt
        return train(*positional, **named)

    train = calibrating.train
    monkeypatch.setattr(calibrating, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(CONFIG, scene, tmp_path / "run", device="cpu")
    if at > 1:  # what was trained for the temperature fixes the recipe
        with pytest.raises(InputError, match="another configuration: recipe"):
            run_pipeline(CONFIG.with_epochs(1), scene, tmp_path / "run", device="cpu")
    run_pipeline(CONFIG, scene, tmp_path / "run", device="cpu")
    assert len(trained) == 5 + 1
    expected, found = (
        load_weights(path / "weights.safetensors").card.temperature
        for path in (finished, tmp_path / "run")
    )
    assert found == expected


def test_validation_pixels_kept_apart_calibrate_the_network_itself(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "calibrate_by_folds", lambda *_: pytest.fail("another training"))
    config = replace(CONFIG, final_training_on="train", train_per_class=24)
    outcome = run_pipeline(config, scene, tmp_path / "run", device="cpu")
    assert outcome.metrics is not None
    assert outcome.metrics["calibration"]["folds"] == 0
    assert outcome.metrics["calibration"]["pixels"] == 15


def test_without_validation_pixels_it_says_so(scene: Scene, tmp_path: Path) -> None:
    config = replace(CONFIG, validation_fraction=0)
    outcome = run_pipeline(config, scene, tmp_path / "run", device="cpu")
    assert outcome.metrics is not None
    found = outcome.metrics["calibration"]
    assert (found["temperature"], found["pixels"]) == (1.0, 0)
    assert found["reason"] == "the split has no validation pixels; at least 10 are needed"
    assert outcome.metrics["test"]["ECE"] == pytest.approx(
        outcome.metrics["test"]["ECE_before"], abs=1e-4
    )


@pytest.mark.parametrize("text", ['{"folds": 3}', '{"folds": [{"pixels": [1]}]}', "{}", "[1"])
def test_damaged_answers_are_refused(text: str, scene: Scene, tmp_path: Path) -> None:
    with open_run(tmp_path / "run", CONFIG, scene, "cpu", SILENT) as run:
        run_stages(CHOOSING, run)
        RunFolder(tmp_path / "run").calibration.write_text(text)
        with pytest.raises(InputError, match=r"calibration\.json"):
            TRAIN.work(run)


def test_folds_of_a_split_by_blocks_lie_apart() -> None:
    labels = np.tile(np.repeat([1, 2], 3), (60, 10))
    cube = np.random.default_rng(0).normal(0, 1, (60, 60, 4)).astype(np.float32)
    scene = scene_from_arrays(cube, labels, name="many")
    split = make_split(scene, kind="blocks", block=8, train_per_class=150, patch_size=5)
    pairs = split.folds_like_test(scene, 8, 60)
    assert len(pairs) == 3
    for learnt, held_out in pairs:
        gaps = [
            np.abs(one[:, None] - other[None])
            for one, other in zip(np.divmod(learnt, 60), np.divmod(held_out, 60), strict=True)
        ]
        assert np.maximum(*gaps).min() > 2
        assert set(learnt) | set(held_out) <= set(split.learnable)
