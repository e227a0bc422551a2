"""The temperature of a run: its pixels, a kill, further seeds, and runs without one."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from one_candidate import CONFIG

from hytas.data import Scene, make_split, scene_from_arrays
from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.manifest import Manifest
from hytas.run import RunConfig, RunFolder, run_pipeline
from hytas.run.context import open_run, prepare
from hytas.run.fitting import calibrating, training
from hytas.run.progress import Silent
from hytas.run.stages import CHOOSING, TRAIN, run_stages
from hytas.run.weights import TrainedModel, load_weights


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


def test_folds_are_judged_at_the_temperature_that_ships(finished: Path) -> None:
    """With few pixels in a fold, its own temperature would be another one."""
    model = load_weights(finished / "weights.safetensors")
    folds = json.loads((finished / "calibration.json").read_text())["folds"]
    used = model.training["self_training"]["used"]
    assert model.card.temperature not in (1, None)
    for fold in folds:
        said = fold["after"] if used else fold
        values = np.array(said["logits"]) / model.card.temperature
        chances = np.exp(values - values.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(said["judged"]["raw"], chances, atol=1e-6)


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


class Told(Silent):
    """A report that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def of_damage(self) -> list[str]:
        return [line for line in self.lines if "again" in line]


def change_a_digit(path: Path) -> None:
    content = json.loads(path.read_text())
    content["folds"][0]["logits"][0][0] += 0.5
    path.write_text(json.dumps(content))


def assert_same(run: Path, finished: Path) -> None:
    for name in ("calibration.json", "weights.safetensors", "seed-1/calibration.json"):
        assert (run / name).read_bytes() == (finished / name).read_bytes()
    assert Manifest(run).faults() == Manifest(run / "seed-1").faults() == {}


def test_answers_of_a_finished_run_are_made_again(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    run, told = Path(shutil.copytree(finished, tmp_path / "run")), Told()
    for folder in (run, run / "seed-1"):
        change_a_digit(folder / "calibration.json")
    (run / "seed-1" / "model.onnx").write_bytes(b"")
    run_pipeline(replace(CONFIG, seeds=2), scene, run, device="cpu", report=told)
    own, onnx, copy = told.of_damage()
    assert (own[:27], own[-12:]) == ("calibration.json: damaged (", ": made again")
    assert onnx.startswith("model.onnx: damaged (0 bytes; ")
    assert copy.endswith("copied again")
    assert told.lines[told.lines.index(onnx) - 1] == "in seed-1:"
    assert_same(run, finished)


def test_answers_and_checkpoints_of_an_unfinished_run_are_made_again(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    run, told = Path(shutil.copytree(finished, tmp_path / "run")), Told()
    (run / "weights.safetensors").unlink()
    change_a_digit(run / "calibration.json")
    (run / "calibration-0.safetensors").write_bytes(b"\x08" * 100)
    run_pipeline(replace(CONFIG, seeds=2), scene, run, device="cpu", report=told)
    _, answers, checkpoint = told.of_damage()
    assert answers == "calibration.json: damaged, or of another run: made again"
    assert "calibration-0.safetensors: not a complete" in checkpoint
    assert_same(run, finished)


def trained_only(config: RunConfig, scene: Scene, out: Path) -> TrainedModel:
    """A run up to its final training."""
    with open_run(out, config, scene, "cpu", Silent()) as run:
        run_stages((*CHOOSING, TRAIN), run)
    return load_weights(out / "weights.safetensors")


@pytest.mark.parametrize("at", [1, 3, 6])
def test_a_kill_leaves_the_same_temperature(
    at: int, scene: Scene, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, epochs = [], []

    def stopping(*positional: object, **named: object) -> object:
        trained.append(1)
        if len(trained) == at < 6:
            raise KeyboardInterrupt
        named["progress"] = epochs.append
        return train(*positional, **named)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    train, judged = calibrating.train, calibrating._judged
    monkeypatch.setattr(calibrating, "train", stopping)
    if at > 5:  # when all networks are trained, and none is judged
        monkeypatch.setattr(calibrating, "_judged", interrupt)
    with pytest.raises(KeyboardInterrupt):
        trained_only(CONFIG, scene, tmp_path / "run")
    if at > 5:
        monkeypatch.setattr(calibrating, "_judged", judged)
    if at > 1:  # what was trained for the temperature fixes the recipe
        with pytest.raises(InputError, match="another configuration: recipe"):
            trained_only(CONFIG.with_epochs(1), scene, tmp_path / "run")
    found = trained_only(CONFIG, scene, tmp_path / "run")
    assert len(epochs) == 5 * CONFIG.recipe.epochs  # checkpoints give those of the folds before
    assert found.card.temperature == load_weights(finished / "weights.safetensors").card.temperature


def test_validation_pixels_kept_apart_calibrate_the_network_itself(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "calibrate_by_folds", lambda *_: pytest.fail("another training"))
    config = replace(CONFIG, final_training_on="train", train_per_class=24)
    found = trained_only(config, scene, tmp_path / "run").training["calibration"]
    assert (found["folds"], found["pixels"]) == (0, 15)


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
def test_what_are_no_answers_is_made_again(text: str, scene: Scene, tmp_path: Path) -> None:
    told = Told()
    with open_run(tmp_path / "run", CONFIG, scene, "cpu", told) as run:
        run_stages(CHOOSING, run)
        RunFolder(tmp_path / "run").calibration.write_text(text)
        TRAIN.work(run)
    assert told.of_damage() == ["calibration.json: damaged, or of another run: made again"]


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


def test_folds_of_blocks_do_without_a_class_that_is_only_tested() -> None:
    labels = np.tile(np.repeat([1, 2, 3], 2), (60, 10))
    cube = np.random.default_rng(0).normal(0, 1, (60, 60, 4)).astype(np.float32)
    scene = scene_from_arrays(cube, labels, name="many")
    split = make_split(scene, kind="blocks", block=8, train_per_class=150, patch_size=5)
    kept = {
        name: pixels[labels.flat[pixels] != 1]
        for name, pixels in (("train", split.train), ("validation", split.validation))
    }
    pairs = replace(split, **kept).folds_like_test(scene, 8, 60)
    assert len(pairs) == 3
    assert all(set(labels.flat[held_out]) == {2, 3} for _, held_out in pairs)
