"""A race for a Pareto front: dominance, order, volume by brute force, and who races."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from small_race import race, race_task, ranked

from hytas.race import RungEnd
from hytas.race.front import FRONT_FINALISTS, front_order, hypervolume, non_dominated
from hytas.search import EvaluationStore


def dominates(one: list[float], other: list[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_front_is_what_no_other_dominates(objectives: int) -> None:
    points = np.random.default_rng(0).integers(0, 6, (40, objectives)).astype(float)
    rows = points.tolist()
    expected = [not any(dominates(other, one) for other in rows) for one in rows]
    assert non_dominated(points).tolist() == expected
    order = front_order(points)
    assert sorted(order) == list(range(40))
    assert set(order[: sum(expected)]) == set(np.flatnonzero(expected).tolist())
    for before, after in pairwise(order):
        assert not dominates(rows[after], rows[before])


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_the_volume_is_the_count_of_dominated_cells(objectives: int) -> None:
    points = np.random.default_rng(1).integers(0, 12, (7, objectives)).astype(float)
    cells = np.stack(np.meshgrid(*[np.arange(10)] * objectives), -1).reshape(-1, objectives)
    inside = (points[None] <= cells[:, None]).all(axis=2).any(axis=1).sum()
    assert hypervolume(points, [10.0] * objectives) == inside


def test_the_ends_of_a_front_go_on_first() -> None:
    points = np.array([[0, 9], [1, 8.9], [2, 4], [9, 0], [9, 9.5]])
    assert set(front_order(points)[:2]) == {0, 3}
    assert front_order(points)[-1] == 4


def test_a_race_for_a_front_keeps_small_and_accurate_finalists(store: EvaluationStore) -> None:
    sized = [
        replace(one, costs={"params": 10 * one.architecture["embed_dim"]}) for one in ranked(11)
    ]
    ends: list[RungEnd] = []
    task = replace(race_task(epochs=20), front=("params",))
    winner = race(task, sized, store, finalists=11, steps=3, workers=1, on_rung=ends.append)
    assert len(ends[-1].rows) == FRONT_FINALISTS
    smallest = min(one.costs["params"] for one in sized)
    for end in ends:  # nothing dominates the smallest, so it stays to the end
        assert smallest in [row.racer.finalist.costs["params"] for row in end.rows]
    assert winner in [row.racer for row in ends[-1].rows]
