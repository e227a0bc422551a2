"""The block that ends a run, and what `hytas export` says of its files."""

from pathlib import Path
from typing import Any

import pytest

from hytas.cli.summary import print_outcome
from hytas.run import Outcome

GENES = {
    "space": "hytas-wide",
    "tokens": "band",
    "patch": 3,
    "band_mixer": "conv3",
    "band_gate": "yes",
    "band_depth": 2,
    "band_mlp": [4, 2],
}


def ended(
    budget: str,
    bounds: list[tuple[str, int, int]],
    metrics: dict[str, Any] | None = None,
    **costs: int,
) -> Outcome:
    files = {"model.onnx": 420_000}
    seconds = {"search": 41.0, "race": 190.0, "export": 2.0}
    stages = {name: {"seconds": value} for name, value in seconds.items()}
    cost = {"stages": stages, "cpu_seconds": 2 * sum(seconds.values()), "gpu_seconds": 0.0}
    return Outcome(dict(GENES), costs, bounds, budget, metrics, files, Path("runs/a b"), cost)


def report(accuracy: float) -> dict[str, Any]:
    return {"pixels": 900, "OA": accuracy, "AA": accuracy, "kappa": accuracy, "ECE": 0.02}


def metrics(below: tuple[str, ...] = ()) -> dict[str, Any]:
    method = {"pixels": 90, "of_pixels": 90}
    return {
        "test": report(0.95),
        "smoothed": report(0.98),
        "smoothing": {"method": "guided", "pixels": 60, "OA_raw": 0.9, "OA_smoothed": 0.97},
        "self_training": {"used": False, "pixels": 60, "OA_before": 0.97, "OA_after": 0.96},
        "calibration": {"temperature": 1.2, "pixels": 60, "ECE_before": 0.1, "ECE_after": 0.02},
        "parity": {"formats": {"onnx": {"max_difference": 1e-7}}},
        "training": {},
        "references": {
            "reason": "",
            "validation": {
                "pixels": 60,
                "OA": {"winner": 0.97, "svm": 0.9, "rf": 0.8},
                "below": list(below),
                "verdict": "warning: the winner is below SVM; try --effort normal",
            },
            "methods": {
                "svm": {"title": "SVM", "test": report(0.8), "smoothed": report(0.92), **method},
                "rf": {"title": "forest", "test": report(0.7), "smoothed": report(0.94), **method},
            },
        },
    }


def printed(capsys: pytest.CaptureFixture[str], outcome: Outcome) -> list[str]:
    print_outcome(outcome, "scene.mat", as_json=False)
    return capsys.readouterr().out.splitlines()


def test_a_run_ends_in_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = [("params", 0, 100_000)]
    lines = printed(capsys, ended("100K-params", bounds, metrics(), params=50_000, macs=10))
    assert len(lines) <= 10
    assert lines[0].startswith("accuracy of the smoothed map 0.9800 on 900 test pixels")
    # The better map of each reference, which is the smoothed one here.
    assert lines[1] == "4.0 points above forest, smoothed"
    assert "bands 3x3, gated conv3, 2 layers" in lines[2]
    assert "50,000 params (50% of the budget), 420.0 kB" in lines[2]
    assert lines[3:6] == [
        "maps are smoothed: OA on 60 validation pixels 0.9000 raw and 0.9700 smoothed",
        "self-training is not used: OA on 60 validation pixels 0.9700 without and 0.9600 with it",
        "confidence calibrated on 60 validation pixels: temperature 1.2, ECE there 0.100 before "
        "and 0.020 after",
    ]
    assert lines[6] == "time 3:53 min: race 3:10 min, search 41 s; CPU 7:46 min"
    assert lines[7] == "open runs/a b/report.html"
    assert lines[8] == "next: hytas classify 'runs/a b/model.onnx' scene.mat --out map.png"
