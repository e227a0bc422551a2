"""Charts of a test and of a search show what they were given."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from hytas.metrics import accuracy_report
from hytas.pictures import Legend, draw_confusion, draw_front, draw_map


def report() -> dict[str, Any]:
    truth = np.repeat([0, 1, 2], [50, 40, 400])
    predicted = truth.copy()
    predicted[:10], predicted[-1] = 1, 0
    return accuracy_report(truth, predicted, ("grass", "roof & wall", "water"))


def texts(path: Path) -> set[str]:
    """What an SVG says: matplotlib draws glyphs, and leaves each text in a comment."""
    found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))
    return {html.unescape(text) for text in found}


def test_a_confusion_matrix_has_shares_and_counts(tmp_path: Path) -> None:
    path = draw_confusion(tmp_path / "confusion.svg", report())
    said = texts(path)
    assert {"grass (50)", "roof & wall (40)", "water (400)", "80", "20", "100", "<1"} <= said
    assert any(text.startswith("OA 0.9776, AA ") for text in said)


def test_a_picture_is_drawn_as_dots_too(tmp_path: Path) -> None:
    pixels = imread(draw_confusion(tmp_path / "confusion.png", report()))[..., :3]
    dark = (np.abs(pixels - np.array([8, 48, 107]) / 255) < 0.02).all(axis=2)
    assert dark.mean() > 0.02  # the cells of the diagonal


def test_a_front_has_a_dot_for_each_architecture(tmp_path: Path) -> None:
    path = draw_front(tmp_path / "front.svg", [1e5, 2e5, 4e5], [0.2, 0.5, 0.6], "params")
    assert {"params", "score (larger is better)"} <= texts(path)
    assert len(re.findall(r"<use .*fill: #1f77b4", path.read_text(encoding="utf-8"))) == 3


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_figures_give_the_same_file(tmp_path: Path, suffix: str) -> None:
    labels, legend = np.ones((4, 4), np.int32), Legend((1,), ("grass",), ((0, 200, 0),))
    for name in "ab":
        draw_confusion(tmp_path / f"{name}1.{suffix}", report())
        draw_map(tmp_path / f"{name}2.{suffix}", labels, legend)
        draw_front(tmp_path / f"{name}3.{suffix}", [1, 2], [0.1, 0.2], "params")
    for number in (1, 2, 3):
        first, second = (tmp_path / f"{name}{number}.{suffix}" for name in "ab")
        assert first.read_bytes() == second.read_bytes()
