"""The Pareto front of a search, as a table and as a picture."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hytas.files import atomic_write
from hytas.pictures import draw_front
from hytas.race import RungEnd
from hytas.race.front import hypervolume, non_dominated
from hytas.run.folder import write_json
from hytas.search import Evaluation, EvaluationStore


def write_front(
    table: Path, picture: Path, front: Sequence[tuple[Evaluation, float]], costs: Sequence[str]
) -> None:
    """Write the front as a table, cheapest first, and as a picture.

    Args:
        front: candidates that no other dominates, with their fitness.
        costs: minimised costs; the first one is the picture's horizontal axis.
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


def write_trained_front(
    path: Path, costs: Sequence[str], store: EvaluationStore, last: RungEnd, pixels: int
) -> dict[str, Any]:
    """Write and return the front of the finalists of a rung, by costs and accuracy.

    The hypervolume is a share: of the box from 0 to the largest cost of a candidate, and from
    accuracy 0 to 1.

    Args:
        last: the last rung that ended.
        pixels: validation pixels of that rung.
    """
    candidates = store.evaluations()
    largest = [max(one.costs[name] for one in candidates) for name in costs]
    rows = [(row.racer, row.accuracy) for row in last.rows if row.accuracy is not None]
    spent = [[racer.finalist.costs[name] for name in costs] for racer, _ in rows]
    points = np.array(
        [
            [*np.divide(own, largest), 1 - accuracy]
            for own, (_, accuracy) in zip(spent, rows, strict=True)
        ],
        np.float64,
    )
    networks = [
        {
            **dict(zip(costs, spent[at], strict=True)),
            "accuracy": rows[at][1],
            "recipe": rows[at][0].recipe,
            "architecture": rows[at][0].finalist.architecture,
        }
        for at in np.flatnonzero(non_dominated(points))
    ]
    facts = {
        "axes": [*costs, "accuracy"],
        "steps": last.steps,
        "pixels": pixels,
        "hypervolume": hypervolume(points, [1.0] * points.shape[1]),
        "reference": {**dict(zip(costs, largest, strict=True)), "accuracy": 0.0},
        "networks": sorted(networks, key=lambda one: [one[name] for name in costs]),
    }
    write_json(path, facts)
    return facts


def _cell(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value)
