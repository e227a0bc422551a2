"""Networks of continuous targets that are fitted, not trained by steps.

Ridge regression and partial least squares are one matrix from the bands of a pixel to the targets.
Kernel ridge regression has one hidden layer of Gaussian units. With few samples one of them is
often the best model there is, so they race next to every network, and join its mean. Inner folds,
which keep groups whole, choose the strength of a fit, and how spectra are prepared before: a
derivative by Savitzky and Golay or none, bands with scales of their own or a common one. All that
is linear, so it becomes part of the matrix; and the matrices of the preparations whose error is
within chance of the least are averaged, since few samples cannot tell them apart.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress, product, starmap
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor, nn

from hytas.metrics import LEAST_PROBABILITY, within_chance
from hytas.models.derivatives import ORDERS, derivative, some_places
from hytas.models.kernel import TINY, Distance, KernelNetwork, directions, gaussian, units_of
from hytas.models.linear import (
    RATE,
    ClosedFormNetwork,
    LinearSkip,
    MeanNetwork,
    centre_of,
    exact_linear,
)
from hytas.models.network import Network
from hytas.spaces.names import KERNEL_DIRECTIONS, SHARE_FITS, VALUE_FITS
from hytas.types import Floats

FOLDS = 5
STRENGTHS = 10.0 ** np.arange(-8.0, 3.1, 0.5)
"""Of the ridge, as a share of the number of samples and of the mean squared spectrum."""
WEAK, FIRM = (int(np.searchsorted(STRENGTHS, 0.9 * least)) for least in (1e-5, 1e-3))
"""Places of the least strength of a kernel; a weaker one than FIRM must win beyond chance."""
MOST_COMPONENTS = 20
WIDTHS = (0.03, 0.1, 0.3, 1.0)
"""Factors of the squared distance in standardised directions."""
EXHAUSTED = 1e-10
"""Of the first covariance with the target, below which no component is left."""


class Prepared(NamedTuple):
    """Spectra as a fit reads them, `(spectra @ matrix.T - centre) / scale`.

    Attributes:
        matrix: (bands, bands) of a derivative.
        scale: (bands,), the same for all bands or their own.
    """

    matrix: Floats
    centre: Floats
    scale: Floats

    def apply(self, spectra: Floats) -> Floats:
        """Return prepared spectra (N, bands) of raw ones."""
        return np.asarray((spectra @ self.matrix.T - self.centre) / self.scale)

    def folded(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """Return weight (T, bands) and bias (T,) for spectra, from those for prepared ones."""
        weight = weight / self.scale
        return weight @ self.matrix, bias - weight @ self.centre


def prepared(spectra: Floats, order: int, own: bool) -> Prepared:
    """Fit a preparation to spectra (N, bands).

    Args:
        own: whether each band is scaled by its own deviation.
    """
    matrix = derivative(spectra.shape[1], order)
    assert matrix is not None  # else it was not chosen
    return Prepared(matrix, *_moments(spectra @ matrix.T, own))


def inner_folds(samples: int, groups: NDArray[np.int64] | None) -> Iterator[NDArray[np.bool_]]:
    """Yield which samples (N,) each fold holds out; groups stay whole if there are two or more."""
    every = np.arange(samples)
    units = every if groups is None or len(np.unique(groups)) < 2 else groups
    _, unit = np.unique(units, return_inverse=True)
    dealt = np.random.default_rng(0).permutation(unit.max() + 1) % FOLDS
    for number in range(FOLDS):
        held_out = dealt[unit] == number
        if held_out.any() and not held_out.all():
            yield held_out


Curve = Callable[[Floats, Floats, Floats], Floats]
"""Prepared spectra (n, bands), targets (n, T), and others (m, bands) -> their predictions
(S, m, T) by each of S strengths."""


def _damped(values: Floats, vectors: Floats, targets: Floats, seen: Floats) -> Floats:
    """Return predictions (S, m, T) by the decomposed kernel of n samples, and that of m others."""
    mean = targets.mean(axis=0)
    along = vectors.T @ (targets - mean)
    damped = np.maximum(values, 0.0) + STRENGTHS[:, None] * len(targets)
    return np.asarray((seen @ vectors) @ (along / damped[..., None]) + mean)


def _ridge_curve(spectra: Floats, targets: Floats, others: Floats) -> Floats:
    bands = spectra.shape[1]
    values, vectors = np.linalg.eigh(spectra @ spectra.T / bands)
    return _damped(values, vectors, targets, others @ spectra.T / bands)


def pls_matrices(spectra: Floats, targets: Floats) -> Floats:
    """Return the matrices (`MOST_COMPONENTS`, bands) of partial least squares by 1, 2, ...
    components, for centred spectra; once nothing is left to fit, the last one is repeated.

    scikit-learn's regression gives NaN for spectra of a lower rank.

    Args:
        spectra: (n, bands).
        targets: (n,).
    """
    rest, wanted = spectra - spectra.mean(axis=0), targets - targets.mean()
    matrix = np.zeros(spectra.shape[1])
    least = EXHAUSTED * np.linalg.norm(rest.T @ wanted)
    found: list[Floats] = []
    parts: list[tuple[Floats, Floats]] = []
    for number in range(MOST_COMPONENTS):
        weight = rest.T @ wanted
        length = np.linalg.norm(weight)
        if number < len(targets) - 1 and length > least:
            weight /= length
            scores = rest @ weight
            loading = rest.T @ scores / (scores @ scores)
            share = wanted @ scores / (scores @ scores)
            rotation = weight - sum((before @ weight) * turned for before, turned in parts)
            parts.append((loading, rotation))
            rest = rest - np.outer(scores, loading)
            wanted = wanted - share * scores
            matrix = matrix + share * rotation
        found.append(matrix)
    return np.stack(found)


def _pls_curve(spectra: Floats, targets: Floats, others: Floats) -> Floats:
    seen = (others - spectra.mean(axis=0)).T
    columns = [pls_matrices(spectra, column) @ seen + column.mean() for column in targets.T]
    return np.stack(columns, axis=-1)


def _errors(
    spectra: Floats, targets: Floats, groups: NDArray[np.int64] | None, own: bool, curve: Curve
) -> list[Floats]:
    """Return for each target the squared errors (S, n) of held-out samples by each strength.

    Args:
        spectra: (N, bands), of which derivatives were taken.
        targets: (N, T); those that miss at the same samples are fitted together.
    """
    known = np.isfinite(targets)
    found: list[Floats] = [np.zeros((1, 1))] * len(targets.T)
    for mask in np.unique(known, axis=1).T:
        columns = np.flatnonzero((mask == known.T).all(axis=1))
        kept, values = spectra[mask], targets[mask][:, columns]
        parts = []
        for held_out in inner_folds(len(kept), None if groups is None else groups[mask]):
            scaling = _scaled(kept[~held_out], own)
            fitted, others = (scaling(kept[part]) for part in (~held_out, held_out))
            parts.append((curve(fitted, values[~held_out], others) - values[held_out]) ** 2)
        for at, column in enumerate(columns):
            found[column] = np.concatenate([part[..., at] for part in parts], axis=1)
    return found


def _scaled(spectra: Floats, own: bool) -> Callable[[Floats], Floats]:
    centre, scale = _moments(spectra, own)
    return lambda values: (values - centre) / scale


def _moments(values: Floats, own: bool) -> tuple[Floats, Floats]:
    """Return centre and scale (bands,) of spectra; one scale for all, or one for each band."""
    centre, deviation = values.mean(axis=0), values.std(axis=0)
    whole = float(np.sqrt((deviation**2).mean())) or 1.0
    return centre, np.maximum(deviation, 1e-3 * whole) if own else np.full_like(deviation, whole)


def _candidates(spectra: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield the orders of derivatives that are possible, and the spectra that they give."""
    for order in ORDERS:
        if (matrix := derivative(spectra.shape[1], order)) is not None:
            yield order, spectra @ matrix.T if order else spectra


Choice = tuple[int, bool, int]
"""Order of the derivative, whether bands have a scale of their own, and place of the strength."""


def _chosen(
    spectra: Floats,
    targets: Floats,
    groups: NDArray[np.int64] | None,
    curve: Curve,
    best: Callable[[Floats], int],
) -> list[list[Choice]]:
    """Return for each target the preparations, each with its strength, whose error of samples that
    inner folds hold out is within chance of the least.

    Args:
        best: from errors (S, n) to the place of the strength.
    """
    some = some_places(len(spectra))
    spectra, targets = spectra[some], targets[some]
    groups = None if groups is None else groups[some]
    choices: list[list[Choice]] = [[] for _ in targets.T]
    lost: list[list[Floats]] = [[] for _ in targets.T]
    for order, values in _candidates(spectra):
        for own in (False, True):
            for target, errors in enumerate(_errors(values, targets, groups, own, curve)):
                at = best(errors)
                choices[target].append((order, own, at))
                lost[target].append(errors[at])
    pairs = zip(choices, lost, strict=True)
    return [list(compress(each, within_chance(losses))) for each, losses in pairs]


def _least(errors: Floats) -> int:
    return int(errors.mean(axis=1).argmin())


def within_one_error(errors: Floats) -> int:
    """Return the first strength whose error lies within one standard error of the least."""
    means = errors.mean(axis=1)
    least = int(means.argmin())
    limit = means[least] + errors[least].std() / errors.shape[1] ** 0.5
    return int((means <= limit).argmax())


Solver = Callable[[Floats, Floats, NDArray[np.int64] | None], tuple[Floats, Floats]]
"""Spectra (N, bands), targets (N, T) and groups (N,) -> weight (T, bands) and bias (T,)."""


def fit_ridge(
    spectra: Floats, targets: Floats, groups: NDArray[np.int64] | None
) -> tuple[Floats, Floats]:
    """Fit ridge regression (Hoerl and Kennard, Technometrics 12, 1970), each target by itself."""
    choices = _chosen(spectra, targets, groups, _ridge_curve, _least)
    return _matrices(spectra, targets, choices, ridge_matrix)


def fit_pls(
    spectra: Floats, targets: Floats, groups: NDArray[np.int64] | None
) -> tuple[Floats, Floats]:
    """Fit partial least squares with as many components as inner folds choose, each target by
    itself (Wold et al., Chemometrics and Intelligent Laboratory Systems 58, 2001)."""
    choices = _chosen(spectra, targets, groups, _pls_curve, within_one_error)
    return _matrices(spectra, targets, choices, _pls_matrix)


def _matrices(
    spectra: Floats,
    targets: Floats,
    choices: Sequence[Sequence[Choice]],
    solve: Callable[[Floats, Floats, int], Floats],
) -> tuple[Floats, Floats]:
    """Return weight (T, bands) and bias (T,), the means over the choices of each target."""
    weights, biases = [], []
    for column, some in zip(targets.T, choices, strict=True):
        known = np.isfinite(column)
        mean, parts = column[known].mean(), []
        for order, own, at in some:
            preparation = prepared(spectra[known], order, own)
            values = preparation.apply(spectra[known])
            weight = solve(values, column[known] - mean, at)
            bias = mean - values.mean(axis=0) @ weight
            parts.append(preparation.folded(weight, bias))
        weights.append(np.mean([weight for weight, _ in parts], axis=0))
        biases.append(np.mean([bias for _, bias in parts]))
    return np.stack(weights), np.array(biases)


def ridge_matrix(spectra: Floats, targets: Floats, at: int) -> Floats:
    bands, strength = spectra.shape[1], STRENGTHS[at] * len(targets)
    inner = spectra @ spectra.T / bands + strength * np.eye(len(targets))
    return np.asarray(spectra.T @ cho_solve(cho_factor(inner), targets) / bands)


def _pls_matrix(spectra: Floats, targets: Floats, at: int) -> Floats:
    return np.asarray(pls_matrices(spectra, targets)[at])


class LinearValues(ClosedFormNetwork):
    """A matrix from the bands of the centre of a patch to the targets.

    Args:
        bands, targets: numbers of both.
        fit: "ridge" or "pls".

    Input: scaled patches (N, P, P, bands), float. Output: standardised values (N, targets).
    """

    def __init__(self, bands: int, targets: int, fit: str) -> None:
        super().__init__()
        self.fit: Solver = {"ridge": fit_ridge, "pls": fit_pls}[fit]
        self.head = nn.Linear(bands, targets)

    def of_spectra(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., targets), standardised."""
        return exact_linear(self.head, spectra)

    @torch.no_grad()
    def solve(
        self, patches: Tensor, targets: Tensor, groups: NDArray[np.int64] | None = None
    ) -> None:
        """Fit the matrix to scaled patches (N, P, P, bands) and standardised targets (N, T)."""
        spectra, values = (each.double().cpu().numpy() for each in (centre_of(patches), targets))
        _fill(self.head, *self.fit(spectra, values, groups))


def _fill(layer: nn.Linear, weight: Floats, bias: Floats) -> None:
    layer.weight.copy_(torch.from_numpy(weight))
    layer.bias.copy_(torch.from_numpy(bias))


class KernelValues(KernelNetwork):
    """Kernel ridge regression with Gaussian units on principal directions of spectra.

    Args:
        bands, targets: numbers of both.

    Source: Saunders et al., Ridge Regression Learning Algorithm in Dual Variables, ICML 1998; with
    more samples than units by the units that k-means finds (Zhang et al., ICML 2008).
    """

    exact = True

    def __init__(self, bands: int, targets: int, fit: str = "kernel") -> None:
        super().__init__(bands, targets, fit)

    @torch.no_grad()
    def solve(
        self, patches: Tensor, targets: Tensor, groups: NDArray[np.int64] | None = None
    ) -> None:
        """Fit the network to scaled patches (N, P, P, bands) and standardised targets (N, T)."""
        spectra, values = (each.double().cpu().numpy() for each in (centre_of(patches), targets))
        order, distance, places = _chosen_kernel(spectra, values, groups)
        preparation = prepared(spectra, order, True)
        weight, bias = directions(preparation.apply(spectra), distance, KERNEL_DIRECTIONS["kernel"])
        along = preparation.apply(spectra) @ weight.T + bias
        units = units_of(along)
        heads, means = np.zeros((values.shape[1], len(units))), np.zeros(values.shape[1])
        for at, (column, place) in enumerate(zip(values.T, places, strict=True)):
            known = np.isfinite(column)
            means[at] = column[known].mean()
            seen, inner = gaussian(along[known], units), gaussian(units, units)
            inner = (
                seen.T @ seen + STRENGTHS[place] * known.sum() * inner + TINY * np.eye(len(units))
            )
            heads[at] = np.linalg.solve(inner, seen.T @ (column[known] - means[at]))
        self.fill(preparation.folded(weight, bias), units, (heads, means))


KernelChoice = tuple[int, Distance, list[int]]
"""Order of the derivative, distance, and the place of the strength of each target."""


def _chosen_kernel(
    spectra: Floats, targets: Floats, groups: NDArray[np.int64] | None
) -> KernelChoice:
    """Choose by inner folds.

    Weak strengths and distances of spectra as they are fit curves of mixed materials closely, and
    few samples badly: they are taken where they are better beyond chance.
    """
    some = some_places(len(spectra))
    spectra, targets = spectra[some], targets[some]
    groups = None if groups is None else groups[some]
    firm: list[tuple[Floats, KernelChoice]] = []
    every: list[tuple[Floats, KernelChoice]] = []
    for order, values in _candidates(spectra):
        for distance in starmap(Distance, product((1.0, 0.0), WIDTHS)):
            errors = _errors(values, targets, groups, True, partial(_kernel_curve, distance))
            for found, first in ((every, WEAK), *[(firm, FIRM)] * int(distance.whitening)):
                places = [first + _least(one[first:]) for one in errors]
                losses = [one[at] for one, at in zip(errors, places, strict=True)]
                found.append((np.concatenate(losses), (order, distance, places)))
    best = [min(found, key=lambda one: float(one[0].mean())) for found in (firm, every)]
    is_usual, _ = within_chance([losses for losses, _ in best])
    return best[0 if is_usual else 1][1]


def _kernel_curve(distance: Distance, spectra: Floats, targets: Floats, others: Floats) -> Floats:
    weight, bias = directions(spectra, distance, KERNEL_DIRECTIONS["kernel"])
    along, apart = (each @ weight.T + bias for each in (spectra, others))
    values, vectors = np.linalg.eigh(gaussian(along, along))
    return _damped(values, vectors, targets, gaussian(apart, along))


class ReadOut(nn.Module):
    """From standardised values (N, T), or logits of shares, to values in units.

    Args:
        centre, scale: (T,) of the targets.
        fractions: whether they are shares that sum to one.
    """

    centre: Tensor
    scale: Tensor

    def __init__(self, centre: Sequence[float], scale: Sequence[float], *, fractions: bool) -> None:
        super().__init__()
        self.register_buffer("centre", torch.tensor(centre, dtype=torch.float32))
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.fractions = fractions

    def forward(self, logits: Tensor) -> Tensor:
        """(N, T) -> (N, T)."""
        return logits.softmax(-1) if self.fractions else logits * self.scale + self.centre


class SharesOf(ClosedFormNetwork):
    """The logits of shares, from a network of values: those below zero are cut.

    Args:
        bands, targets: numbers of both.
        fit: a name in `SHARE_FITS`.
    """

    def __init__(self, bands: int, targets: int, fit: str) -> None:
        super().__init__()
        own = VALUE_FITS[SHARE_FITS.index(fit)]
        self.values: Any = FITTED[own](bands, targets, own)

    def of_spectra(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., targets)."""
        shares: Tensor = self.values.of_spectra(spectra)
        return shares.clamp(min=LEAST_PROBABILITY).log()

    def solve(
        self, patches: Tensor, targets: Tensor, groups: NDArray[np.int64] | None = None
    ) -> None:
        """Fit the network to scaled patches (N, P, P, bands) and shares (N, T)."""
        self.values.solve(patches, targets, groups)


FITTED: dict[str, Callable[[int, int, str], Network]] = {
    "ridge": LinearValues,
    "pls": LinearValues,
    "kernel": KernelValues,
    **dict.fromkeys(SHARE_FITS, SharesOf),
}
"""Name of a fit of continuous targets -> its network, from bands, targets and the name."""


class MeanOfValues(MeanNetwork):
    """The mean of the values of a network and of fitted ones: see `MeanNetwork`."""

    def mean_of(self, network: Tensor, linear: Sequence[Tensor]) -> Tensor:
        """Return the mean of values (N, T), and a shift of each target."""
        shifted: Tensor = self.shift(torch.stack([network, *linear]).mean(0))
        return shifted


@torch.no_grad()
def begin_ridge_skip(skip: LinearSkip, head: nn.Linear, spectra: Tensor, targets: Tensor) -> None:
    """Start a skip as ridge regression, and the head next to it at zero.

    Args:
        skip, head: changed in place.
        spectra: (N, bands), scaled, of training pixels.
        targets: (N, T) standardised; NaN where one is missing.
    """
    values, wanted = (each.double().cpu().numpy() for each in (spectra, targets))
    some = some_places(len(values))
    errors = _errors(values[some], wanted[some], None, False, _ridge_curve)
    choices = [[(0, False, _least(one))] for one in errors]
    weight, bias = _matrices(values, wanted, choices, ridge_matrix)
    _fill(skip, weight / RATE, bias / RATE)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
