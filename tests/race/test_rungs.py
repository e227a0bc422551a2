"""The rungs of successive halving."""

from itertools import pairwise

import pytest

from hytas.race import LEAST_FINALISTS, REDUCTION_FACTOR, plan_rungs


@pytest.mark.parametrize(
    ("first", "final_steps", "rungs"),
    [
        ((5, 3), 0, [(5, 3), (3, 6)]),  # no training follows
        ((5, 3), 16, [(5, 3), (3, 6), (2, 16)]),
        # The last two train to the end, even if that is hardly longer.
        ((8, 5), 16, [(8, 5), (4, 10), (2, 16)]),
        # A third rung would take 12 steps; the final training takes 8, and tells as much.
        ((9, 3), 8, [(9, 3), (5, 6), (3, 8)]),
        ((16, 100), 1500, [(16, 100), (8, 200), (4, 400), (2, 1500)]),
        ((2, 100), 1500, [(2, 100), (2, 1500)]),
        ((4, 100), 100, [(4, 100)]),
        ((4, 100), 50, [(4, 100)]),
        ((1, 100), 1500, [(1, 100)]),
    ],
)
def test_half_go_on_and_train_twice_as_long(
    first: tuple[int, int], final_steps: int, rungs: list[tuple[int, int]]
) -> None:
    assert [rung[:2] for rung in plan_rungs(*first, final_steps)] == rungs


def test_rungs_shrink_by_the_reduction_factor_alone() -> None:
    for finalists in range(2, 70):
        for final_steps in (0, 7, 100, 1500):
            rungs = plan_rungs(finalists, 10, final_steps)
            for before, after in pairwise(rungs):
                assert LEAST_FINALISTS <= after.finalists <= before.finalists
                assert after.steps > before.steps
                longer = after.steps <= REDUCTION_FACTOR * before.steps
                assert longer or after[:2] == (LEAST_FINALISTS, final_steps)
            assert final_steps == 0 or rungs[-1].steps >= final_steps
