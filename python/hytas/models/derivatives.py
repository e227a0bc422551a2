"""Derivatives along bands, which are linear: a network in closed form takes one into its matrix."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from hytas.metrics import within_chance
from hytas.types import Floats

WINDOW, DEGREE = 11, 2
"""Bands and degree of the polynomials of Savitzky and Golay (Analytical Chemistry 36, 1964)."""
ORDERS = (0, 1, 2)
"""Derivatives that are compared; 0 leaves spectra as they are."""
LEAST_LEFT = 1e-9
"""Deviation of standardised spectra below which nothing is left of them."""
CLASS_FOLDS = 3
"""Of the cross-validation of a network in closed form."""
MOST_TO_CHOOSE_ON = 300
"""Pixels on which folds choose a derivative or a width, at most; the fit itself takes all."""

FoldPlaces = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]
Losses = Callable[[Floats, NDArray[np.int64], FoldPlaces], Floats]
"""Spectra (n, bands), class indices (n,) and pairs of fitted and held-out places -> losses (n,)."""


@lru_cache(maxsize=8)
def derivative(bands: int, order: int) -> Floats | None:
    """Return the matrix (bands, bands) of a derivative; None where bands are too few.

    The first and the last band are repeated beyond the ends.
    """
    from scipy.signal import savgol_coeffs

    if order == 0:
        return np.eye(bands)
    window = min(WINDOW, bands // 2 - 1 + bands // 2 % 2)
    if window <= DEGREE:
        return None
    weights = savgol_coeffs(window, DEGREE, deriv=order, use="dot")
    matrix, half = np.zeros((bands, bands)), window // 2
    for step, weight in enumerate(weights, start=-half):
        at = np.clip(np.arange(bands) + step, 0, bands - 1)
        np.add.at(matrix, (np.arange(bands), at), weight)
    return matrix


def derivatives_within_chance(
    spectra: Floats, targets: NDArray[np.int64], losses: Losses
) -> list[tuple[Floats, Floats]]:
    """Return the derivatives whose loss of held-out pixels is within chance of the least.

    Args:
        spectra: (N, bands), standardised.
        targets: (N,) class indices.
        losses: of a network in closed form.

    Returns:
        For each the spectra (N, bands) of which the derivative was taken, standardised; and the
        matrix (bands, bands) that gives them, but for a constant.
    """
    drawn, index, splits = class_splits(targets, some_places(len(targets)))
    taken, lost = [], []
    for order in ORDERS if splits else ORDERS[:1]:
        matrix = derivative(spectra.shape[1], order)
        if matrix is None:
            continue
        if order:
            deviation = (spectra @ matrix.T).std(axis=0)
            if deviation.max() < LEAST_LEFT:
                continue
            matrix = matrix / np.where(deviation > 0, deviation, 1.0)[:, None]
        values = spectra @ matrix.T if order else spectra
        taken.append((values, matrix))
        lost.append(losses(values[drawn], index, splits) if splits else np.zeros(1))
    return list(compress(taken, within_chance(lost)))


def some_places(count: int) -> NDArray[np.int64]:
    """Return at most `MOST_TO_CHOOSE_ON` of the places of pixels."""
    return np.sort(np.random.default_rng(0).permutation(count)[:MOST_TO_CHOOSE_ON])


def class_splits(
    targets: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], FoldPlaces]:
    """Split pixels into folds that hold each class.

    Args:
        targets: (N,) class indices.
        places: (n,) of the pixels to split.

    Returns:
        The places (m,) whose class has two of them or more, the indices (m,) of these classes,
        and the folds; none where there is one class.
    """
    from sklearn.model_selection import StratifiedKFold

    labels, counts = np.unique(targets[places], return_counts=True)
    places = places[np.isin(targets[places], labels[counts > 1])]
    present, index = np.unique(targets[places], return_inverse=True)
    if len(present) < 2:
        return places, index, []
    folds = min(CLASS_FOLDS, int(np.bincount(index).min()))
    return places, index, list(StratifiedKFold(folds).split(index, index))
