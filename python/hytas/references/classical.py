"""Classifiers of single spectra."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from hytas.references.task import FitProgress, Predicted, Task

COSTS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
WIDTHS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)  # of gamma, over 1 / (bands * variance)
FOLDS = 5
# The choice of C and gamma takes 175 fits. Their time grows at least with the square of the pixels.
MOST_TO_CHOOSE_ON = 2000
TREES = 500
MOST_COMPONENTS = 20
BATCH = 4096


def svm(task: Task, progress: FitProgress) -> Predicted:
    """Fit a support vector machine with an RBF kernel to the spectra of single pixels.

    Cross-validation over five folds of the training pixels chooses C and gamma. Groups of a table
    stay whole. If there are more than about 2000 pixels, it uses a sample of each class. The final
    fit uses all training pixels.
    Source: Melgani & Bruzzone, IEEE TGRS 42, 2004, the field's classical reference method.
    """
    from sklearn.svm import SVC

    scaling = task.fit_scaling(None)
    spectra = task.spectra(task.train, scaling)
    unit = 1.0 / (spectra.shape[1] * (float(spectra.var()) or 1.0))  # all spectra may be equal
    generator = np.random.default_rng(task.seed)
    with _few_pixels_a_class():
        cost, gamma, score = _choose(spectra, task.targets, task.groups, unit, generator, progress)
        progress("fit", 0, 1)
        machine = SVC(C=cost, gamma=gamma, cache_size=500).fit(spectra, task.targets)
    details = {"C": cost, "gamma": gamma, "cross_validated_OA": score}
    return Predicted(predict_in_parts(machine.predict, task, scaling, progress), None, details)


def random_forest(task: Task, progress: FitProgress) -> Predicted:
    """Fit a random forest of 500 trees to the spectra of single pixels.

    Source: Breiman, Machine Learning 45, 2001. All other settings are scikit-learn's defaults.
    """
    from sklearn.ensemble import RandomForestClassifier

    scaling = task.fit_scaling(None)
    progress("fit", 0, 1)
    forest = RandomForestClassifier(n_estimators=TREES, random_state=task.seed)
    with _few_pixels_a_class():
        forest.fit(task.spectra(task.train, scaling), task.targets)
    probabilities_of_trained = predict_in_parts(forest.predict_proba, task, scaling, progress)
    probabilities = np.zeros((len(task.test), task.classes))
    probabilities[:, forest.classes_] = probabilities_of_trained
    predicted = forest.classes_[probabilities_of_trained.argmax(axis=1)].astype(np.int64)
    return Predicted(predicted, probabilities, {"trees": TREES})


def shrinkage_lda(task: Task, progress: FitProgress) -> Predicted:
    """Fit linear discriminant analysis with a shrunk covariance (`hytas.models.linear.lda`)."""
    return _linear(task, progress, "lda")


def logistic_regression(task: Task, progress: FitProgress) -> Predicted:
    """Fit softmax regression with a ridge (`hytas.models.linear.softmax_regression`)."""
    return _linear(task, progress, "softmax")


def _linear(task: Task, progress: FitProgress, fit: str) -> Predicted:
    from hytas.models.linear import FUNCTIONS

    scaling = task.fit_scaling(None)
    progress("fit", 0, 1)
    spectra = task.spectra(task.train, scaling).astype(np.float64)
    weight, bias = FUNCTIONS[fit].fit(spectra, task.targets, task.classes)

    def predict(spectra: NDArray[np.float32]) -> NDArray[np.float64]:
        chances: NDArray[np.float64] = softmax(spectra @ weight.T + bias, axis=1)
        return chances

    probabilities = predict_in_parts(predict, task, scaling, progress)
    return Predicted(probabilities.argmax(axis=1), probabilities)


def plsda(task: Task, progress: FitProgress) -> Predicted:
    """Fit partial least squares to the indicators of the classes; the largest response decides.

    Cross-validation over five folds of the training pixels chooses the number of components.
    Source: Barker & Rayens, Journal of Chemometrics 17, 2003.
    """
    from sklearn.cross_decomposition import PLSRegression

    scaling = task.fit_scaling(None)
    spectra = task.spectra(task.train, scaling).astype(np.float64)
    indicators = np.eye(task.classes)[task.targets]
    generator = np.random.default_rng(task.seed)
    fold = _fold_of(task.targets, task.groups, generator)
    if len(np.unique(fold)) < 2:  # a single group is left to train on
        fold = _folds(task.targets, generator)
    right = np.zeros(min(MOST_COMPONENTS, spectra.shape[1], len(spectra) - len(spectra) // FOLDS))
    for number in np.unique(fold):
        progress("choose the components", int(number), FOLDS)
        held_out = fold == number
        for at in range(len(right)):
            machine = PLSRegression(at + 1).fit(spectra[~held_out], indicators[~held_out])
            predicted = machine.predict(spectra[held_out]).argmax(axis=1)
            right[at] += (predicted == task.targets[held_out]).sum()
    components = int(right.argmax()) + 1
    progress("fit", 0, 1)
    machine = PLSRegression(components).fit(spectra, indicators)
    predicted = predict_in_parts(machine.predict, task, scaling, progress).argmax(axis=1)
    return Predicted(predicted, None, {"components": components})


@contextmanager
def _few_pixels_a_class() -> Iterator[None]:
    """Suppress scikit-learn's warning, at every fit, about classes of one or two pixels."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        yield


def _choose(
    spectra: NDArray[np.float32],
    targets: NDArray[np.int64],
    groups: NDArray[Any] | None,
    unit: float,
    generator: np.random.Generator,
    progress: FitProgress,
) -> tuple[float, float, float | None]:
    """Return C, gamma and their cross-validated accuracy; default values if there are no folds."""
    from sklearn.model_selection import PredefinedSplit, cross_val_predict
    from sklearn.svm import SVC

    if len(targets) > MOST_TO_CHOOSE_ON:
        kept = thinned(targets, MOST_TO_CHOOSE_ON / len(targets), generator)
        spectra, targets = spectra[kept], targets[kept]
        groups = None if groups is None else groups[kept]
    fold = _fold_of(targets, groups, generator)
    chosen = generator.permutation(len(targets))
    spectra, targets, fold = spectra[chosen], targets[chosen], fold[chosen]
    parts = [fold == number for number in range(FOLDS)]
    if any(not part.any() or len(np.unique(targets[~part])) < 2 for part in parts):
        return 100.0, unit, None
    best, total = (0.0, 0.0, -1.0), len(COSTS) * len(WIDTHS)
    for index, (width, cost) in enumerate((w, c) for w in WIDTHS for c in COSTS):
        progress("choose C and gamma", index, total)
        machine = SVC(C=cost, gamma=width * unit, cache_size=500)
        predicted = cross_val_predict(machine, spectra, targets, cv=PredefinedSplit(fold))
        share = float((predicted == targets).mean())
        if share > best[2]:
            best = (cost, width * unit, share)
    return best


def thinned(
    targets: NDArray[np.int64], share: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return indices of a share of each class, with at least one pixel for each fold."""
    parts = []
    for label in np.unique(targets):
        members = generator.permutation(np.flatnonzero(targets == label))
        parts.append(members[: max(FOLDS, math.ceil(share * len(members)))])
    return np.concatenate(parts)


def _fold_of(
    targets: NDArray[np.int64], groups: NDArray[Any] | None, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return the fold of each pixel; whole groups are dealt by the class of their first pixel."""
    if groups is None:
        return _folds(targets, generator)
    _, first, of_group = np.unique(groups, return_index=True, return_inverse=True)
    return _folds(targets[first], generator)[of_group]


def _folds(targets: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each pixel; every class is dealt evenly, beginning at a random fold."""
    fold = np.empty(len(targets), dtype=np.int64)
    for label in np.unique(targets):
        members = generator.permutation(np.flatnonzero(targets == label))
        fold[members] = (np.arange(len(members)) + generator.integers(FOLDS)) % FOLDS
    return fold


def predict_in_parts(predict: Any, task: Task, scaling: Any, progress: FitProgress) -> NDArray[Any]:
    """Return the predictions of the test pixels, some at a time."""
    parts = []
    for start in range(0, len(task.test), BATCH):
        progress("test", start, len(task.test))
        parts.append(predict(task.spectra(task.test[start : start + BATCH], scaling)))
    progress("test", len(task.test), len(task.test))
    predictions: NDArray[Any] = np.concatenate(parts)
    return predictions
