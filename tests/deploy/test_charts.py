"""Pictures of a training and of a test show what they were given."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from hytas.deploy.charts import draw_confusion, draw_learning_curve
from hytas.metrics import accuracy_report
from hytas.run.charts import draw_charts


def history(watched: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "epoch": epoch,
            "loss": 2.0 / epoch,
            "validation_loss": 2.5 / epoch if watched else None,
            "validation_oa": 1 - 0.5 / epoch if watched else None,
        }
        for epoch in range(1, 12)
    ]


def report() -> dict[str, Any]:
    truth = np.repeat([0, 1, 2], [50, 40, 400])
    predicted = truth.copy()
    predicted[:10], predicted[-1] = 1, 0
    return accuracy_report(truth, predicted, ("grass", "roof & wall", "water"))


def texts(path: Path) -> set[str]:
    """What an SVG says: matplotlib draws glyphs, and leaves each text in a comment."""
    found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))
    return {html.unescape(text) for text in found}


def test_a_learning_curve_names_its_lines(tmp_path: Path) -> None:
    path = draw_learning_curve(tmp_path / "curve.svg", history(), 7)
    assert {"epoch", "training", "validation", "validation OA (right)", "kept"} <= texts(path)
    alone = draw_learning_curve(tmp_path / "alone.svg", history(watched=False), 11)
    assert "training" in texts(alone)
    assert "validation" not in texts(alone)


def test_a_confusion_matrix_has_shares_and_counts(tmp_path: Path) -> None:
    path = draw_confusion(tmp_path / "confusion.svg", report())
    said = texts(path)
    assert {"grass (50)", "roof & wall (40)", "water (400)", "80", "20", "100", "<1"} <= said
    assert any(text.startswith("OA 0.9776, AA ") for text in said)


def test_a_picture_is_drawn_as_dots_too(tmp_path: Path) -> None:
    pixels = imread(draw_confusion(tmp_path / "confusion.png", report()))[..., :3]
    dark = (np.abs(pixels - np.array([8, 48, 107]) / 255) < 0.02).all(axis=2)
    assert dark.mean() > 0.02  # the cells of the diagonal
    assert imread(draw_learning_curve(tmp_path / "curve.png", history(), 3)).shape[0] > 300


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_figures_give_the_same_file(tmp_path: Path, suffix: str) -> None:
    pairs = [draw_confusion(tmp_path / f"{name}.{suffix}", report()).read_bytes() for name in "ab"]
    assert pairs[0] == pairs[1]


def test_a_run_gets_both(tmp_path: Path) -> None:
    metrics = {"training": {"history": history(), "best_epoch": 2}, "test": report()}
    draw_charts(tmp_path, metrics)
    assert {path.name for path in tmp_path.iterdir()} == {"learning-curve.svg", "confusion.svg"}
