"""Records of held-out pixels in a run: their pixels, a kill, damage, and further seeds."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from one_candidate import CONFIG
from without_references import run_pipeline

from hytas.data import Scene, make_split, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.manifest import Manifest
from hytas.run import RunConfig
from hytas.run.context import open_run, prepare
from hytas.run.final import stage, tasks
from hytas.run.final.held_out import HeldOut
from hytas.run.prepared import prepare_scene
from hytas.run.progress import Report
from hytas.run.stages import FOLDS, TRAIN, plan_of, run_stages
from hytas.run.weights import TrainedModel, load_weights
from told import Told


@pytest.fixture(scope="module")
def finished(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    run_pipeline(replace(CONFIG, seeds=2), scene, out, device="cpu")
    return out


def records_of(folder: Path) -> list[HeldOut]:
    return [HeldOut.load(path) for path in sorted(folder.glob("held-out-*.npz"))]


def test_no_test_pixel_is_recorded_and_no_network_is_asked_for_its_own(
    scene: Scene, finished: Path
) -> None:
    split = prepare(CONFIG, scene, torch.device("cpu")).data.split
    records = records_of(finished)
    pixels = np.concatenate([record.pixels for record in records])
    assert len(records) == 5
    assert len(set(pixels)) == len(pixels)
    assert set(pixels) <= set(split.train_and_validation.tolist())
    for record in records:
        assert not set(record.trained) & set(record.pixels)
        assert np.array_equal(record.targets, scene.targets(record.pixels))
        assert not record.self_trained  # the split is random


def test_the_neighbours_are_those_that_the_filter_reads(finished: Path) -> None:
    record = records_of(finished)[0]
    rows, columns = np.divmod(record.neighbours, 24)
    near = [
        np.maximum(abs(rows - row), abs(columns - column))
        for row, column in zip(*np.divmod(record.compared, 24), strict=True)
    ]
    assert np.min(near, axis=0).max() <= 8
    assert set(record.compared) == set(record.pixels) <= set(record.neighbours)


def test_with_many_neighbours_fewer_pixels_are_compared(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.run.prepared.MOST_NEIGHBOURS", 200)
    data = prepare_scene(CONFIG, scene)
    compared, neighbours = data.with_neighbours(data.split.test)
    assert 0 < len(compared) <= 20
    assert set(compared) <= set(neighbours)


def test_the_temperature_that_ships_is_that_of_the_records(scene: Scene, finished: Path) -> None:
    with open_run(finished, replace(CONFIG, seeds=2), scene, "cpu", Report()) as run:
        _, _, found = stage.decide_for(run)
    model = load_weights(finished / "weights.safetensors")
    assert model.card.temperature == found.calibration.temperature != 1
    assert model.training["self_training"] == found.self_training.to_dict()


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


def of_damage(told: Told) -> list[str]:
    """The lines of what was damaged, or was not there."""
    return [line for line in told.lines if "made again" in line or "begins again" in line]


def change_a_digit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def assert_same(run: Path, finished: Path) -> None:
    for name in ("held-out-0.npz", "held-out-4.npz", "weights.safetensors"):
        assert (run / name).read_bytes() == (finished / name).read_bytes()
    assert Manifest(run).faults() == Manifest(run / "seed-1").faults() == {}


def test_a_record_of_a_finished_run_is_made_again(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    run, told = Path(shutil.copytree(finished, tmp_path / "run")), Told()
    change_a_digit(run / "held-out-0.npz")
    (run / "held-out-4.npz").unlink()
    (run / "seed-1" / "model.onnx").write_bytes(b"")
    run_pipeline(replace(CONFIG, seeds=2), scene, run, device="cpu", report=told)
    damaged, missing, onnx = of_damage(told)
    assert damaged.startswith("held-out-0.npz: damaged (")
    assert missing == "held-out-4.npz: missing: made again"
    assert onnx.startswith("model.onnx: damaged (0 bytes; ")
    assert told.lines[told.lines.index(onnx) - 1] == "in seed-1:"
    assert_same(run, finished)
    assert not list(run.glob("fold-*"))


def test_records_and_checkpoints_of_an_unfinished_run_are_made_again(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    run, told = Path(shutil.copytree(finished, tmp_path / "run")), Told()
    (run / "weights.safetensors").unlink()
    (run / "manifest.json").unlink()  # as after a stop, before the manifest knew the record
    (run / "held-out-0.npz").write_bytes(b"PK")
    (run / "fold-0.safetensors").write_bytes(b"\x08" * 100)
    (run / "fold-1.safetensors").write_bytes(b"of a stop right after its record")
    run_pipeline(replace(CONFIG, seeds=2), scene, run, device="cpu", report=told)
    record, checkpoint = of_damage(told)
    assert "held-out-0.npz: not a record of held-out pixels" in record
    assert "fold-0.safetensors: not a complete" in checkpoint
    assert [path.name for path in run.glob("*.safetensors")] == ["weights.safetensors"]
    assert_same(run, finished)


def train(config: RunConfig, scene: Scene, out: Path) -> TrainedModel:
    """Run up to the final training."""
    with open_run(out, config, scene, "cpu", Report(), workers="1") as run:
        plan = plan_of(run.context)
        run_stages((*plan.choosing, *plan.training), run)
    return load_weights(out / "weights.safetensors")


@pytest.mark.parametrize("at", [3, 6])
def test_a_kill_leaves_the_same_temperature(
    at: int, scene: Scene, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    hold_out = tasks.hold_out

    def stopping(*arguments: object) -> HeldOut:
        begun.append(1)
        if len(begun) == at:  # the network of a fold is trained, and has no record yet
            raise KeyboardInterrupt
        return hold_out(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tasks, "hold_out", stopping)
    if at > 5:
        monkeypatch.setattr(stage, "decide", stopping)
    with pytest.raises(KeyboardInterrupt):
        train(CONFIG, scene, tmp_path / "run")
    monkeypatch.undo()
    # What was trained for the temperature fixes the recipe.
    with pytest.raises(InputError, match="another configuration: recipe"):
        train(CONFIG.with_epochs(1), scene, tmp_path / "run")
    found = train(CONFIG, scene, tmp_path / "run")
    assert len(begun) == at
    assert found.card.temperature == load_weights(finished / "weights.safetensors").card.temperature


def test_validation_pixels_that_the_winner_leaves_out_are_its_record(
    scene: Scene, tmp_path: Path
) -> None:
    config = replace(CONFIG, final_training_on="train", train_per_class=24, seeds=2)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    for folder in (tmp_path / "run", tmp_path / "run" / "seed-1"):
        (record,) = records_of(folder)
        split = np.load(tmp_path / "run" / "split.npz")
        assert np.array_equal(record.trained, split["train"])
        assert np.array_equal(record.pixels, split["validation"])
        found = load_weights(folder / "weights.safetensors").training["calibration"]
        assert (found["folds"], found["pixels"]) == (0, 15)
        assert not list(folder.glob("checkpoint*"))


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


def test_a_record_of_other_pixels_is_made_again(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    run, told = Path(shutil.copytree(finished, tmp_path / "run")), Told()
    shutil.copy(run / "held-out-1.npz", run / "held-out-0.npz")
    Manifest(run).record([run / "held-out-0.npz"])
    with open_run(run, replace(CONFIG, seeds=2), scene, "cpu", told) as opened:
        assert not FOLDS.is_done(opened)
        run_stages((FOLDS, TRAIN), opened)
    assert of_damage(told) == ["held-out-0.npz: is of another run: made again"]
    assert_same(run, finished)


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
        assert set(learnt) | set(held_out) <= set(split.train_and_validation)


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


@pytest.mark.parametrize("smooth", ["auto", "guided"])
def test_a_run_says_and_ships_the_choice(
    smooth: str, scene: Scene, finished: Path, tmp_path: Path
) -> None:
    folder = finished if smooth == "auto" else tmp_path / "run"
    if smooth == "guided":
        run_pipeline(replace(CONFIG, smooth=smooth), scene, folder, device="cpu")
    metrics = json.loads((folder / "metrics.json").read_text())
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
    deployed = DeployedModel.load(folder / "model.onnx", "cpu")
    assert deployed.smoothing is not None
    assert deployed.smoothing.method == choice["method"]
    assert deployed.smoothing.temperature == choice["temperature"] != 1
    labels = classify_scene(deployed, scene.cube, smooth="guided").labels
    test = make_split(scene, CONFIG.split, seed=0, patch_size=3).test
    right = (labels == np.asarray(scene.class_ids)[scene.labels - 1]).flat[test].mean()
    assert found["OA"] == pytest.approx(right)
    assert {"OA", "AA", "kappa", "ECE", "per_class"} <= set(found)
