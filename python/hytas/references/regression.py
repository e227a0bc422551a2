"""Regressions of single spectra, each target by itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.models.regression import MOST_COMPONENTS, pls_matrices, within_one_error
from hytas.references.classical import FOLDS, predict_in_parts
from hytas.references.task import FitProgress, Predicted, Task

TargetFit = Callable[[NDArray[np.float64], NDArray[np.float64], Any], tuple[Any, dict[str, Any]]]
"""Scaled spectra (n, bands), targets (n,) and inner folds -> what predicts, and its choices."""
RIDGES = tuple(10.0**power for power in range(-4, 5))
COSTS = (1.0, 10.0, 100.0)
WIDTHS = (0.01, 0.1, 1.0)  # of gamma, over 1 / bands
TREES = 200


def plsr(task: Task, progress: FitProgress) -> Predicted:
    """Fit partial least squares; inner folds choose the components, by one standard error.

    Source: Wold et al., Chemometrics and Intelligent Laboratory Systems 58, 2001.
    """
    return _each(task, progress, _plsr)


def ridge_regression(task: Task, progress: FitProgress) -> Predicted:
    """Fit ridge regression; inner folds choose its strength."""
    from sklearn.linear_model import Ridge

    return _each(task, progress, lambda *data: _searched(Ridge(), {"alpha": RIDGES}, *data))


def svr(task: Task, progress: FitProgress) -> Predicted:
    """Fit support vector regression with an RBF kernel; inner folds choose C and gamma."""
    from sklearn.svm import SVR

    def fit(spectra: NDArray[np.float64], targets: NDArray[np.float64], folds: Any) -> Any:
        spread = float(targets.std()) or 1.0
        machine = SVR(epsilon=0.1 * spread, cache_size=500)
        grid = {
            "C": [spread * cost for cost in COSTS],
            "gamma": [width / spectra.shape[1] for width in WIDTHS],
        }
        return _searched(machine, grid, spectra, targets, folds)

    return _each(task, progress, fit)


def forest(task: Task, progress: FitProgress) -> Predicted:
    """Fit a random forest of 200 trees, a third of the bands at each split (Breiman, Machine
    Learning 45, 2001)."""
    from sklearn.ensemble import RandomForestRegressor

    def fit(spectra: NDArray[np.float64], targets: NDArray[np.float64], folds: Any) -> Any:
        trees = RandomForestRegressor(TREES, max_features=1 / 3, random_state=task.seed)
        return trees.fit(spectra, targets), {"trees": TREES}

    return _each(task, progress, fit)


def fcls(task: Task, progress: FitProgress) -> Predicted:
    """Unmix by fully constrained least squares, from endmembers that the training samples give.

    Source: Heinz and Chang, IEEE TGRS 39, 2001.
    """
    from scipy.optimize import nnls

    scaling = task.fit_scaling("common")
    spectra = task.spectra(task.train, scaling).astype(np.float64)
    shares = np.nan_to_num(task.targets)
    endmembers = np.linalg.lstsq(shares, spectra, rcond=None)[0]
    heavy = 1e3 * float(np.abs(endmembers).max())
    system = np.vstack([endmembers.T, np.full(len(endmembers), heavy)])

    def predict(values: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.stack([nnls(system, np.append(row, heavy))[0] for row in values])

    return Predicted(predict_in_parts(predict, task, scaling, progress))


def _each(task: Task, progress: FitProgress, fit: TargetFit) -> Predicted:
    """Fit a method to each target, on the samples that have it."""
    scaling = task.fit_scaling("standard")
    spectra = task.spectra(task.train, scaling).astype(np.float64)
    machines, details = [], []
    for at, column in enumerate(task.targets.T):
        progress("fit", at, len(task.targets.T))
        known = np.isfinite(column)
        folds = _folds(int(known.sum()), None if task.groups is None else task.groups[known])
        machine, choices = fit(spectra[known], column[known], folds)
        machines.append(machine)
        details.append(choices)

    def predict(values: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.stack([np.ravel(one.predict(values)) for one in machines], axis=1)

    chosen = {name: [one[name] for one in details] for name in details[0]}
    return Predicted(predict_in_parts(predict, task, scaling, progress), None, chosen)


def _folds(
    samples: int, groups: NDArray[np.int64] | None
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return inner folds; groups stay whole if there are two or more."""
    from sklearn.model_selection import GroupKFold, KFold

    every = np.arange(samples)
    if groups is None or (count := len(np.unique(groups))) < 2:
        return list(KFold(min(FOLDS, samples), shuffle=True, random_state=0).split(every))
    return list(GroupKFold(min(FOLDS, count)).split(every, groups=groups))


def _searched(
    machine: Any,
    grid: Mapping[str, Sequence[float]],
    spectra: NDArray[np.float64],
    targets: NDArray[np.float64],
    folds: Any,
) -> tuple[Any, dict[str, Any]]:
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(machine, grid, cv=folds, scoring="neg_mean_squared_error")
    return search.fit(spectra, targets), dict(search.best_params_)


def _plsr(
    spectra: NDArray[np.float64], targets: NDArray[np.float64], folds: Any
) -> tuple[Any, dict[str, Any]]:
    from sklearn.cross_decomposition import PLSRegression

    errors = np.zeros((MOST_COMPONENTS, len(targets)))
    for fitted, held_out in folds:
        seen = (spectra[held_out] - spectra[fitted].mean(axis=0)).T
        predicted = pls_matrices(spectra[fitted], targets[fitted]) @ seen + targets[fitted].mean()
        errors[:, held_out] = (predicted - targets[held_out]) ** 2
    components = within_one_error(errors) + 1
    return PLSRegression(components).fit(spectra, targets), {"components": components}
