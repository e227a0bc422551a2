"""Networks with one hidden layer of Gaussian units, fitted without steps of training."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.models.derivatives import class_splits, some_places
from hytas.models.linear import (
    RIDGES,
    ClosedFormNetwork,
    centre_of,
    fitted_regressions,
    held_out_losses,
    matrix_of,
    with_absent,
)
from hytas.spaces.names import KERNEL_DIRECTIONS, KERNEL_UNITS
from hytas.types import Floats

WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Factors of the squared distance, whose mean over spectra is 2."""
WHITENINGS = (0.0, 0.5)
"""Of principal directions: 0 leaves them as they are, 1 standardises them."""
WEAK_RIDGES = tuple(ridge for ridge in RIDGES if ridge >= 1.0)
"""Those that are compared: values of units are at most 1, and a stronger ridge flattens all."""
LEAST_EIGENVALUE = 1e-4
"""Of the units, as a share of the largest one: float32 loses smaller ones."""
FAINTEST = 0.05
"""Of the largest deviation: fainter directions are not made any louder."""
TINY = 1e-8


class Distance(NamedTuple):
    """The distance that Gaussian units see.

    Attributes:
        whitening: 0 leaves principal directions as they are, 1 standardises them.
        width: factor of the squared distance.
    """

    whitening: float
    width: float


class KernelNetwork(ClosedFormNetwork):
    """Gaussian units on directions of spectra.

    Args:
        bands, outputs: numbers of both.
        fit: a name in `KERNEL_DIRECTIONS`.

    Attributes:
        exact: whether sums are in double precision: of large weights that cancel.
    """

    exact = False

    def __init__(self, bands: int, outputs: int, fit: str) -> None:
        super().__init__()
        self.directions = nn.Linear(bands, KERNEL_DIRECTIONS[fit])
        self.units = nn.Parameter(torch.zeros(KERNEL_UNITS, KERNEL_DIRECTIONS[fit]))
        self.head = nn.Linear(KERNEL_UNITS, outputs)

    def of_spectra(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., outputs)."""

        def wide(values: Tensor) -> Tensor:
            return values.double() if self.exact else values

        along, units = wide(spectra) @ wide(self.directions.weight).T, wide(self.units)
        along = along + wide(self.directions.bias)
        norms = along.square().sum(-1, keepdim=True) + units.square().sum(1)
        squared = (norms - 2.0 * along @ units.T).clamp(min=0.0)
        outputs = torch.exp(-squared) @ wide(self.head.weight).T + wide(self.head.bias)
        return outputs.to(spectra.dtype)

    def fill(
        self,
        directions: tuple[Floats, Floats],
        units: Floats,
        head: tuple[Floats, Floats],
    ) -> None:
        """Set the weights.

        Args:
            directions: weight (k, bands) and bias (k,) of the directions.
            units: (n, k), at most `KERNEL_UNITS`.
            head: weight (outputs, n) and bias (outputs,).
        """
        padded = (
            (self.directions.weight, directions[0]),
            (self.directions.bias, directions[1]),
            (self.units, units),
            (self.head.weight, head[0]),
            (self.head.bias, head[1]),
        )
        for parameter, values in padded:
            parameter.zero_()
            parameter[tuple(map(slice, values.shape))] = torch.from_numpy(values).to(parameter)


class KernelClasses(KernelNetwork):
    """Kernel logistic regression on the leading principal directions of standardised bands.

    Cross-validation chooses the distance that the units see and the ridge of the largest
    likelihood.

    Args:
        bands, classes: numbers of both.

    Source: Zhu and Hastie, Kernel Logistic Regression and the Import Vector Machine, Journal of
    Computational and Graphical Statistics 14, 2005; with more pixels than units by the units that
    k-means finds (Zhang et al., Improved Nyström Low-Rank Approximation, ICML 2008).
    """

    def __init__(self, bands: int, classes: int, fit: str = "rbf") -> None:
        super().__init__(bands, classes, fit)

    @torch.no_grad()
    def solve(
        self, patches: Tensor, targets: Tensor, groups: NDArray[np.int64] | None = None
    ) -> None:
        """Fit the network to scaled patches (N, P, P, bands) and class indices (N,)."""
        spectra, labels = centre_of(patches).double().cpu().numpy(), targets.cpu().numpy()
        present, index = np.unique(labels, return_inverse=True)
        deviation = spectra.std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0)
        distance, ridge = _chosen(spectra / scale, labels)
        weight, bias = directions(spectra / scale, distance, KERNEL_DIRECTIONS["rbf"])
        weight = weight / scale
        along = spectra @ weight.T + bias
        units = units_of(along)
        root = _inverse_root(units)
        head, offset = np.zeros((1, len(units))), np.zeros(1)
        if len(present) > 1:
            machine = fitted_regressions(gaussian(along, units) @ root, index, [ridge])[0]
            rotated, offset = matrix_of(machine)
            head = rotated @ root.T
        classes = self.head.out_features
        self.fill((weight, bias), units, with_absent(head, offset, present, classes))


def directions(spectra: Floats, distance: Distance, count: int) -> tuple[Floats, Floats]:
    """Return weight (k, bands) and bias (k,) of principal directions, scaled as a distance wants.

    Args:
        spectra: (n, bands).
        count: of the directions, at most.
    """
    mean = spectra.mean(axis=0)
    _, lengths, axes = np.linalg.svd(spectra - mean, full_matrices=False)
    kept = min(count, len(lengths))
    deviation = lengths / len(spectra) ** 0.5
    power, own = distance.whitening, np.maximum(deviation[:kept], FAINTEST * deviation[0])
    scale = np.linalg.norm(deviation) ** (1.0 - power) * (own * kept**0.5) ** power
    weight = axes[:kept] * distance.width**0.5 / np.maximum(scale, TINY)[:, None]
    return weight, -weight @ mean


def gaussian(one: Floats, other: Floats) -> Floats:
    """Return the values (n, m) of Gaussian units (m, k) at points (n, k)."""
    squared = (one**2).sum(1)[:, None] + (other**2).sum(1) - 2 * one @ other.T
    return np.asarray(np.exp(-np.maximum(squared, 0.0)))


def units_of(along: Floats) -> Floats:
    """Return points (n, k) as units, or the centres that k-means finds among more of them."""
    if len(along) <= KERNEL_UNITS:
        return along
    from sklearn.cluster import KMeans

    machine = KMeans(KERNEL_UNITS, n_init=1, random_state=0).fit(along)
    return np.asarray(machine.cluster_centers_, np.float64)


def _inverse_root(units: Floats) -> Floats:
    """Return (n, r) such that the values of units times it have the kernel's inner products."""
    values, vectors = np.linalg.eigh(gaussian(units, units))
    kept = values > LEAST_EIGENVALUE * values.max()
    return np.asarray(vectors[:, kept] / values[kept] ** 0.5)


def _chosen(spectra: Floats, labels: NDArray[np.int64]) -> tuple[Distance, float]:
    """Return the distance and the ridge of the least held-out loss; usual ones without folds."""
    some, index, splits = class_splits(labels, some_places(len(labels)))
    if not splits:
        return Distance(0.0, WIDTHS[len(WIDTHS) // 2]), 1.0
    found = []
    for whitening in WHITENINGS:
        weight, bias = directions(spectra, Distance(whitening, 1.0), KERNEL_DIRECTIONS["rbf"])
        along = spectra @ weight.T + bias
        units = units_of(along)
        for width in WIDTHS:
            scaled = units * width**0.5
            features = gaussian(along[some] * width**0.5, scaled) @ _inverse_root(scaled)
            ridge, losses = held_out_losses(features, index, splits, WEAK_RIDGES)
            found.append((float(losses.mean()), Distance(whitening, width), ridge))
    return min(found)[1:]
