"""Class shares of unlabelled samples, by the probabilities of a network that was trained on others.

Training sets often have the same number of samples for every class, and the ground does not. Where
samples of a class look alike in both, only the class prior differs, and probabilities p(y | x)
under one prior become those under another by factors for each class (label shift).

Source: Saerens, Latinne and Decaestecker, Adjusting the Outputs of a Classifier to New a Priori
Probabilities, Neural Computation 14, 2002.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hytas.errors import InputError

MOST_ROUNDS = 500
CHANGE = 1e-7
"""Largest change of a share in a round that ends the estimate."""


def label_shares(counts: ArrayLike) -> NDArray[np.float64]:
    """Return the class shares (C,) of labelled samples; a class without one counts as half of one.

    Args:
        counts: (C,) labelled samples of each class.
    """
    kept = _kept(counts)
    return np.asarray(kept / kept.sum())


def estimate_prior(
    probabilities: ArrayLike,
    trained: ArrayLike,
    labelled: ArrayLike | None = None,
    each: float = 1.0,
) -> NDArray[np.float64]:
    """Estimate class shares of samples by EM (Saerens et al., Eq. 2.9).

    Args:
        probabilities: (n, C) of unlabelled samples.
        trained: (C,) class shares of the samples that the network was trained on.
        labelled: (C,) labelled samples of each class, which count, too, as in `label_shares`. They
            keep their class in every round, so no class vanishes. None means there are none.
        each: how many samples an unlabelled one stands for, if a part of them was drawn.

    Returns:
        (C,) shares with a sum of 1.
    """
    values, shares = np.asarray(probabilities, np.float64), np.asarray(trained, np.float64)
    if values.ndim != 2 or values.shape[1:] != shares.shape or not len(values):
        rule = f"of shape {values.shape}: must be rows of {shares.size} columns"
        raise InputError("probabilities", rule=rule)
    own = np.zeros(len(shares)) if labelled is None else _kept(labelled)
    prior, total = shares, each * len(values) + own.sum()
    for _ in range(MOST_ROUNDS):
        chances = values * (prior / shares)
        chances /= np.maximum(chances.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        before, prior = prior, (each * chances.sum(axis=0) + own) / total
        if np.abs(prior - before).max() < CHANGE:
            break
    return prior


def _kept(counts: ArrayLike) -> NDArray[np.float64]:
    return np.maximum(np.asarray(counts, np.float64), 0.5)


def distance(one: ArrayLike, other: ArrayLike) -> float:
    """Return the total variation distance of class shares (C,): 0 if they agree, at most 1."""
    return float(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)).sum() / 2)
