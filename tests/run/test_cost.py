"""The cost of a run: seconds of each stage, of all parts and workers."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from one_candidate import CONFIG

from hytas.data import Scene
from hytas.job import run_pipeline
from hytas.run import read_run
from hytas.run.folder import RunFolder
from hytas.run.times import all_times, kept_time, read_times
from hytas.workers import ExecutorWorkers


def burn(seconds: float) -> float:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


def test_the_cost_of_a_run_is_in_outcome_records_and_report(scene: Scene, tmp_path: Path) -> None:
    outcome = run_pipeline(CONFIG, scene, tmp_path, device="cpu")
    cost = outcome.to_dict()["cost"]
    assert {"search", "final training", "export", "map"} <= set(cost["stages"])
    assert cost["cpu_seconds"] > 0 == cost["gpu_seconds"]
    assert read_run(tmp_path).cost() == cost


def test_parts_of_a_stage_add_up_and_calls_of_workers_count(tmp_path: Path) -> None:
    path, context = tmp_path / "times.json", get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool, kept_time(path, "race", "", on_gpu=False):
        assert list(ExecutorWorkers(pool).run(burn, [(0.3,)], 1)) == [0.3]
    assert read_times(path)["race"]["cpu_seconds"] >= 0.3
    with kept_time(path, "race", "", on_gpu=True):
        burn(0.3)
    entry = read_times(path)["race"]
    assert entry["cpu_seconds"] >= 0.6
    assert 0.3 <= entry["gpu_seconds"] < entry["seconds"]


def test_times_are_those_of_all_trainings_in_the_folder(tmp_path: Path) -> None:
    for inner in ("", "seed-1", "control", "control/seed-1"):
        (tmp_path / inner).mkdir(exist_ok=True)
        with kept_time(tmp_path / inner / "times.json", "race", "", on_gpu=False):
            pass
    assert list(all_times(RunFolder(tmp_path))) == [
        "race",
        "race of seed 1",
        "race of the control",
        "race of seed 1 of the control",
    ]
