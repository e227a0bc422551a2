"""The Pareto front of a search, as a table and as a picture."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hytas.files import atomic_write
from hytas.pictures import draw_front
from hytas.search import Evaluation


def write_front(
    table: Path, picture: Path, front: Sequence[tuple[Evaluation, float]], costs: Sequence[str]
) -> None:
    """Write the front as a table, cheapest first, and as a picture.

    Args:
        table: a CSV file.
        picture: an image file.
        front: candidates that no other dominates, with their fitness.
        costs: minimised costs; the first one is the picture's horizontal axis.

    Raises:
        OSError: a file cannot be written.
    """
    rows = sorted(front, key=lambda row: [row[0].costs[name] for name in costs])
    genes = [name for name in rows[0][0].architecture if name != "space"]
    with (
        atomic_write(table) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow([*costs, "score", *genes])
        for item, score in rows:
            values = [_cell(item.architecture[name]) for name in genes]
            writer.writerow([*(item.costs[name] for name in costs), score, *values])
    first = [item.costs[costs[0]] for item, _ in rows]
    draw_front(picture, first, [score for _, score in rows], costs[0])


def _cell(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value)
