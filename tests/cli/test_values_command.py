"""A whole run on a scene of values: killed, and with two workers, it is the same to the byte."""

import csv
import json
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from small_run import TINY_SEARCH, small_scene

from commands import Run, start_copy

FILES = ("architecture.json", "metrics.json", "model.onnx", "weights.safetensors")
FILES += ("predictions.csv", "references.json")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cube, labels = small_scene()
    carbon = cube[..., 3] / 1000 + 0.1 * labels
    path = tmp_path_factory.mktemp("values") / "scene.npz"
    np.savez(path, cube=cube, carbon=np.where(labels > 0, carbon, np.nan))
    return path


def command(data: Path, out: Path, workers: int) -> list[object]:
    given = ["search", "--data", data, "--task", "values", "--budget", "6K-params", "--out", out]
    return [*given, "--patch-size", 3, "--block", 4, "--workers", workers, *TINY_SEARCH]


@pytest.mark.slow
def test_killed_and_with_two_workers_it_is_the_same(data: Path, tmp_path: Path, hytas: Run) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = hytas(*command(data, whole, 1))
    assert done.returncode == 0, done.stderr
    moments, kills = random.Random(0), 0
    for delay in [moments.uniform(0.5, 6) for _ in range(3)]:
        child = start_copy(*command(data, killed, 2), out=tmp_path / "out", err=tmp_path / "err")
        time.sleep(delay)
        child.kill()
        child.join()
        kills += child.exitcode == -signal.SIGKILL
    assert kills > 0
    done = hytas(*command(data, killed, 2))
    assert done.returncode == 0, done.stderr
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    test = json.loads((whole / "metrics.json").read_text())["test"]
    with (whole / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == test["pixels"]
    truth, given = (
        np.array([float(row[name]) for row in rows]) for name in ("carbon observed", "carbon")
    )
    assert test["per_target"]["carbon"]["RMSE"] == pytest.approx(
        np.sqrt(((given - truth) ** 2).mean()), rel=1e-4
    )
    report = (whole / "report.html").read_text()
    assert "carbon: residual map" in report
    assert "carbon: predicted" in report
