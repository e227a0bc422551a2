"""Which pixels count as classified otherwise."""

import numpy as np

from hytas.tasks import Classes
from hytas.tasks.classes import TIE


def test_only_what_floating_point_can_decide_counts() -> None:
    expected = np.array([[0.6, 0.4], [0.5 + TIE / 4, 0.5 - TIE / 4], [0.5 + TIE, 0.5 - TIE]])
    answer = expected[:, ::-1]
    assert Classes(2).changed(answer, expected) == 2
    assert Classes(2).changed(expected, expected) == 0
