"""Networks without a hidden layer, and the mean of such networks with another one.

A linear network is one matrix from the bands of the pixel at the centre of a patch to the classes.
It is fitted, not trained by steps: by linear discriminant analysis with a shrunk covariance, in
closed form, or by softmax regression whose ridge is chosen by cross-validation. With few labels a
linear network errs in other places than a network that sees the neighbours of a pixel. So the mean
of their probabilities is often better than each of them.
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax
from torch import Tensor, nn
from torch.nn import functional

from hytas.errors import InputError
from hytas.metrics import LEAST_PROBABILITY
from hytas.models.derivatives import FoldPlaces, Losses, class_splits, derivatives_within_chance
from hytas.models.layers import probabilities
from hytas.models.network import Network, RowParts, as_network
from hytas.temperature import fit_temperature

_Values = NDArray[np.float64]
ABSENT = -1e4
"""Logit of a class without a training pixel, above the mean of the others: it is never the largest,
however large the logits are."""
ROUNDING = 1e-3
"""What float32 may lose of a sum of weighted bands, of values up to a thousand."""
RATE = 0.1
"""Of the learning rate, for a skip."""
LEAD = 4.0
"""Mean lead of the largest logit of a skip over the mean of all, at first."""
RIDGES = tuple(10.0**power for power in range(-3, 4))
"""Inverse strengths C of the ridge that cross-validation compares, the strongest ridge first."""
MOST_ITERATIONS, TOLERANCE = 60, 1e-3
"""Of Newton's method for one ridge, whose gradient is followed by conjugate gradients."""


def lda(spectra: _Values, targets: NDArray[np.int64], classes: int) -> tuple[_Values, _Values]:
    """Return the matrix and bias of linear discriminant analysis with a shrunk covariance.

    The covariance of each class is shrunk after its bands were standardised, by the amount that
    minimises the expected squared error (Ledoit and Wolf, A Well-Conditioned Estimator for
    Large-Dimensional Covariance Matrices, Journal of Multivariate Analysis 88, 2004).

    Args:
        spectra: (N, bands).
        targets: (N,) class indices.
        classes: C. One without a pixel is never predicted.

    Returns:
        Weight (C, bands) and bias (C,) of the logits, those of scikit-learn's
        `LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")`.
    """
    from sklearn.covariance import ledoit_wolf_shrinkage
    from sklearn.preprocessing import StandardScaler

    spectra = np.asarray(spectra, np.float64)
    present, counts = np.unique(targets, return_counts=True)
    priors, bands = counts / len(targets), spectra.shape[1]
    means = np.stack([spectra[targets == label].mean(axis=0) for label in present])
    roots, diagonal = [], np.zeros(bands)
    for label, mean, prior in zip(present, means, priors, strict=True):
        members = spectra[targets == label]
        scaler = StandardScaler().fit(members)
        scaled = scaler.transform(members)
        shrinkage = ledoit_wolf_shrinkage(scaled) if len(members) > 1 else 0.0
        roots.append((members - mean) * (prior * (1 - shrinkage) / len(members)) ** 0.5)
        variance = scaled.var(axis=0).sum() / bands
        diagonal += prior * shrinkage * variance * scaler.scale_**2
    weight = _solve(np.concatenate(roots), diagonal, means.T).T
    bias = -0.5 * (means * weight).sum(axis=1) + np.log(priors)
    return with_absent(weight, bias, present, classes)


def with_absent(
    weight: _Values, bias: _Values, present: NDArray[np.int64], classes: int
) -> tuple[_Values, _Values]:
    """Return the matrix and bias of all classes; those without a pixel lie below the mean."""
    every_weight = np.tile(weight.mean(axis=0), (classes, 1))
    lost = ROUNDING * float(np.abs(weight).sum(axis=1).max())
    every_bias = np.full(classes, bias.mean() + ABSENT - lost)
    every_weight[present], every_bias[present] = weight, bias
    return every_weight, every_bias


def _solve(roots: _Values, diagonal: _Values, columns: _Values) -> _Values:
    """Return the inverse of a covariance, roots.T @ roots + diag(diagonal), times some columns.

    With fewer pixels than bands a matrix of the pixels is inverted (Woodbury's identity). A
    singular covariance, of bands that are constant in each class, has a pseudo-inverse.
    """
    if len(roots) < len(diagonal) and (diagonal > 0).all():
        scaled = roots / diagonal
        inner = cho_factor(np.eye(len(roots)) + scaled @ roots.T)
        columns = columns / diagonal[:, None]
        return np.asarray(columns - scaled.T @ cho_solve(inner, roots @ columns))
    covariance = roots.T @ roots + np.diag(diagonal)
    return np.asarray(np.linalg.lstsq(covariance, columns, rcond=None)[0], np.float64)


def softmax_regression(
    spectra: _Values, targets: NDArray[np.int64], classes: int
) -> tuple[_Values, _Values]:
    """Return the matrix and bias of softmax regression with a ridge.

    Cross-validation chooses the ridge of the largest mean log likelihood. Spectra are rotated to
    their principal directions, of which there are at most N: a ridge does not depend on the axes,
    and fits of many bands are as fast as fits of few.

    Args:
        spectra: (N, bands), standardised.
        targets: (N,) class indices.
        classes: C. One without a pixel is never predicted.

    Returns:
        Weight (C, bands) and bias (C,) of the logits.
    """
    spectra = np.asarray(spectra, np.float64)
    present, index = np.unique(targets, return_inverse=True)
    centre = spectra.mean(axis=0)
    rotated, directions = _rotated(spectra, centre)
    some, own, splits = class_splits(targets, np.arange(len(targets)))
    ridge = held_out_losses(rotated[some], own, splits)[0] if splits else 1.0
    weight, bias = np.zeros((len(present), spectra.shape[1])), np.zeros(len(present))
    if len(present) > 1:
        head, offset = matrix_of(fitted_regressions(rotated, index, [ridge])[0])
        weight = head @ directions
        bias = offset - weight @ centre
    return with_absent(weight, bias, present, classes)


def _rotated(spectra: _Values, centre: _Values) -> tuple[_Values, _Values]:
    """Return spectra (N, k) along their principal directions, and these (k, bands)."""
    _, values, directions = np.linalg.svd(spectra - centre, full_matrices=False)
    directions = directions[values > values.max(initial=0.0) * 1e-10]
    return (spectra - centre) @ directions.T, directions


def held_out_losses(
    spectra: _Values,
    index: NDArray[np.int64],
    splits: FoldPlaces,
    ridges: Sequence[float] = RIDGES,
) -> tuple[float, _Values]:
    """Return the ridge of the least mean loss, and the losses (n,) of held-out pixels by it."""
    losses = np.zeros((len(ridges), len(index)))
    for fitted, held_out in splits:
        for at, machine in enumerate(fitted_regressions(spectra[fitted], index[fitted], ridges)):
            chances = machine.predict_proba(spectra[held_out])
            losses[at, held_out] = _surprise(chances, index[held_out])
    best = int(np.argmin(losses.mean(axis=1)))
    return ridges[best], losses[best]


def _surprise(chances: _Values, index: NDArray[np.int64]) -> _Values:
    """Return the negative log likelihood of each pixel."""
    own = chances[np.arange(len(index)), index]
    return np.asarray(-np.log(np.maximum(own, LEAST_PROBABILITY)))


def _lda_losses(spectra: _Values, index: NDArray[np.int64], splits: FoldPlaces) -> _Values:
    """Return the negative log likelihood of held-out pixels, at their best temperature."""
    logits = np.zeros((len(index), index.max() + 1))
    for fitted, held_out in splits:
        weight, bias = lda(spectra[fitted], index[fitted], logits.shape[1])
        logits[held_out] = spectra[held_out] @ weight.T + bias
    return _surprise(softmax(logits / fit_temperature(logits, index), axis=1), index)


def _softmax_losses(spectra: _Values, index: NDArray[np.int64], splits: FoldPlaces) -> _Values:
    rotated, _ = _rotated(spectra, spectra.mean(axis=0))
    return held_out_losses(rotated, index, splits)[1]


def fitted_regressions(
    spectra: _Values, index: NDArray[np.int64], ridges: Sequence[float]
) -> list[Any]:
    """Return a softmax regression for each ridge; each starts from the one before."""
    from sklearn.linear_model import LogisticRegression

    machine = LogisticRegression(
        solver="newton-cg", tol=TOLERANCE, max_iter=MOST_ITERATIONS, warm_start=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a weak ridge may need more steps, and then loses
        return [copy.deepcopy(machine.set_params(C=ridge).fit(spectra, index)) for ridge in ridges]


def matrix_of(machine: Any) -> tuple[_Values, _Values]:
    """Return weight and bias of all classes; of two, scikit-learn keeps their difference."""
    weight, bias = machine.coef_, machine.intercept_
    if len(machine.classes_) == 2:
        return np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return weight, bias


class ClosedForm(NamedTuple):
    """How a matrix is fitted: `fit(spectra, targets, classes)`, and its held-out losses."""

    fit: Callable[[_Values, NDArray[np.int64], int], tuple[_Values, _Values]]
    losses: Losses


FUNCTIONS = {
    "lda": ClosedForm(lda, _lda_losses),
    "softmax": ClosedForm(softmax_regression, _softmax_losses),
}
"""Name of a fit, a value of the gene `fit` -> its functions."""


class ClosedFormNetwork(Network):
    """A network of the centre of a patch, which `solve` fits without steps of training.

    Input: scaled patches (N, P, P, bands), float. Output: logits (N, classes), or values.
    """

    closed_form = True

    def of_spectra(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., classes)."""
        raise NotImplementedError

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        return self.of_spectra(centre_of(patches))

    def strips(self) -> RowParts:
        """Return the parts of the network for whole rows of pixels."""
        return RowParts(_OfSpectra(self), _CentreRow())

    def seen(self, patches: Tensor) -> Tensor:
        """Return the centre (N, 1, 1, bands) of patches."""
        return centre_of(patches)[:, None, None]


class LinearNetwork(ClosedFormNetwork):
    """A matrix from the bands of the centre of a patch to the classes.

    It is the mean of the matrices of spectra, of their first and of their second derivative, but
    for those that cross-validation puts behind the best one by more than chance.

    Args:
        bands, classes: of the scene.
        fit: a name in `FITS`.

    Raises:
        InputError: an unknown fit.
    """

    def __init__(self, bands: int, classes: int, fit: str) -> None:
        super().__init__()
        if fit not in FUNCTIONS:
            raise InputError("fit", fit, f"must be one of {', '.join(FUNCTIONS)}")
        self.fit = fit
        self.head = nn.Linear(bands, classes)

    def of_spectra(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., classes)."""
        logits: Tensor = self.head(spectra)
        return logits

    @torch.no_grad()
    def solve(
        self, patches: Tensor, targets: Tensor, groups: NDArray[np.int64] | None = None
    ) -> None:
        """Fit the matrix to scaled patches (N, P, P, bands) and class indices (N,)."""
        spectra, labels = centre_of(patches).double().cpu().numpy(), targets.cpu().numpy()
        form = FUNCTIONS[self.fit]
        weights, biases = [], []
        for values, matrix in derivatives_within_chance(spectra, labels, form.losses):
            weight, bias = form.fit(values, labels, self.head.out_features)
            weights.append(weight @ matrix)
            biases.append(bias)
        self.head.weight.copy_(torch.from_numpy(np.mean(weights, axis=0)))
        self.head.bias.copy_(torch.from_numpy(np.mean(biases, axis=0)))


class _OfSpectra(nn.Module):
    """A network in closed form, of spectra in place of patches."""

    def __init__(self, network: ClosedFormNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., classes)."""
        return self.network.of_spectra(spectra)


class _CentreRow(nn.Module):
    """The logits of the pixels of a row, which are their features."""

    def forward(self, features: Tensor) -> Tensor:
        """(P, W + P - 1, C) -> (W, C)."""
        return centre_row(features)


def centre_row(features: Tensor) -> Tensor:
    """Return the features (W, F) of a row of pixels, from those of its strip (P, W + P - 1, F)."""
    middle = features.shape[0] // 2
    return features[middle, middle : features.shape[1] - middle]


class LinearSkip(nn.Linear):
    """A matrix whose logits are added to those of a network; it learns at a tenth of the rate.

    Args:
        exact: whether sums are in double precision, as those of ridge regression need.
    """

    def __init__(self, bands: int, classes: int, exact: bool = False) -> None:
        super().__init__(bands, classes)
        self.exact = exact

    def forward(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., classes)."""
        if not self.exact:
            return RATE * super().forward(spectra)
        return RATE * exact_linear(self, spectra)


def exact_linear(layer: nn.Linear, spectra: Tensor) -> Tensor:
    """Return what a layer gives, summed in double precision: thousands of terms cancel, and their
    order must not tell."""
    weight, bias = layer.weight.double(), layer.bias.double()
    return functional.linear(spectra.double(), weight, bias).to(spectra.dtype)


@torch.no_grad()
def begin_skip(skip: LinearSkip, head: nn.Linear, spectra: Tensor, targets: Tensor) -> None:
    """Start a skip as linear discriminant analysis, and the head next to it at zero.

    Args:
        skip, head: changed in place.
        spectra: (N, bands), scaled, of training pixels.
        targets: (N,) class indices.
    """
    values = spectra.double().cpu().numpy()
    weight, bias = lda(values, targets.cpu().numpy(), skip.out_features)
    present = np.isin(np.arange(skip.out_features), targets.cpu().numpy())
    logits = values @ weight[present].T + bias[present]
    lead = float((logits.max(axis=1) - logits.mean(axis=1)).mean())
    scale = LEAD / max(lead, LEAD * 1e-3) / RATE
    bias[~present] -= ABSENT  # it may learn
    skip.weight.copy_(torch.from_numpy(scale * weight))
    skip.bias.copy_(torch.from_numpy(scale * bias))
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)


class MeanNetwork(Network):
    """The mean of the probabilities of a network and of networks in closed form.

    Args:
        network: of a search space.
        linear: fit -> network in closed form.
        classes: of the scene.

    Input: scaled patches (N, P, P, bands), float. Output: logits (N, classes), the logarithm of the
    mean and a shift of each class.
    """

    readout = "shift"

    def __init__(self, network: nn.Module, linear: Mapping[str, Network], classes: int) -> None:
        super().__init__()
        self.network = network
        self.linear = nn.ModuleDict(linear)
        self.shift = Shift(classes)
        self.repeatable = as_network(network, "mean").repeatable

    @property
    def readouts(self) -> tuple[str, ...]:
        """Those of the network and of the mean, not the networks in closed form."""
        own = as_network(self.network, "mean").readouts
        return (self.readout, *(f"network.{name}" for name in own))

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        linear = [network(patches) for network in self.linear.values()]
        return self.mean_of(self.network(patches), linear)

    def mean_of(self, network: Tensor, linear: Sequence[Tensor]) -> Tensor:
        """Return the logits (N, C) of the mean of logits (N, C)."""
        chances = probabilities(network)
        for logits in linear:
            chances = chances + probabilities(logits)
        mean = chances / (1 + len(linear))
        shifted: Tensor = self.shift(mean.clamp(min=LEAST_PROBABILITY).log())
        return shifted

    def seen(self, patches: Tensor) -> Tensor:
        """Return as much of patches (N, P, P, bands) as the network looks at."""
        return as_network(self.network, "mean").seen(patches)

    def strips(self) -> RowParts:
        """Return the parts of the network for whole rows of pixels."""
        strips = as_network(self.network, "scene graph").strips()
        linear = [as_network(one, "scene graph").strips().pixels for one in self.linear.values()]
        return RowParts(PixelsAndHeads(strips.pixels, linear), _MeanRow(self, strips.row))


class Shift(nn.Module):
    """A value that is added to the logits of each class; 0 at first."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, logits: Tensor) -> Tensor:
        """(N, C) -> (N, C)."""
        return logits + self.bias


class PixelsAndHeads(nn.Module):
    """The features of a network, and behind them the logits of some matrices."""

    def __init__(self, pixels: nn.Module, heads: Sequence[nn.Module]) -> None:
        super().__init__()
        self.pixels, self.heads = pixels, nn.ModuleList(heads)

    def forward(self, scaled: Tensor) -> Tensor:
        """(..., bands) -> (..., F + L * C)."""
        return torch.cat([self.pixels(scaled), *(head(scaled) for head in self.heads)], dim=-1)


class _MeanRow(nn.Module):
    """The logits of a row of pixels, from the features of `PixelsAndHeads`."""

    def __init__(self, mean: MeanNetwork, row: nn.Module) -> None:
        super().__init__()
        self.mean, self.row = mean, row

    def forward(self, features: Tensor) -> Tensor:
        """(P, W + P - 1, F + L * C) -> (W, C)."""
        classes, count = len(self.mean.shift.bias), len(self.mean.linear)
        own = features.shape[-1] - count * classes
        linear = centre_row(features[..., own:])
        logits = [linear[:, k * classes : (k + 1) * classes] for k in range(count)]
        return self.mean.mean_of(self.row(features[..., :own]), logits)


def centre_of(patches: Tensor) -> Tensor:
    """Return the spectra (N, bands) of the pixels at the centre of patches (N, P, P, bands)."""
    middle = patches.shape[1] // 2
    return patches[:, middle, middle]
