"""The field's accuracy figures, from true and predicted classes, and how far to believe them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hytas.errors import InputError

CALIBRATION_BINS = 15
FIGURES = ("OA", "AA", "kappa", "ECE")  # those that `summarise` averages, beside each class


def accuracy_report(
    truth: ArrayLike,
    predicted: ArrayLike,
    class_names: tuple[str, ...],
    probabilities: ArrayLike | None = None,
) -> dict[str, Any]:
    """Overall accuracy (OA), average accuracy (AA), Cohen's kappa, accuracy a class, confusion.

    Args:
        truth: (N,) true class indices, 0-based.
        predicted: (N,) predicted class indices, 0-based.
        class_names: (C,) names in index order.
        probabilities: (N, C) of the classes, or (N,) of the predicted one; with them the report has
            "ECE" and "calibration", as `calibration` gives it.

    Returns:
        A JSON-ready mapping. AA is the mean recall over the classes that occur in `truth`; a class
        that does not occur has the accuracy None. `confusion[i][j]` counts true i predicted as j.

    Raises:
        InputError: the probabilities are not one row a pixel, or not in 0..1.
    """
    from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix

    labels = np.arange(len(class_names))
    confusion = confusion_matrix(truth, predicted, labels=labels)
    support = confusion.sum(axis=1)
    recall = [
        float(hits / total) if total else None
        for hits, total in zip(confusion.diagonal(), support, strict=True)
    ]
    present = [value for value in recall if value is not None]
    # With one class in truth and prediction alike, chance agreement is 1 and kappa is 0 / 0.
    trivial = np.count_nonzero(support) == 1 and bool(
        np.all(np.asarray(truth) == np.asarray(predicted))
    )
    report = {
        "OA": float(accuracy_score(truth, predicted)),
        "AA": float(np.mean(present)),
        "kappa": 1.0 if trivial else float(cohen_kappa_score(truth, predicted, labels=labels)),
        "per_class": dict(zip(class_names, recall, strict=True)),
        "support": dict(zip(class_names, support.tolist(), strict=True)),
        "confusion": confusion.tolist(),
        "pixels": int(support.sum()),
    }
    if probabilities is not None:
        found = calibration(truth, predicted, probabilities)
        report |= {"ECE": found.pop("ECE"), "calibration": found}
    return report


def calibration(
    truth: ArrayLike,
    predicted: ArrayLike,
    probabilities: ArrayLike,
    bins: int = CALIBRATION_BINS,
) -> dict[str, Any]:
    """Expected calibration error (ECE): how far confidence is from accuracy.

    The confidence of a pixel is the probability given to its predicted class. Pixels are parted
    into bins of equal width, ((m - 1) / M, m / M]; the ECE is the sum over bins of
    |accuracy - mean confidence|, weighed by the bins' shares of pixels.
    Source: Guo et al., On Calibration of Modern Neural Networks, ICML 2017, Eq. 3, M = 15.

    Args:
        truth, predicted: (N,) class indices, 0-based.
        probabilities: (N, C), or (N,) of the predicted class.
        bins: M.

    Returns:
        "ECE", and for each bin "count", "confidence" and "accuracy" (None where it is empty).

    Raises:
        InputError: the probabilities are not one row a pixel, or not in 0..1.
    """
    true, chosen = np.asarray(truth), np.asarray(predicted)
    confidence = _confidence(chosen, np.asarray(probabilities, dtype=np.float64))
    index = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    count = np.bincount(index, minlength=bins)
    sure = np.bincount(index, weights=confidence, minlength=bins)
    right = np.bincount(index, weights=true == chosen, minlength=bins)
    return {
        "ECE": float(np.abs(right - sure).sum() / max(1, len(true))),
        "count": count.tolist(),
        "confidence": _means(sure, count),
        "accuracy": _means(right, count),
    }


def _confidence(predicted: NDArray[Any], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    if probabilities.shape[:1] != predicted.shape or probabilities.ndim > 2:
        raise InputError(
            f"probabilities of shape {probabilities.shape}: must have one row for each of "
            f"{predicted.size} pixels"
        )
    # Probabilities in float32 may sum to a little more than 1.
    if not np.all((probabilities >= -1e-4) & (probabilities <= 1 + 1e-4)):
        raise InputError("probabilities: must all lie in 0..1")
    if probabilities.ndim == 2:
        probabilities = probabilities[np.arange(len(predicted)), predicted]
    return probabilities


def _means(sums: NDArray[Any], count: NDArray[Any]) -> list[float | None]:
    pairs = zip(sums.tolist(), count.tolist(), strict=True)
    return [total / number if number else None for total, number in pairs]


def mean_of_known(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are not None; None where none is known."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def mean_and_deviation(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean and sample standard deviation (n - 1) of the values that are known.

    Returns:
        "mean", "std" and "values"; None where no value, or for "std" a single one, is known.
    """
    known = [value for value in values if value is not None]
    return {
        "mean": mean_of_known(known),
        "std": float(np.std(known, ddof=1)) if len(known) > 1 else None,
        "values": list(values),
    }


def summarise(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over several accuracy reports, one a seed.

    Returns:
        For each of `FIGURES` that a report has, and under "per_class" for each class, what
        `mean_and_deviation` gives; a class that no pixel of a report is of does not count in it.

    Raises:
        InputError: there is no report, or the reports are of different classes.
    """
    if not reports:
        raise InputError("reports: none given; at least one is needed")
    names = list(reports[0]["per_class"])
    if any(list(report["per_class"]) != names for report in reports):
        raise InputError("reports: must all be of the same classes, in one order")
    figures = [name for name in FIGURES if any(name in report for report in reports)]
    return {
        **{name: mean_and_deviation([report.get(name) for report in reports]) for name in figures},
        "per_class": {
            name: mean_and_deviation([report["per_class"][name] for report in reports])
            for name in names
        },
    }
