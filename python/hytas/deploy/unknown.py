"""Find ground that is of no class of a model, by the distance of its log-probabilities.

The score is the Mahalanobis distance to the nearest class (Lee et al., NeurIPS 2018), in the last
layer: the logits up to a constant, which the probabilities keep. So it needs no other output of a
model, and networks of several folds share one space. The program on board and the C source compute
the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hytas.errors import InputError
from hytas.types import Array, Mask

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""Shares of held-out pixels that a model knows the threshold of; it is linear between them."""
MOST_CLASSES = 64
"""Twice the square of this number of values is stored in the metadata."""
LEAST_NEAREST = 1e-30
SHRINKAGE = 0.1
"""Of the covariance towards a multiple of the identity: few pixels do not tell it."""

IsUnknown = Callable[[Array], Mask]


@dataclass(frozen=True, eq=False)
class UnknownGround:
    """The score of a model for ground of no class of its own.

    Attributes:
        transform: (C, C) float32, whitens log-probabilities less their mean.
        centres: (C, C) float32, the whitened mean of each class.
        thresholds: of `SHARES`, float32: this share of held-out pixels has a higher score.
    """

    transform: npt.NDArray[np.float32]
    centres: npt.NDArray[np.float32]
    thresholds: npt.NDArray[np.float32]

    @classmethod
    def fit(cls, probabilities: Array, targets: npt.NDArray[np.int64]) -> Self:
        """Fit the score on held-out pixels.

        A class is the mean of its pixels and of one that stands for all classes, so a class without
        held-out pixels has a centre, too. The thresholds are those of pixels that are left out of
        the mean of their class.

        Args:
            probabilities: (n, C) of a network that was not trained on these pixels.
            targets: (n,) their class indices.
        """
        values = _centred(probabilities)
        classes, chosen = values.shape[1], np.arange(len(values))
        own = values[chosen, targets].mean()
        usual = np.full((classes, classes), -own / max(classes - 1, 1))
        np.fill_diagonal(usual, own)
        counts = np.bincount(targets, minlength=classes) + 1.0
        np.add.at(usual, targets, values)
        centres = usual / counts[:, None]
        residuals = values - centres[targets]
        covariance = residuals.T @ residuals / len(values)
        variances, vectors = np.linalg.eigh(covariance)
        variances = variances + SHRINKAGE * max(variances.mean(), 1e-12)
        transform = (vectors / np.sqrt(variances)).T.astype(np.float32)
        kept = cls(transform, (centres @ transform.T).astype(np.float32), np.zeros(0, np.float32))
        distances = kept._distances(values)
        distances[chosen, targets] *= (counts[targets] / (counts[targets] - 1.0)) ** 2
        scores = np.quantile(distances.min(axis=1), 1.0 - np.asarray(SHARES))
        return cls(kept.transform, kept.centres, scores.astype(np.float32))

    def scores(self, probabilities: Array) -> npt.NDArray[np.float64]:
        """Return the scores (n,) of pixels by their probabilities (n, C); high is unknown."""
        distances: npt.NDArray[np.float64] = self._distances(_centred(probabilities)).min(axis=1)
        return distances

    def _distances(self, values: Array) -> npt.NDArray[np.float64]:
        whitened = values @ self.transform.T.astype(np.float64)
        centres = self.centres.astype(np.float64)
        return np.stack([((whitened - one) ** 2).sum(axis=1) for one in centres], axis=1)

    def threshold(self, share: float) -> float:
        """Return the score that a share of held-out pixels exceeds."""
        return float(np.interp(share, SHARES, self.thresholds))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: shortest(value) for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], classes: int) -> Self:
        """Read the form of `to_dict`."""
        shapes = {"transform": (classes, classes), "centres": (classes, classes)}
        shapes["thresholds"] = (len(SHARES),)  # type: ignore[assignment]
        arrays = {}
        for name, shape in shapes.items():
            try:
                array = np.asarray(values[name], dtype=np.float32)
            except (KeyError, TypeError, ValueError, OverflowError):
                array = np.zeros(0, np.float32)
            if array.shape != shape or not np.isfinite(array).all():
                raise InputError("unknown", rule=f"{name} must be finite, of shape {shape}")
            arrays[name] = array
        return cls(**arrays)


def _centred(probabilities: Array) -> npt.NDArray[np.float64]:
    values = np.log(np.maximum(probabilities.astype(np.float64), LEAST_NEAREST))
    return np.asarray(values - values.mean(axis=1, keepdims=True))


def shortest(values: npt.NDArray[np.float32]) -> Any:
    """Return nested lists of numbers with the digits that float32 needs."""
    if values.ndim > 1:
        return [shortest(row) for row in values]
    return [float(str(value)) for value in values]


def check_share(share: float) -> float:
    """Return a share of pixels that may be unknown."""
    if not SHARES[0] <= share <= SHARES[-1]:
        raise InputError("unknown", share, f"must be {SHARES[0]} to {SHARES[-1]}")
    return share
