"""Fit an SVM and a random forest on the folds of a race: what finalists must beat."""

from collections.abc import Iterable
from dataclasses import replace

from hytas.errors import InputError
from hytas.race import RaceTask
from hytas.references import RACE_METHODS, Predicted, bounded_split, title_of
from hytas.run.context import Run
from hytas.run.fits import Wanted
from hytas.run.prepared import PreparedData
from hytas.search import EvaluationStore, MethodFold, pack_classes

MOST_TRAIN = 750
"""Training pixels of a fold; an SVM then takes at most about 20 s, by the square of the pixels."""


def begin_methods(run: Run, task: RaceTask, store: EvaluationStore) -> None:
    """Begin the fits of `record_methods`, to go on during the search; if not, do them now."""
    if not run.context.data.has_methods or _are_complete(store.methods(), task):
        return
    if not run.fits.begin(wanted for *_, wanted in _fits(run.context.data, task)):
        record_methods(run, task, store)


def record_methods(run: Run, task: RaceTask, store: EvaluationStore) -> None:
    """Fit each method once a fold, without the fold's validation pixels, and keep its classes.

    Their accuracy on validation pixels is reported before the race, to compare finalists with.
    Nothing is fitted where the store holds the fits. They take seconds, so those that were not
    begun are done in this process, whatever workers the run has.
    """
    if not run.context.data.has_methods:
        return
    kept = store.methods()
    if missing := not _are_complete(kept, task):
        run.report.line("SVM and random forest are fitted on the spectra of training pixels")
        fits, kept = _fits(run.context.data, task), []
        try:
            results = run.fits.results([wanted for *_, wanted in fits], here=True)
            for method, fold, _ in fits:
                run.report.pixels("SVM and random forest", len(kept), len(fits))
                kept.append(_judged(run.context.data, task, (method, fold), next(results)))
        except InputError as error:  # training pixels of one class
            kept = []
            run.report.line(f"no SVM and random forest: {error}")
        store.replace_methods(kept)
    for method in RACE_METHODS if kept else ():
        own = [one for one in kept if one.method == method]
        right, pixels = sum(one.right for one in own), sum(one.pixels for one in own)
        title = title_of(method, run.context.data.scene)
        if missing:
            run.report.line(f"OA of {title} on {pixels} validation pixels: {right / pixels:.3f}")
        run.report.reference(title, right / pixels, pixels)


def _are_complete(fits: Iterable[MethodFold], task: RaceTask) -> bool:
    fits = list(fits)
    return len(fits) == len(RACE_METHODS) * len(task.folds) and all(map(task.accepts, fits))


def _fits(data: PreparedData, task: RaceTask) -> list[tuple[str, int, Wanted]]:
    """Return method, fold, and the fit that predicts its validation pixels."""
    fits = []
    for method in RACE_METHODS:
        for fold, (learnt, held_out) in enumerate(task.folds):
            split = replace(data.split, train=learnt, validation=held_out[:0], test=held_out)
            split = bounded_split(data.scene, split, MOST_TRAIN, len(held_out))
            compared, _ = data.with_neighbours(held_out)
            wanted = Wanted(method, split, compared if len(compared) else None)
            fits.append((method, fold, wanted))
    return fits


def _judged(data: PreparedData, task: RaceTask, of: tuple[str, int], fit: Predicted) -> MethodFold:
    method, fold = of
    held_out = task.folds[fold][1]
    right = int((fit.predicted == data.targets(held_out)).sum())
    smoothed = b"" if fit.smoothed is None else pack_classes(fit.smoothed.argmax(axis=1))
    return MethodFold(method, fold, len(held_out), right, pack_classes(fit.predicted) + smoothed)
