"""Fit an SVM and a random forest for the search: what finalists must beat, and their votes."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hytas.errors import InputError
from hytas.race import RaceTask
from hytas.references import VOTING, Predicted, bounded_split, title_of
from hytas.run.context import Run
from hytas.run.fits import Wanted
from hytas.run.prepared import PreparedData
from hytas.search import EvaluationStore, MethodVote, pack_classes
from hytas.types import Pixels

MOST_TRAIN = 750
"""Training pixels of a fold; an SVM then takes at most about 20 s, by the square of the pixels."""


def begin_votes(run: Run, task: RaceTask, store: EvaluationStore) -> None:
    """Begin the fits of `record_votes`, to go on during the search; without other processes now."""
    if not run.context.data.votes or _are_complete(store.votes(), task):
        return
    if not run.fits.begin(wanted for *_, wanted in _fits(run.context.data, task)):
        record_votes(run, task, store)


def record_votes(run: Run, task: RaceTask, store: EvaluationStore) -> None:
    """Fit each method once a fold, without the fold's validation pixels, and keep its votes.

    Their accuracy on validation pixels is reported before the race, to compare finalists with.
    Where the race has a vote (`hytas.race.consensus`), the votes take part in it. Nothing is
    fitted where the store holds the votes. The fits take seconds, so those that were not begun are
    done in this process, whatever workers the run has.
    """
    if not run.context.data.votes:
        return
    votes = store.votes()
    if missing := not _are_complete(votes, task):
        run.report.line("SVM and random forest are fitted on the spectra of training pixels")
        fits, votes = _fits(run.context.data, task), []
        try:
            results = run.fits.results([wanted for *_, wanted in fits], here=True)
            for method, fold, _ in fits:
                run.report.pixels("SVM and random forest", len(votes), len(fits))
                votes.append(_vote(run.context.data, task, (method, fold), next(results)))
        except InputError as error:  # training pixels of one class
            votes = []
            run.report.line(f"no SVM and random forest: {error}")
        store.replace_votes(votes)
    for method in VOTING if votes else ():
        own = [one for one in votes if one.method == method]
        right, pixels = sum(one.right for one in own), sum(one.pixels for one in own)
        title = title_of(method, run.context.data.scene)
        if missing:
            run.report.line(f"OA of {title} on {pixels} validation pixels: {right / pixels:.3f}")
        run.report.reference(title, right / pixels, pixels)


def _are_complete(votes: Iterable[MethodVote], task: RaceTask) -> bool:
    votes = list(votes)
    return len(votes) == len(VOTING) * len(task.folds) and all(map(task.accepts, votes))


def _fits(data: PreparedData, task: RaceTask) -> list[tuple[str, int, Wanted]]:
    """Return method, fold, and the fit whose predictions are its vote."""
    fits = []
    for method in VOTING:
        for fold, (learnt, held_out) in enumerate(task.folds):
            tested = np.sort(np.concatenate([held_out, _unlabelled(task)]))
            split = replace(data.split, train=learnt, validation=held_out[:0], test=tested)
            split = bounded_split(data.scene, split, MOST_TRAIN, len(tested))
            compared, _ = data.with_neighbours(held_out)
            wanted = Wanted(method, split, compared if len(compared) else None)
            fits.append((method, fold, wanted))
    return fits


def _unlabelled(task: RaceTask) -> Pixels:
    return np.empty(0, np.int64) if task.unlabelled is None else task.unlabelled


def _vote(data: PreparedData, task: RaceTask, of: tuple[str, int], fit: Predicted) -> MethodVote:
    method, fold = of
    unlabelled, held_out = _unlabelled(task), task.folds[fold][1]
    tested = np.sort(np.concatenate([held_out, unlabelled]))
    of_held_out, of_unlabelled = (
        fit.predicted[np.searchsorted(tested, pixels)] for pixels in (held_out, unlabelled)
    )
    right = int((of_held_out == data.targets(held_out)).sum())
    smoothed = b"" if fit.smoothed is None else pack_classes(fit.smoothed.argmax(axis=1))
    packed = pack_classes(of_unlabelled), pack_classes(of_held_out) + smoothed
    return MethodVote(method, fold, len(held_out), right, *packed)
