"""Records of held-out pixels in a run: their pixels, a kill, damage, and further seeds."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from one_candidate import CONFIG, records_of
from without_references import run_pipeline

from hytas.data import Scene, load_scene, make_split, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.run import RunConfig
from hytas.run.context import open_run, prepare
from hytas.run.final import stage
from hytas.run.final.task import final_task
from hytas.run.progress import Report
from hytas.run.weights import load_weights

SEEDS = replace(CONFIG, seeds=2)


@pytest.fixture(scope="module")
def finished(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    run_pipeline(SEEDS, scene, out, device="cpu")
    return out


def test_no_test_pixel_is_recorded_and_no_network_is_asked_for_its_own(
    scene: Scene, finished: Path
) -> None:
    split = prepare(CONFIG, scene, torch.device("cpu")).data.split
    records = records_of(SEEDS, scene, finished)
    pixels = np.concatenate([record.pixels for record in records])
    assert len(records) == 5
    assert len(set(pixels)) == len(pixels)
    assert set(pixels) <= set(split.train_and_validation.tolist())
    for record in records:
        assert not set(record.trained) & set(record.pixels)
        assert np.array_equal(record.targets, scene.targets(record.pixels))
        assert not record.self_trained  # the split is random


def test_the_neighbours_are_those_that_the_filter_reads(scene: Scene, finished: Path) -> None:
    record = records_of(SEEDS, scene, finished)[0]
    rows, columns = np.divmod(record.neighbours, 24)
    near = [
        np.maximum(abs(rows - row), abs(columns - column))
        for row, column in zip(*np.divmod(record.compared, 24), strict=True)
    ]
    assert np.min(near, axis=0).max() <= 8
    assert set(record.compared) == set(record.pixels) <= set(record.neighbours)


def test_the_temperature_that_ships_is_that_of_the_records(scene: Scene, finished: Path) -> None:
    with open_run(finished, SEEDS, scene, "cpu", Report()) as run:
        _, _, found = stage.decide_for(final_task(run), run.context)
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


def test_validation_pixels_that_the_winner_leaves_out_are_its_record(
    scene: Scene, tmp_path: Path
) -> None:
    config = replace(CONFIG, final_training_on="train", train_per_class=24, seeds=2)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    for seed, folder in ((0, tmp_path / "run"), (1, tmp_path / "run" / "seed-1")):
        (record,) = records_of(config, scene, tmp_path / "run", seed)
        split = np.load(tmp_path / "run" / "split.npz")
        assert np.array_equal(record.trained, split["train"])
        assert np.array_equal(record.pixels, split["validation"])
        found = load_weights(folder / "weights.safetensors").training["calibration"]
        assert (found["folds"], found["pixels"]) == (0, 15)


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


@pytest.mark.parametrize(("given", "days"), [({"target_column": ["y"]}, 3), ({}, 1)])
def test_each_group_of_values_is_held_out_however_many_rows_it_has(
    given: dict[str, list[str]], days: int, tmp_path: Path
) -> None:
    """Rows of one day are alike: of values a day counts as one, of classes as its 70 rows."""
    day, values = np.repeat(np.arange(4), 70), np.random.default_rng(0).normal(size=(280, 8))
    names = ["y", "day", *map(str, range(400, 480, 10))]
    table = np.column_stack([np.arange(280) % 5 + 10, day, values])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header=",".join(names), comments="")
    scene = load_scene(tmp_path / "t.csv", group_column="day", **(given or {"label_column": "y"}))
    config = RunConfig(budget="20K-params", effort="quick", task="auto", **given)
    context = prepare(config, scene, torch.device("cpu"))
    folds = context.folds()
    assert len(folds) == days
    assert len({day[pixel] for _, held_out in folds for pixel in held_out}) == days
    assert all(not set(day[train]) & set(day[held_out]) for train, held_out in folds)


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
