"""Which pixels count as classified otherwise."""

import numpy as np

from hytas.export.parity import TIE, changed_labels


def test_only_what_floating_point_can_decide_counts() -> None:
    expected = np.array([[0.6, 0.4], [0.5 + TIE / 4, 0.5 - TIE / 4], [0.5 + TIE, 0.5 - TIE]])
    answer = expected[:, ::-1]
    assert changed_labels(answer, expected) == 2
    assert changed_labels(expected, expected) == 0
