"""Classifiers of single spectra."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.references.task import Fit, Progress, Task

COSTS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
WIDTHS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)  # of gamma, over 1 / (bands * variance)
FOLDS = 5
# Choosing C and gamma takes 175 fits, whose time grows with the square of the pixels and more.
MOST_TO_CHOOSE_ON = 2000
TREES = 500
BATCH = 4096


def svm(task: Task, progress: Progress) -> Fit:
    """Support vector machine with an RBF kernel, on the spectrum of the pixel alone.

    C and gamma are chosen by cross-validation over five folds of the training pixels (of some 2000,
    drawn class by class, where there are more), then it is fitted on them all.
    Source: Melgani & Bruzzone, IEEE TGRS 42, 2004, the field's classical reference method.
    """
    from sklearn.svm import SVC

    scaling = task.fit_scaling(None)
    spectra = task.spectra(task.train, scaling)
    unit = 1.0 / (spectra.shape[1] * float(spectra.var()))
    generator = np.random.default_rng(task.seed)
    with _few_pixels_a_class():
        cost, gamma, score = _choose(spectra, task.targets, unit, generator, progress)
        progress("fit", 0, 1)
        machine = SVC(C=cost, gamma=gamma, cache_size=500).fit(spectra, task.targets)
    details = {"C": cost, "gamma": gamma, "cross_validated_OA": score}
    return Fit(_predict(machine.predict, task, scaling, progress), None, details)


def random_forest(task: Task, progress: Progress) -> Fit:
    """Random forest of 500 trees, on the spectrum of the pixel alone.

    Source: Breiman, Machine Learning 45, 2001; scikit-learn's defaults but for the trees' number.
    """
    from sklearn.ensemble import RandomForestClassifier

    scaling = task.fit_scaling(None)
    progress("fit", 0, 1)
    forest = RandomForestClassifier(n_estimators=TREES, random_state=task.seed)
    with _few_pixels_a_class():
        forest.fit(task.spectra(task.train, scaling), task.targets)
    known = _predict(forest.predict_proba, task, scaling, progress)
    probabilities = np.zeros((len(task.test), task.classes))
    probabilities[:, forest.classes_] = known
    predicted = forest.classes_[known.argmax(axis=1)].astype(np.int64)
    return Fit(predicted, probabilities, {"trees": TREES})


@contextmanager
def _few_pixels_a_class() -> Iterator[None]:
    """Without scikit-learn's warning at every fit to classes of a pixel or two."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        yield


def _choose(
    spectra: NDArray[np.float32],
    targets: NDArray[np.int64],
    unit: float,
    generator: np.random.Generator,
    progress: Progress,
) -> tuple[float, float, float | None]:
    """C, gamma and their cross-validated accuracy; the usual ones where folds cannot be made."""
    from sklearn.svm import SVC

    if len(targets) > MOST_TO_CHOOSE_ON:
        kept = _thinned(targets, MOST_TO_CHOOSE_ON / len(targets), generator)
        spectra, targets = spectra[kept], targets[kept]
    fold = _folds(targets, generator)
    chosen = generator.permutation(len(targets))
    spectra, targets, fold = spectra[chosen], targets[chosen], fold[chosen]
    parts = [fold == number for number in range(FOLDS)]
    if any(not part.any() or len(np.unique(targets[~part])) < 2 for part in parts):
        return 100.0, unit, None
    best, total = (0.0, 0.0, -1.0), len(COSTS) * len(WIDTHS)
    for index, (width, cost) in enumerate((w, c) for w in WIDTHS for c in COSTS):
        progress("choose C and gamma", index, total)
        machine = SVC(C=cost, gamma=width * unit, cache_size=500)
        right = sum(
            int(
                (
                    machine.fit(spectra[~part], targets[~part]).predict(spectra[part])
                    == targets[part]
                ).sum()
            )
            for part in parts
        )
        if right / len(targets) > best[2]:
            best = (cost, width * unit, right / len(targets))
    return best


def _thinned(
    targets: NDArray[np.int64], share: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Indices of a share of each class: at least as many of its pixels as there are folds."""
    parts = []
    for label in np.unique(targets):
        members = generator.permutation(np.flatnonzero(targets == label))
        parts.append(members[: max(FOLDS, math.ceil(share * len(members)))])
    return np.concatenate(parts)


def _folds(targets: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Number of the fold of each pixel: every class is dealt out evenly, from a random fold on."""
    fold = np.empty(len(targets), dtype=np.int64)
    for label in np.unique(targets):
        members = generator.permutation(np.flatnonzero(targets == label))
        fold[members] = (np.arange(len(members)) + generator.integers(FOLDS)) % FOLDS
    return fold


def _predict(predict: Any, task: Task, scaling: Any, progress: Progress) -> NDArray[Any]:
    """What `predict` says of the test pixels, some at a time."""
    parts = []
    for start in range(0, len(task.test), BATCH):
        progress("test", start, len(task.test))
        parts.append(predict(task.spectra(task.test[start : start + BATCH], scaling)))
    progress("test", len(task.test), len(task.test))
    found: NDArray[Any] = np.concatenate(parts)
    return found
