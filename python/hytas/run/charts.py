"""The charts of a run: how it learned, and what it confuses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hytas.deploy.charts import draw_confusion, draw_learning_curve

CHARTS = ("learning-curve.svg", "confusion.svg")


def draw_charts(folder: Path, metrics: Mapping[str, Any]) -> None:
    """Write `learning-curve.svg` and `confusion.svg` into a run's folder.

    Args:
        folder: of the run.
        metrics: of `metrics.json`.

    Raises:
        OSError: the folder cannot be written.
    """
    training = metrics["training"]
    curve, confusion = (folder / name for name in CHARTS)
    draw_learning_curve(curve, training["history"], training["best_epoch"])
    draw_confusion(confusion, metrics["test"])
