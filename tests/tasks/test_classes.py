"""Classes: what a file of reduced precision may lose."""

import numpy as np

from hytas.tasks import Classes


def test_an_output_that_is_not_finite_is_wrong() -> None:
    """As on a pixel where float16 overflows, whatever class comes first."""
    task, expected = Classes(2), np.array([[0.9, 0.1]] * 4)
    given = expected.copy()
    given[1] = np.nan
    predicted = task.chosen(given)
    assert predicted.tolist() == [0, -1, 0, 0]
    figures, rule = task.judged(predicted, task.chosen(expected), np.zeros(4, np.int64))
    assert (figures["agreement"], figures["OA"]) == (0.75, 0.75)
    assert "75.00 % of 4 labels agree" in rule
