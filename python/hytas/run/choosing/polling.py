"""Ask an SVM and a random forest for their votes in a race (`hytas.race.consensus`)."""

from dataclasses import replace

import numpy as np

from hytas.errors import InputError
from hytas.race import RaceTask
from hytas.references import CLASSICAL, ReferenceSettings, bounded_split, fit_method, title_of
from hytas.run.context import Run
from hytas.search import Ballot, EvaluationStore, pack_classes

MOST_TRAIN = 750
"""Training pixels of a fold; an SVM then takes at most about 20 s, by the square of the pixels."""


def poll(run: Run, task: RaceTask, store: EvaluationStore) -> None:
    """Fit each method once a fold, without the fold's validation pixels, and keep its ballots.

    Nothing is done where the race has no vote, or where the store holds the ballots. The fits take
    seconds, so they are done in this process, whatever workers the run has.

    Args:
        run: its race is about to begin, or goes on.
        task: of the race.
        store: of the run.
    """
    data = run.context.data
    if task.unlabelled is None or not data.scene.has_map:
        return
    ballots = store.ballots()
    if len(ballots) != len(CLASSICAL) * len(task.folds) or not all(map(task.counts, ballots)):
        run.report.line("SVM and random forest on spectra are fitted, to vote in the race")
        try:
            ballots = [
                _ballot(run, task, method, fold)
                for method in CLASSICAL
                for fold in range(len(task.folds))
            ]
        except InputError as error:  # training pixels of one class
            ballots = []
            run.report.line(f"SVM and random forest have no vote: {error}")
        store.keep_ballots(ballots)
    if ballots:
        run.report.line(_said(run, ballots))


def _ballot(run: Run, task: RaceTask, method: str, fold: int) -> Ballot:
    assert task.unlabelled is not None
    data, (learnt, held_out) = run.context.data, task.folds[fold]
    asked = np.sort(np.concatenate([held_out, task.unlabelled.pixels]))
    split = replace(data.split, train=learnt, validation=held_out[:0], test=asked)
    split = bounded_split(data.scene, split, MOST_TRAIN, len(asked))
    fit = fit_method(data.scene, split, ReferenceSettings.of(run.context.config), method)
    known, answers = (
        fit.predicted[np.searchsorted(asked, pixels)]
        for pixels in (held_out, task.unlabelled.pixels)
    )
    right = int((known == data.targets(held_out)).sum())
    return Ballot(method, fold, len(held_out), right, pack_classes(answers))


def _said(run: Run, ballots: list[Ballot]) -> str:
    pixels = sum(one.pixels for one in ballots) // len(CLASSICAL)
    figures = ", ".join(
        f"{title_of(name, run.context.data.scene)} "
        f"{sum(one.right for one in ballots if one.method == name) / pixels:.3f}"
        for name in CLASSICAL
    )
    return (
        f"OA on {pixels} validation pixels: {figures}; each votes, unless the best finalists are "
        "ahead of it by more than chance"
    )
