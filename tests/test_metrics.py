"""Figures of accuracy and calibration, against values worked out by hand."""

import json

import numpy as np
import pytest

from hytas.metrics import accuracy_report, calibration, mean_and_deviation, summarise

NAMES = ("corn", "woods", "wheat")


def test_report_by_hand() -> None:
    report = accuracy_report([0, 0, 0, 1], [0, 0, 1, 1], NAMES)
    assert report["OA"] == 0.75
    assert report["AA"] == pytest.approx((2 / 3 + 1) / 2)
    # Chance agreement (3 * 2 + 1 * 2) / 16 = .5, so kappa = (.75 - .5) / (1 - .5).
    assert report["kappa"] == pytest.approx(0.5)
    assert report["per_class"] == {"corn": pytest.approx(2 / 3), "woods": 1.0, "wheat": None}
    assert report["confusion"] == [[2, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert report["support"] == {"corn": 3, "woods": 1, "wheat": 0}
    assert "ECE" not in report


@pytest.mark.parametrize("predicted", [[1, 1, 1], [0, 2, 1], [0, 0, 0]])
def test_a_test_of_a_single_class(predicted: list[int]) -> None:
    report = accuracy_report([1, 1, 1], predicted, NAMES, [0.5, 0.6, 0.7])
    accuracy = predicted.count(1) / 3
    assert report["AA"] == report["OA"] == pytest.approx(accuracy)
    assert report["kappa"] == (1.0 if accuracy == 1 else 0.0)
    assert report["per_class"] == {"corn": None, "woods": pytest.approx(accuracy), "wheat": None}
    json.dumps(report, allow_nan=False)
    json.dumps(summarise([report, report]), allow_nan=False)


def test_calibration_by_hand() -> None:
    # Two pixels of confidence .9 in one bin, one of them right; one of .2, wrong.
    found = calibration([0, 1, 2], [0, 0, 1], [0.9, 0.9, 0.2])
    assert found["ECE"] == pytest.approx((abs(1 - 1.8) + abs(0 - 0.2)) / 3)
    assert sum(found["count"]) == 3
    assert found["count"][13] == 2  # (13/15, 14/15]
    assert found["accuracy"][13] == 0.5
    assert found["confidence"][13] == pytest.approx(0.9)
    assert found["accuracy"][0] is None


def test_calibration_against_a_plain_loop() -> None:
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet(np.ones(4) / 2, 500)
    predicted = probabilities.argmax(1)
    truth = np.where(generator.random(500) < 0.6, predicted, generator.integers(0, 4, 500))
    confidence = probabilities.max(1)
    expected = 0.0
    for m in range(1, 16):
        inside = (confidence > (m - 1) / 15) & (confidence <= m / 15)
        if inside.any():
            gap = abs((truth == predicted)[inside].mean() - confidence[inside].mean())
            expected += inside.mean() * gap
    report = accuracy_report(truth, predicted, ("a", "b", "c", "d"), probabilities)
    assert report["ECE"] == pytest.approx(expected)
    assert report["ECE"] == pytest.approx(calibration(truth, predicted, confidence)["ECE"])
    assert len(report["calibration"]["count"]) == 15
    json.dumps(report, allow_nan=False)


def test_sure_and_right_is_calibrated() -> None:
    assert calibration([0, 1], [0, 1], np.eye(2))["ECE"] == 0.0
    assert calibration([1, 0], [0, 1], np.eye(2))["ECE"] == 1.0
    assert calibration([0], [0], [0.0])["count"][0] == 1  # the lower edge belongs to the first bin


def test_mean_and_deviation_over_seeds() -> None:
    reports = [
        accuracy_report([0, 0, 1, 1], predicted, NAMES)
        for predicted in ([0, 0, 1, 1], [0, 1, 1, 1])
    ]
    summary = summarise(reports)
    assert summary["OA"]["mean"] == pytest.approx(0.875)
    assert summary["OA"]["std"] == pytest.approx(0.125 * 2**0.5)  # n - 1
    assert summary["OA"]["values"] == [1.0, 0.75]
    assert summary["per_class"]["corn"]["mean"] == 0.75
    assert summary["per_class"]["wheat"] == {"mean": None, "std": None, "values": [None, None]}
    assert "ECE" not in summary
    assert mean_and_deviation([0.5])["std"] is None
