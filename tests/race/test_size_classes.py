"""Size classes: finalists, promotion, winner, and the comparison with smaller networks."""

import numpy as np
import pytest
from small_race import figures

from hytas.race import (
    RungResult,
    SizeRow,
    size_classes,
    size_rows,
    smaller_finalists,
    smallest_as_good,
)
from hytas.race.rungs import choose_winner, is_far_behind
from hytas.search import Evaluation


def of_size(number: int, params: int, **genes: object) -> Evaluation:
    return Evaluation(number, 0, {"space": "s", **genes}, {"params": params}, {}, {}, 0.0)


def flags(wrong: int, start: int = 0, pixels: int = 100) -> np.ndarray:
    """Flags of pixels, so many of which are wrong, from a place on."""
    right = np.ones(pixels, np.bool_)
    right[start : start + wrong] = False
    return right


def test_size_classes_end_at_the_largest_a_half_a_quarter_and_a_tenth() -> None:
    assert size_classes([1000, 501, 500, 251, 250, 101, 100, 1]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert size_classes([0, 0]) == [3, 3]  # where parameters are not counted, all are equal
    assert size_classes([]) == []


def test_far_behind_is_twice_the_standard_deviation_by_chance() -> None:
    best = flags(0)
    assert is_far_behind(best, flags(5))  # 5 > 2 sqrt(5)
    assert not is_far_behind(best, flags(4))
    assert not is_far_behind(flags(5), best)
    assert not is_far_behind(best, np.zeros(0, np.bool_))


def test_who_is_behind_by_more_than_chance_does_not_win() -> None:
    # The first one by score has two pixels less than the second, by chance.
    near = [flags(10, 0), flags(8, 5), flags(30, 20)]
    assert choose_winner(near, [50, 40, 10]) == 0
    assert choose_winner(near, [50, 40, 10], "small") == 1  # the third one is behind
    behind = [flags(20, 0), flags(2, 50), flags(3, 60)]
    assert choose_winner(behind, [50, 40, 10]) == 1
    assert choose_winner(behind, [50, 40, 10], "small") == 2
    unknown = [np.zeros(0, np.bool_)] * 2
    assert choose_winner(unknown, [50, 40]) == 0


@pytest.mark.parametrize(("wrong", "verdict"), [(3, "as good"), (30, "below"), (0, "above")])
def test_each_size_is_compared_with_the_winner_after_as_many_steps(
    wrong: int, verdict: str
) -> None:
    def result(number: int, steps: int, right: np.ndarray) -> RungResult:
        return RungResult((number, "plain"), steps, 1, figures(0.5), 0.0, "", right)

    candidates = [of_size(0, 1000), of_size(1, 900), of_size(2, 90)]
    results = {
        (0, "plain"): [result(0, 10, flags(4)), result(0, 20, flags(1))],
        (1, "plain"): [result(1, 10, flags(5))],
        (2, "plain"): [result(2, 10, flags(wrong, 50))],
    }
    placed = dict.fromkeys(results, 0.5)
    rows = size_rows(candidates, results, placed, (0, "plain"))
    assert rows == [
        SizeRow(1.0, 0, 1000, 20, 100, 0.99, 0.99, "winner"),
        SizeRow(0.1, 2, 90, 10, 100, 1 - wrong / 100, 0.96, verdict),
    ]
    ((row, line),) = smaller_finalists(rows)
    assert row == rows[1]
    assert line.startswith("90 parameters, 9.0% of the winner's: accuracy")
    assert "on 100 held-out pixels after 10 steps" in line
    assert smaller_finalists(rows[1:]) == []
    # One that is ahead is as good, too.
    assert smallest_as_good(rows) == ("" if verdict == "below" else line)
    assert "on 100 held-out images" in smaller_finalists(rows, "images")[0][1]


def test_the_smallest_that_is_not_below_the_winner_is_named() -> None:
    sizes = {1000: "as good", 600: "winner", 500: "as good", 60: "above", 50: "below"}
    rows = [
        SizeRow(share, number, params, 20, 100, 0.9, 0.9, sizes[params])
        for number, (share, params) in enumerate(zip((1, 1, 1, 0.1, 0.05), sizes, strict=True))
    ]
    assert smallest_as_good(rows).startswith("60 parameters, 10.0% of the winner's")
    assert smallest_as_good(rows[:3]).startswith("500 parameters, 83.3%")
    assert smallest_as_good(rows[:2]) == smallest_as_good(rows[4:]) == smallest_as_good([]) == ""


def test_a_racer_is_compared_in_the_longest_rung_that_the_winner_ran_too() -> None:
    """The time of a race may end while smaller racers are in its last rung."""

    def result(number: int, steps: int, right: np.ndarray) -> RungResult:
        return RungResult((number, "plain"), steps, 1, figures(0.5), 0.0, "", right)

    candidates = [of_size(0, 1000), of_size(1, 90), of_size(2, 400)]
    results = {
        (0, "plain"): [result(0, 10, flags(4)), result(0, 20, flags(1))],
        (1, "plain"): [result(1, 10, flags(5)), result(1, 20, flags(1)), result(1, 40, flags(9))],
        (2, "plain"): [result(2, 5, flags(5))],
    }
    rows = size_rows(candidates, results, dict.fromkeys(results, 0.5), (0, "plain"))
    assert [(row.finalist, row.steps, row.verdict) for row in rows] == [
        (0, 20, "winner"),
        (1, 20, "as good"),
    ]


def test_a_racer_of_fewer_folds_is_compared_on_them() -> None:
    """It trained as long as those of the last rung, on the first of their folds."""

    def result(number: int, folds: int, right: np.ndarray) -> RungResult:
        return RungResult((number, "plain"), 20, folds, figures(0.5), 0.0, "", right)

    candidates = [of_size(0, 1000), of_size(1, 90), of_size(2, 80)]
    results = {
        (0, "plain"): [result(0, 5, flags(10, pixels=500))],
        (1, "plain"): [result(1, 5, flags(20, pixels=500))],
        (2, "plain"): [result(2, 1, flags(12))],
    }
    # Its score is of other pixels: it is not ahead of a racer of the last rung.
    scores = dict(zip(results, (0.9, 0.8, 0.99), strict=True))
    (winner, smaller) = size_rows(candidates, results, scores, (0, "plain"))
    assert (winner.finalist, winner.pixels, smaller.finalist, smaller.pixels) == (0, 500, 1, 500)
    del results[1, "plain"], scores[1, "plain"]
    (_, smaller) = size_rows(candidates, results, scores, (0, "plain"))
    assert (smaller.finalist, smaller.pixels) == (2, 100)
    assert (smaller.accuracy, smaller.winner_accuracy) == (0.88, 0.9)
