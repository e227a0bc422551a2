"""What finalists reached in the rounds of a race, and their order."""

import math

import pytest

from hytas.run.rounds import RoundResult, best_first, round_results, standing
from hytas.search import Evaluation, Training


def test_results_of_a_round_weigh_folds_by_their_pixels() -> None:
    one = Training(7, 100, 0, 30, 0.5, 0.6, 0.4, 2.0)
    two = Training(7, 100, 1, 10, 0.9, 1.0, 0.8, 3.0)
    other = Training(3, 50, 0, 10, 0.1, 0.2, 0.3, 1.0)
    first, second = round_results([two, other, one])
    assert (first.id, first.steps, first.folds, first.oa) == (3, 50, 1, 0.2)
    assert (second.id, second.folds, second.seconds) == (7, 2, 5.0)
    assert second.oa == pytest.approx(0.7)
    assert second.merit == pytest.approx(0.5 + 1e-3 * 0.6)
    assert round_results([one, two]) == round_results([two, one])


def test_what_failed_in_one_fold_or_round_is_last() -> None:
    well = Training(7, 100, 0, 30, 0.5, 0.6, 0.4, 2.0)
    failed = Training(7, 100, 1, 10, math.nan, math.nan, math.nan, 3.0, "too wild")
    (result,) = round_results([well, failed])
    assert (result.merit, result.reason) == (-math.inf, "too wild")
    before = RoundResult(7, 50, 2, 0.9, 0.9, 0.9, 1.0, "")
    assert standing([before, result]) == -math.inf


def test_the_order_is_that_of_the_standing_then_that_given() -> None:
    items = [Evaluation(n, 0, {}, {}, {}, {}, 0.0) for n in (4, 2, 9, 1)]
    merits = {4: 0.5, 2: 0.7, 9: 0.7, 1: math.nan}
    rounds = {n: [RoundResult(n, 10, 1, 0.0, 0.0, merit, 1.0, "")] for n, merit in merits.items()}
    assert [item.id for item in best_first(items, rounds)] == [2, 9, 4]
