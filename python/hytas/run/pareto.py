"""The Pareto front of a search, as a table and as a picture."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hytas.files import atomic_write
from hytas.search import Evaluation

FILES = ("pareto.csv", "pareto.png")


def write_front(
    folder: Path, front: Sequence[tuple[Evaluation, float]], costs: Sequence[str]
) -> None:
    """Write `pareto.csv`, cheapest first, and `pareto.png` into `folder`.

    Args:
        folder: of the run.
        front: evaluations that no other dominates, with their fitness.
        costs: that were minimised; the picture's horizontal axis is the first.

    Raises:
        OSError: the folder cannot be written.
    """
    rows = sorted(front, key=lambda row: [row[0].costs[name] for name in costs])
    genes = [name for name in rows[0][0].architecture if name != "space"]
    with (
        atomic_write(folder / FILES[0]) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow([*costs, "score", *genes])
        for item, score in rows:
            values = [_cell(item.architecture[name]) for name in genes]
            writer.writerow([*(item.costs[name] for name in costs), score, *values])
    _draw(folder / FILES[1], [(item.costs[costs[0]], score) for item, score in rows], costs[0])


def _cell(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value)


def _draw(path: Path, points: Sequence[tuple[int, float]], cost: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(*zip(*points, strict=True), marker="o", linestyle="none", markersize=4)
    axes.set_xlabel(cost)
    axes.set_ylabel("score (larger is better)")
    axes.grid(alpha=0.3)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata={"Software": None})
