"""Which genes decide a figure: permutation importance and partial dependence of a forest.

Sources: Breiman, Random forests, Machine Learning 45, 2001 (permutation importance); Friedman,
Greedy function approximation, Annals of Statistics 29, 2001 (partial dependence).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.lab.analysis.bootstrap import mean_with_interval, resamples
from hytas.lab.analysis.factors import Factors
from hytas.types import Floats

TREES, LEAST_LEAF = 50, 5
FOLDS, SHUFFLES = 2, 3
REFITS = 10
"""Forests on resamples that give partial dependence its interval."""
MOST_POINTS, MOST_ROWS = 10, 200
NEIGHBOURS = 0.05
"""Share of the networks whose sizes count as equal."""
_Interval = tuple[float, float, float]


def at_equal_size(figure: Floats, params: Floats) -> Floats:
    """Return a figure (n,) minus the mean over the `NEIGHBOURS` that are nearest in size."""
    order = np.argsort(params, kind="stable")
    half = max(5, int(NEIGHBOURS * len(figure) / 2))
    sums = np.r_[0.0, np.cumsum(figure[order])]
    places = np.arange(len(figure))
    low, high = np.maximum(places - half, 0), np.minimum(places + half + 1, len(figure))
    mean = (sums[high] - sums[low] - figure[order]) / np.maximum(high - low - 1, 1)
    difference = np.empty_like(figure)
    difference[order] = figure[order] - mean
    return difference


def importances(
    factors: Factors, rows: Floats, figure: Floats, resampled: int, seed: int
) -> tuple[_Interval | None, dict[str, _Interval | None]]:
    """Return how much a forest explains of a figure, and how much of it is lost without each gene.

    Each network is predicted by trees that have not seen it. A gene is taken away by giving the
    networks each other's values of it. All are shares of the figure's variance, with 95 %
    intervals; below zero is chance.

    Args:
        rows: (n, c) factors of the networks.
        figure: (n,) such as the accuracy.
    """
    generator = np.random.default_rng(seed)
    parts = np.array_split(generator.permutation(len(figure)), FOLDS)
    error = np.empty(len(figure))
    lost = {gene: np.zeros(len(figure)) for gene in factors.genes}
    for part in parts:
        rest = np.setdiff1d(np.arange(len(figure)), part)
        forest = _forest(seed).fit(rows[rest], figure[rest])
        error[part] = (figure[part] - forest.predict(rows[part])) ** 2
        for gene in factors.genes:
            columns = factors.columns[gene]
            for _ in range(SHUFFLES):
                mixed = rows[part].copy()
                mixed[:, columns] = mixed[generator.permutation(len(part))][:, columns]
                worse = (figure[part] - forest.predict(mixed)) ** 2
                lost[gene][part] += (worse - error[part]) / SHUFFLES
    spread = figure.var() or 1.0
    copies = resamples(len(figure), resampled, seed)
    explained = mean_with_interval(1 - error / spread, copies)
    return explained, {
        gene: mean_with_interval(values / spread, copies) for gene, values in lost.items()
    }


def dependence(
    factors: Factors, rows: Floats, forests: list[Any], gene: str, seed: int
) -> list[tuple[str | float, _Interval]]:
    """Return what forests predict on average if all networks had one value of a gene.

    Args:
        rows: (n, c) factors of the networks.
        forests: of `fit_forests`.

    Returns:
        For each of at most `MOST_POINTS` values: the value, and the mean prediction with the ends
        of its 95 % interval over the forests.
    """
    columns = factors.columns[gene]
    sample = rows[np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS]]
    curve: list[tuple[str | float, _Interval]] = []
    for label, values in _values(factors, rows, gene):
        given = sample.copy()
        given[:, columns] = values
        means = np.array([forest.predict(given).mean() for forest in forests])
        low, high = np.percentile(means, [2.5, 97.5])
        curve.append((label, (float(means.mean()), float(low), float(high))))
    return curve


def fit_forests(rows: Floats, figure: Floats, seed: int) -> list[Any]:
    """Return `REFITS` forests of a figure (n,), each fitted on a resample of the networks."""
    generator = np.random.default_rng(seed)
    forests = []
    for number in range(REFITS):
        chosen = generator.integers(0, len(figure), len(figure))
        forests.append(_forest(seed + number).fit(rows[chosen], figure[chosen]))
    return forests


def _values(
    factors: Factors, rows: Floats, gene: str
) -> list[tuple[str | float, NDArray[np.float64]]]:
    """Return values of a gene as points of a curve, and its columns for each of them."""
    columns, labels = factors.columns[gene], factors.labels[gene]
    if labels:
        return [(text, np.eye(len(labels))[place]) for place, text in enumerate(labels)]
    points = np.unique(rows[:, columns[0]])
    if len(points) > MOST_POINTS:
        shares = np.linspace(0.02, 0.98, MOST_POINTS)
        points = np.unique(np.quantile(rows[:, columns[0]], shares))
    return [(round(float(value), 4), np.array([value])) for value in points]


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(
        TREES, min_samples_leaf=LEAST_LEAF, max_features=1 / 2, random_state=seed
    )
