"""What finalists reached in the rungs of a race, and their order."""

import math

import pytest
from small_race import figures

from hytas.race import (
    DEFAULT_RANKING,
    RANKINGS,
    Racer,
    RungResult,
    best_first,
    race_scores,
    rung_results,
)
from hytas.search import Evaluation, Training

USUAL = RANKINGS[DEFAULT_RANKING]


def test_the_figures_of_a_rung_weigh_folds_by_their_pixels() -> None:
    one = Training(7, "plain", 100, 0, 30, figures(0.6, 0.5), 2.0)
    two = Training(7, "plain", 100, 1, 10, figures(1.0, 0.9), 3.0)
    other = Training(3, "plain", 50, 0, 10, figures(0.2, 0.1), 1.0)
    first, second = rung_results([two, other, one])
    assert (first.key, first.steps, first.folds, first.figures["accuracy"]) == (
        (3, "plain"),
        50,
        1,
        0.2,
    )
    assert (second.key, second.folds, second.seconds) == ((7, "plain"), 2, 5.0)
    assert second.figures["accuracy"] == pytest.approx(0.7)
    assert second.score(RANKINGS["accuracy"]) == pytest.approx(0.7 + 1e-3 * 0.6)
    assert rung_results([one, two]) == rung_results([two, one])


def test_what_failed_in_one_fold_or_rung_is_last() -> None:
    well = Training(7, "plain", 100, 0, 30, figures(0.4), 2.0)
    failed = Training(7, "plain", 100, 1, 10, {}, 3.0, "too wild")
    (result,) = rung_results([well, failed])
    assert (result.score(USUAL), result.reason) == (-math.inf, "too wild")
    before = RungResult((7, "plain"), 50, 2, figures(0.9), 1.0, "")
    assert race_scores({(7, "plain"): [before, result]}, USUAL) == {}


def test_the_order_is_that_of_the_score_then_that_given() -> None:
    items = [Racer(Evaluation(n, 0, {}, {}, {}, {}, 0.0), "plain") for n in (4, 2, 9, 1)]
    values = {4: 0.5, 2: 0.7, 9: 0.7, 1: math.nan}
    rungs = {
        (n, "plain"): [RungResult((n, "plain"), 10, 1, figures(value), 1.0, "")]
        for n, value in values.items()
    }
    assert [item.finalist.id for item in best_first(items, race_scores(rungs, USUAL))] == [2, 9, 4]
