"""Facts of runs that never ran: small, quick, and of any number of candidates."""

from dataclasses import replace
from typing import Any

import numpy as np

from hytas.metrics import accuracy_report, summarise
from hytas.report import Candidates, Finalist, ReportPixels, RunFacts, view_pixels
from hytas.spaces.costs import LayerCost

NAMES = ("grass", "roof & wall", "water")
HOSTILE = (
    "</script><script>window.hurt=1</script>",
    "\"><img src=x onerror='window.hurt=1'>{{ 7*7 }}",
    "a\u202eb\x00\x1b[31m\n'`</title></style>",
)
HEIGHT, WIDTH, BANDS = 20, 30, 12


def pixels() -> ReportPixels:
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(1, 4), WIDTH // 3)[None].repeat(HEIGHT, 0).astype(np.int32)
    cube = generator.normal(100 * labels[..., None], 5, (HEIGHT, WIDTH, BANDS)).astype(np.float32)
    labels[0] = 0
    found = np.maximum(labels, 1)
    found[5, 5] = 3
    found[1, :4] = 0
    roles = np.where(labels > 0, 3, 0).astype(np.uint8)
    confidence = np.full(labels.shape, 0.8, np.float32)
    palette = np.array([[240, 200, 0], [130, 80, 140], [10, 90, 160]], np.uint8)
    kept = np.arange(BANDS)
    return view_pixels(
        cube, found, confidence, labels, roles, kept=kept, wavelengths=None, palette=palette
    )


def metrics(names: tuple[str, ...] = NAMES, seed: int = 0, tested: int = 3) -> dict[str, Any]:
    """With `tested` below three, the last classes have no test pixel."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, tested, 300)
    predicted = np.where(generator.random(300) < 0.9, truth, generator.integers(0, tested, 300))
    report = accuracy_report(truth, predicted, names, generator.uniform(0.5, 1, 300))
    return {
        "test": {**report, "ECE_before": 0.2},
        "calibration": {"reason": ""},
        "parity": {"pixels": 300, "formats": {"onnx": {"max_difference": 1e-6}}},
        "split": {
            "kind": "blocks",
            "train": 90,
            "validation": 20,
            "test": 300,
            "overlap": 0.0,
            "overlap_of_model": 0.0,
            "notes": [f"class {names[0]} has few pixels"],
        },
        "costs": {"params": 2000, "macs": 90_000},
        "device": "cpu",
        "training": {
            "history": [
                {"epoch": n, "loss": 1 / n, "validation_loss": 1.2 / n, "validation_oa": 1 - 1 / n}
                for n in range(1, 9)
            ],
            "best_epoch": 7,
        },
    }


def with_references(found: dict[str, Any], below: bool = False) -> dict[str, Any]:
    """Metrics of a run whose map is smoothed, beside two reference methods."""
    names = tuple(found["test"]["per_class"])
    choice = {"method": "guided", "pixels": 40, "OA_raw": 0.85, "OA_smoothed": 0.95, "reason": ""}
    methods = {
        name: {
            "title": title,
            "pixels": 90,
            "of_pixels": 110,
            "test": metrics(names, seed)["test"],
            "smoothed": metrics(names, seed + 1)["test"],
        }
        for seed, (name, title) in enumerate([("svm", "SVM"), ("rf", "random forest")], 5)
    }
    validation = {
        "pixels": 40,
        "OA": {"winner": 0.85, "svm": 0.875, "rf": 0.7},
        "below": ["svm"] if below else [],
        "verdict": "warning: below SVM" if below else "OA on 40 held-out pixels",
    }
    return {
        **found,
        "smoothing": choice,
        "smoothed": metrics(names, 9)["test"],
        "references": {"reason": "", "validation": validation, "methods": methods},
    }


def with_seeds(found: dict[str, Any]) -> dict[str, Any]:
    names = tuple(found["test"]["per_class"])
    reports = [found["test"], *(metrics(names, seed)["test"] for seed in (1, 2))]
    return {**found, "seeds": {"of": [0, 1, 2], **summarise(reports)}}


def candidates(count: int = 40) -> Candidates:
    generator = np.random.default_rng(1)
    params = generator.integers(1000, 9000, count).astype(np.float64)
    scores = params * generator.uniform(0.5, 1.5, count)
    scores[3] = np.nan
    return Candidates(
        ids=range(1, count + 1),
        generations=[at // 10 for at in range(count)],
        genes={
            "depth": [str(n) for n in generator.integers(1, 7, count)],
            "tokens": ["band"] * count,
        },
        costs={"params": params, "macs": params * 50},
        scores={"dss": scores},
        winner=7,
    )


def finalists() -> list[Finalist]:
    def figures(value: float) -> dict[str, float]:
        return {
            "accuracy": value,
            "probability": value,
            "score": value,
        }

    return [
        Finalist(7, "usual", True, {100: figures(0.8), 200: figures(0.9)}, 12.5, ""),
        Finalist(2, "usual", False, {100: figures(0.7), 200: figures(0.85)}, 70.0, ""),
        Finalist(5, "usual", False, {100: {}}, 1.0, "diverged <b>here</b>"),
    ]


def facts(names: tuple[str, ...] = NAMES, **changed: Any) -> RunFacts:
    whole = RunFacts(
        name="ip",
        config={"data": "/scenes/field.mat", "budget": "10K-params", "seed": 0, "labels": None},
        versions={"hytas": "0.1.0"},
        fingerprint="abc",
        metrics=metrics(names),
        architecture={"space": "hytas", "depth": 2, "mlp_ratio": [4, 3]},
        costs={"params": 2000, "macs": 90_000},
        units={"params": "params", "macs": "MACs"},
        bounds=[("params", 0, 10_000)],
        candidates=candidates(),
        finalists=finalists(),
        layers=[
            LayerCost("embed", "band", "a token a band", 500, 30_000),
            LayerCost("head", "", "map", 7, 9),
        ],
        pixels=pixels(),
        path="runs/ip",
        scene="field",
        times={
            "search": {
                "seconds": 75.0,
                "ended": "2026-01-01T10:00:00+00:00",
                "command": "hytas search --budget 10K-params",
            }
        },
        model={"name": "model.onnx", "bytes": 9000, "sha256": "0" * 64},
        split="same",
    )
    return replace(whole, **changed)
