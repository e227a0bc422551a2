"""The view of a run's results: what its readers show, and what is no result."""

from dataclasses import replace
from typing import Any

from hytas.results import Calibration, RunResults

REPORT = {"OA": 0.9, "AA": 0.8, "kappa": 0.7, "ECE": 0.1, "pixels": 40}


def metrics(**changed: Any) -> dict[str, Any]:
    return {
        "unit": "pixels",
        "test": REPORT,
        "training": {"history": []},
        "calibration": {"temperature": 0.5, "pixels": 60, "ECE_before": 0.2, "ECE_after": 0.1},
        "smoothing": {"method": "guided", "pixels": 60, "OA_raw": 0.5, "OA_smoothed": 0.75},
        "self_training": {"used": False, "reason": "images have no neighbours"},
        **changed,
    }


def test_every_decision_is_one_line() -> None:
    smoothing, calibration = RunResults.of(metrics()).decisions()
    assert (
        smoothing == "maps are smoothed: OA on 60 validation pixels 0.5000 raw and 0.7500 smoothed"
    )
    assert calibration == (
        "confidence calibrated on 60 validation pixels: temperature 0.5, ECE there 0.200 before "
        "and 0.100 after"
    )


def test_a_calibration_says_why_its_error_on_held_out_pixels_grew() -> None:
    on_others = Calibration(1.4, 60, 2, 0.141, 0.175, unlabelled=500, agreement=0.8)
    assert on_others.describe().endswith(
        "0.141 before and 0.175 after; larger there, as confidence is fitted to unlabelled pixels"
    )
    assert replace(on_others, ECE_after=0.1).describe().endswith("0.141 before and 0.100 after")
    assert not replace(on_others, unlabelled=0).why_larger


def test_the_winner_leads_the_comparison() -> None:
    method = {"title": "SVM", "test": REPORT, "pixels": 30, "of_pixels": 60}
    validation = {
        "pixels": 60,
        "OA": {"winner": 0.5, "svm": 0.75},
        "smoothed": {"winner": 0.625},
        "below": ["svm"],
        "verdict": "v",
    }
    found = {"reason": "", "validation": validation, "methods": {"svm": method}}
    comparison = RunResults.of(metrics(references=found)).comparison
    assert comparison is not None
    assert [(row.name, row.held_out) for row in comparison.rows] == [("winner", 0.5), ("svm", 0.75)]
    assert [row.held_out_smoothed for row in comparison.rows] == [0.625, None]  # in the report
    assert comparison.below == ["SVM"]
    refused = {"reason": "of one class only", "validation": None, "methods": {}}
    comparison = RunResults.of(metrics(references=refused)).comparison
    assert comparison is not None
    assert (comparison.reason, comparison.rows) == ("of one class only", ())
