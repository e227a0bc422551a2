"""Fit an SVM and a random forest before the search: what finalists must beat, and their votes."""

from dataclasses import replace

import numpy as np

from hytas.errors import InputError
from hytas.race import RaceTask
from hytas.references import CLASSICAL, ReferenceSettings, bounded_split, fit_method, title_of
from hytas.run.context import Run
from hytas.search import EvaluationStore, MethodVote, pack_classes

MOST_TRAIN = 750
"""Training pixels of a fold; an SVM then takes at most about 20 s, by the square of the pixels."""


def record_votes(run: Run, task: RaceTask, store: EvaluationStore) -> None:
    """Fit each method once a fold, without the fold's validation pixels, and keep its votes.

    Their accuracy on validation pixels is reported before the search, to compare finalists with.
    Where the race has a vote (`hytas.race.consensus`), the votes take part in it. Nothing is
    fitted where the store holds the votes. The fits take seconds, so they are done in this
    process, whatever workers the run has.

    Args:
        run: that races, now or later.
        task: of the race.
        store: of the run.
    """
    if not run.context.data.polls:
        return
    votes = store.votes()
    if len(votes) != len(CLASSICAL) * len(task.folds) or not all(map(task.accepts, votes)):
        run.report.line("SVM and random forest are fitted on the spectra of training pixels")
        fits = [(method, fold) for method in CLASSICAL for fold in range(len(task.folds))]
        votes = []
        try:
            for method, fold in fits:
                run.report.pixels("SVM and random forest", len(votes), len(fits))
                votes.append(_vote(run, task, method, fold))
        except InputError as error:  # training pixels of one class
            votes = []
            run.report.line(f"no SVM and random forest: {error}")
        store.replace_votes(votes)
    for method in CLASSICAL if votes else ():
        own = [one for one in votes if one.method == method]
        right, pixels = sum(one.right for one in own), sum(one.pixels for one in own)
        title = title_of(method, run.context.data.scene)
        run.report.line(f"OA of {title} on {pixels} validation pixels: {right / pixels:.3f}")
        run.report.reference(title, right / pixels, pixels)


def _vote(run: Run, task: RaceTask, method: str, fold: int) -> MethodVote:
    none = np.empty(0, np.int64)
    unlabelled = none if task.unlabelled is None else task.unlabelled.pixels
    data, (learnt, held_out) = run.context.data, task.folds[fold]
    tested = np.sort(np.concatenate([held_out, unlabelled]))
    split = replace(data.split, train=learnt, validation=held_out[:0], test=tested)
    split = bounded_split(data.scene, split, MOST_TRAIN, len(tested))
    fit = fit_method(data.scene, split, ReferenceSettings.of(run.context.config), method)
    of_held_out, of_unlabelled = (
        fit.predicted[np.searchsorted(tested, pixels)] for pixels in (held_out, unlabelled)
    )
    right = int((of_held_out == data.targets(held_out)).sum())
    packed = pack_classes(of_unlabelled), pack_classes(of_held_out)
    return MethodVote(method, fold, len(held_out), right, *packed)
