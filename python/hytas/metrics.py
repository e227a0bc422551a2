"""Accuracy and calibration figures from true and predicted classes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hytas.errors import InputError

CALIBRATION_BINS = 15
LEAST_PROBABILITY = 1e-12
"""A mean of probabilities is at least as large, so that its logarithm is finite."""
FIGURES = ("OA", "AA", "kappa", "ECE")  # `summarise` averages these, and each class


ERRORS = 2.0
"""Standard errors of a mean difference that chance may give."""


def accuracy_report(
    truth: ArrayLike,
    predicted: ArrayLike,
    class_names: tuple[str, ...],
    probabilities: ArrayLike | None = None,
) -> dict[str, Any]:
    """Return overall accuracy (OA), average accuracy (AA), kappa, class accuracies, confusion.

    Args:
        truth: (N,) true class indices, 0-based.
        predicted: (N,) predicted class indices, 0-based.
        probabilities: (N, C) of all classes, or (N,) of the predicted one. With them the report has
            "ECE" and "calibration", the result of `calibration`.

    Returns:
        A JSON-ready mapping. AA is the mean recall over the classes that occur in `truth`; a class
        that does not occur has the accuracy None. `confusion[i][j]` counts true i predicted as j.
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
    # With a single class in both truth and prediction, chance agreement is 1 and kappa is 0 / 0.
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
        bins = calibration(truth, predicted, probabilities)
        report |= {"ECE": bins.pop("ECE"), "calibration": bins}
    return report


def calibration(
    truth: ArrayLike, predicted: ArrayLike, probabilities: ArrayLike, bins: int = CALIBRATION_BINS
) -> dict[str, Any]:
    """Return the expected calibration error (ECE): the gap between confidence and accuracy.

    The confidence of a pixel is the probability of its predicted class. Pixels are divided into
    bins of equal width, ((m - 1) / M, m / M]. The ECE is the sum over bins of
    |accuracy - mean confidence|, weighted by the share of pixels in the bin.
    Source: Guo et al., On Calibration of Modern Neural Networks, ICML 2017, Eq. 3, M = 15.

    Args:
        truth, predicted: (N,) class indices, 0-based.
        probabilities: (N, C), or (N,) of the predicted class.
        bins: M.

    Returns:
        "ECE", and for each bin "count", "confidence" and "accuracy" (None if it is empty).
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


def compare_predictions(before: NDArray[Any], after: NDArray[Any]) -> tuple[float, float, bool]:
    """Compare the merits of two sets of predictions of the same pixels (McNemar, if flags).

    Source: McNemar, Note on the sampling error of the difference between correlated proportions,
    Psychometrika 12, 1947.

    Args:
        before, after: (n,) merit of each prediction, such as whether it is correct.

    Returns:
        What `after` gains, such as the pixels that it alone has right, what it loses, and whether
        their difference is larger than its standard deviation by chance, the square root of the
        sum of the squared differences.
    """
    lead = np.subtract(after, before, dtype=np.float64)
    gained, lost = float(lead[lead > 0].sum()), float(-lead[lead < 0].sum())
    return gained, lost, gained - lost > math.sqrt((lead**2).sum())


def _confidence(predicted: NDArray[Any], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    if probabilities.shape[:1] != predicted.shape or probabilities.ndim > 2:
        raise InputError(
            "probabilities",
            rule=f"of shape {probabilities.shape}: must have one row for each of "
            f"{predicted.size} pixels",
        )
    # Probabilities in float32 may sum to a little more than 1.
    if not np.all((probabilities >= -1e-4) & (probabilities <= 1 + 1e-4)):
        raise InputError("probabilities", rule="must all lie in 0..1")
    if probabilities.ndim == 2:
        probabilities = probabilities[np.arange(len(predicted)), predicted]
    return probabilities


def _means(sums: NDArray[Any], count: NDArray[Any]) -> list[float | None]:
    pairs = zip(sums.tolist(), count.tolist(), strict=True)
    return [total / number if number else None for total, number in pairs]


def mean_of_known(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def mean_and_deviation(values: Sequence[float | None]) -> dict[str, Any]:
    """Return mean and sample standard deviation (n - 1) of the values that are not None.

    Returns:
        "mean", "std" and "values". The mean of no values, and the deviation of less than two, is
        None.
    """
    numbers = [value for value in values if value is not None]
    return {
        "mean": mean_of_known(numbers),
        "std": float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None,
        "values": list(values),
    }


def summarise(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean and standard deviation over several accuracy reports, one for each seed.

    Returns:
        The result of `mean_and_deviation` for each of `FIGURES` in the reports, and under
        "per_class" for each class. A report without pixels of a class does not count for it.
    """
    if not reports:
        raise InputError("reports", rule="there are none", hint="at least one is needed")
    names = list(reports[0]["per_class"])
    if any(list(report["per_class"]) != names for report in reports):
        raise InputError("reports", rule="must all have the same classes, in the same order")
    figures = [name for name in FIGURES if any(name in report for report in reports)]
    return {
        **{name: mean_and_deviation([report.get(name) for report in reports]) for name in figures},
        "per_class": {
            name: mean_and_deviation([report["per_class"][name] for report in reports])
            for name in names
        },
    }


def log_mean(logits: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the logits (N, C) of the mean of some networks' probabilities.

    Args:
        logits: (N, C) of each network.
    """
    from scipy.special import softmax

    mean = np.mean([softmax(values, axis=1) for values in logits], axis=0, dtype=np.float32)
    return np.log(np.maximum(mean, np.float32(LEAST_PROBABILITY)))


RESAMPLES = 500
"""Bootstrap resamples of an interval."""


def value_report(
    truth: ArrayLike,
    predicted: ArrayLike,
    names: Sequence[str],
    units: Sequence[str] = (),
    groups: ArrayLike | None = None,
) -> dict[str, Any]:
    """Return the figures of predicted values, each with a 95 % interval by bootstrap over groups.

    R2, RMSE and bias (mean of predicted minus observed); RPD and RPIQ, the deviation and the
    interquartile range of the observed over the RMSE (Bellon-Maurel et al., Trends in Analytical
    Chemistry 29, 2010); CCC, the concordance of Lin (Biometrics 45, 1989).

    Args:
        truth, predicted: (N, T), in units; NaN in `truth` where a target is missing.
        names, units: of the targets.
        groups: (N,) of each sample; None resamples samples.

    Returns:
        A JSON-ready mapping: "R2", the mean over targets, "pixels", and "per_target": name ->
        figures, "unit", "samples" and "intervals".
    """
    true, given = np.asarray(truth, np.float64), np.asarray(predicted, np.float64)
    units = tuple(units) or ("",) * len(names)
    every = np.arange(len(true)) if groups is None else np.unique(groups, return_inverse=True)[1]
    targets = {}
    for at, (name, unit) in enumerate(zip(names, units, strict=True)):
        known = np.isfinite(true[:, at])
        pair, own = (true[known, at], given[known, at]), every[known]
        figures = value_figures(*pair)
        intervals = _intervals(*pair, own) if len(own) > 2 else {}
        targets[name] = {**figures, "unit": unit, "samples": len(own), "intervals": intervals}
    mean = mean_of_known([one["R2"] for one in targets.values()])
    return {"R2": mean, "per_target": targets, "pixels": len(true)}


def value_figures(true: NDArray[np.float64], given: NDArray[np.float64]) -> dict[str, Any]:
    """Return R2, RMSE, bias, RPD, RPIQ and CCC of values (n,); None where one is not defined."""
    names = ("R2", "RMSE", "bias", "RPD", "RPIQ", "CCC")
    if not len(true):
        return dict.fromkeys(names)
    error = given - true
    rmse, spread = float(np.sqrt((error**2).mean())), float(true.std())
    quartiles = float(np.subtract(*np.quantile(true, (0.75, 0.25))))
    moved = true.var() + given.var() + error.mean() ** 2
    shared = float(((true - true.mean()) * (given - given.mean())).mean())
    ratios = (true.std(ddof=1) if len(true) > 1 else 0.0, quartiles)
    return {
        "R2": 1 - rmse**2 / spread**2 if spread else None,
        "RMSE": rmse,
        "bias": float(error.mean()),
        "RPD": float(ratios[0]) / rmse if rmse else None,
        "RPIQ": ratios[1] / rmse if rmse else None,
        "CCC": float(2 * shared / moved) if moved else None,
    }


def _intervals(
    true: NDArray[np.float64], given: NDArray[np.float64], groups: NDArray[np.int64]
) -> dict[str, list[float]]:
    """Return the 95 % interval of each figure by bootstrap over groups."""
    members = [np.flatnonzero(groups == number) for number in np.unique(groups)]
    generator, drawn = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        chosen = generator.integers(0, len(members), len(members))
        at = np.concatenate([members[number] for number in chosen])
        drawn.append(value_figures(true[at], given[at]))
    columns = {name: [one[name] for one in drawn if one[name] is not None] for name in drawn[0]}
    return {
        name: [float(end) for end in np.quantile(values, (0.025, 0.975))]
        for name, values in columns.items()
        if values
    }


def within_chance(lost: Sequence[NDArray[np.float64]], errors: float = ERRORS) -> list[bool]:
    """Return which losses (n,) of the same held-out samples are within chance of the least mean.

    Args:
        errors: standard errors of the mean difference that chance may give.
    """
    least = min(lost, key=lambda each: float(each.mean()))
    leads = [each - least for each in lost]
    return [bool(lead.mean() <= errors * lead.std() / len(lead) ** 0.5) for lead in leads]
