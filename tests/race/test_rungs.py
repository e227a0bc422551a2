"""The rungs of successive halving."""

from itertools import pairwise

import pytest

from hytas.race import LEAST_FINALISTS, REDUCTION_FACTOR, plan_rungs
from hytas.race.rungs import compared_recipes


@pytest.mark.parametrize(
    ("first", "final_steps", "share", "rungs"),
    [
        ((5, 3), 0, 1.0, [(5, 3), (2, 6)]),  # no training follows
        ((24, 60), 1500, 1.0, [(24, 60), (12, 120), (6, 240), (2, 1125)]),
        # Four folds join: each is trained from the start, and for a shorter time.
        ((24, 60), 1500, 0.2, [(24, 60), (12, 120), (6, 240), (2, 480)]),
        ((6, 30), 300, 0.2, [(6, 30), (2, 100)]),
        ((2, 30), 300, 0.2, [(2, 30), (2, 100)]),
        ((6, 60), 500, 0.5, [(6, 60), (2, 188)]),
        # The last rung is no longer than the final training.
        ((9, 5), 16, 1.0, [(9, 5), (5, 10), (2, 16)]),
        ((9, 3), 5, 1.0, [(9, 3), (5, 5)]),  # which tells as much as another rung would
        ((2, 100), 1500, 1.0, [(2, 100), (2, 1125)]),
        ((4, 100), 100, 1.0, [(4, 100)]),
        ((4, 100), 50, 1.0, [(4, 100)]),
        ((24, 100), 100, 1.0, [(24, 100)]),
        # As long as the final training already: the last rung only adds its folds.
        ((4, 100), 100, 0.2, [(4, 100), (2, 100)]),
        ((24, 60), 240, 0.2, [(24, 60), (12, 120), (6, 240), (2, 240)]),
        ((1, 100), 100, 0.2, [(1, 100)]),
        ((1, 100), 1500, 1.0, [(1, 100)]),
    ],
)
def test_half_go_on_and_train_twice_as_long_until_few_are_left(
    first: tuple[int, int], final_steps: int, share: float, rungs: list[tuple[int, int]]
) -> None:
    planned = plan_rungs(*first, final_steps, share)
    assert [rung[:2] for rung in planned] == rungs
    if share < 1 < first[0]:
        assert planned[-1].all_folds


def test_the_better_half_is_trained_by_each_recipe() -> None:
    assert [compared_recipes(finalists) for finalists in (1, 3, 6, 8, 24)] == [1, 3, 4, 4, 12]


def test_rungs_shrink_by_the_reduction_factor_alone() -> None:
    for finalists in range(2, 70):
        for final_steps in (0, 7, 100, 1500):
            rungs = plan_rungs(finalists, 10, final_steps)
            for before, after in pairwise(rungs):
                assert LEAST_FINALISTS <= after.finalists <= before.finalists
                assert after.steps > before.steps
                assert after.all_folds or after.steps <= REDUCTION_FACTOR * before.steps
                assert not before.all_folds
            assert all(rung.steps <= max(10, final_steps or 10**6) for rung in rungs)
