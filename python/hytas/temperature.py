"""Temperature scaling: one number that calibrates the confidence of a network."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hytas.errors import InputError

LIMITS = (0.01, 100.0)
"""Smallest and largest temperature. A smaller one would magnify rounding errors of the logits."""
HALVINGS = 60
DIGITS = 4  # digits of a stored temperature


def fit_temperature(logits: ArrayLike, targets: ArrayLike) -> float:
    """Return the temperature that minimises the negative log likelihood of labelled pixels.

    The network must not have been trained on these pixels. If it classifies all n of them without
    an error, the likelihood alone would ask for complete certainty, which n pixels cannot prove.
    So the target of the true class is (n + 1/2) / (n + 1), and the other classes share the rest.
    This is the estimate with the prior of Jeffreys; Platt's scaling uses that of Laplace.

    Sources: Guo et al., On Calibration of Modern Neural Networks, ICML 2017, section 4.2; Platt,
    Probabilistic outputs for support vector machines, 1999.

    Args:
        logits: (n, C) of a network.
        targets: (n,) class indices.

    Returns:
        A number within `LIMITS`; 1 if the logits do not separate the classes.
    """
    values, classes = np.asarray(logits, np.float64), np.asarray(targets)
    if values.ndim != 2 or not len(values) or values.shape[:1] != classes.shape:
        raise InputError(
            "logits",
            rule=f"of shape {values.shape}: must be one row for each of {classes.size} targets",
        )
    if not np.isfinite(values).all():
        raise InputError("logits", rule="must all be finite numbers")
    values = values - values.max(axis=1, keepdims=True)
    if not values.any():
        return 1.0
    wanted = float((values * _shares(classes, *values.shape)).sum())
    # The loss is convex in the inverse temperature, so its slope has one root at most.
    low, high = (-math.log(limit) for limit in reversed(LIMITS))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _expected(values, math.exp(middle)) > wanted:
            high = middle
        else:
            low = middle
    return float(f"{math.exp(-(low + high) / 2):.{DIGITS}g}")


def meet_accuracy(logits: ArrayLike, accuracy: float) -> float:
    """Return the temperature at which the mean confidence of pixels is an accuracy.

    The confidence of a pixel is the probability of its predicted class. No label is needed. n
    pixels prove no accuracy above (n + 1/2) / (n + 1), as in `fit_temperature`.

    Args:
        logits: (n, C), of one network or several.
        accuracy: that is expected of the predictions, in 0..1.

    Returns:
        A number within `LIMITS`: the nearest of these if none of them gives the accuracy.
    """
    values = np.asarray(logits, np.float64)
    values = values - values.max(axis=1, keepdims=True)
    wanted = min(accuracy, (len(values) + 0.5) / (len(values) + 1))
    low, high = map(math.log, LIMITS)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        confidence = 1 / np.exp(values / math.exp(middle)).sum(axis=1)  # the largest logit is 0
        if confidence.mean() > wanted:
            low = middle
        else:
            high = middle
    return float(f"{math.exp((low + high) / 2):.{DIGITS}g}")


def is_chance(temperature: float) -> bool:
    """Return whether the likelihood asked for no confidence at all: the answers are like chance."""
    return temperature >= LIMITS[1]


def _shares(classes: NDArray[np.int64], count: int, total: int) -> NDArray[np.float64]:
    """Return the smoothed targets (n, C)."""
    doubt = 0.5 / (count + 1)
    shares = np.full((count, total), doubt / max(1, total - 1))
    shares[np.arange(count), classes] = 1 - doubt
    return shares


def _expected(values: NDArray[np.float64], inverse: float) -> float:
    """Return the sum of the logits, each weighted with the probability of its class.

    The loss has the slope of this sum minus the sum with the targets, in the inverse temperature.
    """
    chances = np.exp(inverse * values)
    chances /= chances.sum(axis=1, keepdims=True)
    return float((chances * values).sum())
