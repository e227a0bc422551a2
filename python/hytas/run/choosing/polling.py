"""Ask an SVM and a random forest for their votes in a race (`hytas.race.consensus`)."""

import numpy as np

from hytas.errors import InputError
from hytas.race import RaceTask
from hytas.references import fit_method, title_of
from hytas.run.classical import CLASSICAL, fold_of, open_fits
from hytas.run.context import Run
from hytas.search import Ballot, EvaluationStore, pack_classes


def poll(run: Run, task: RaceTask, store: EvaluationStore) -> None:
    """Fit the methods as racers are trained, without each fold, and keep their ballots.

    Nothing is done where the race has no vote, and nothing twice.

    Args:
        run: its race is about to begin, or goes on.
        task: of the race.
        store: of the run.
    """
    data = run.context.data
    if task.unlabelled is None or not data.scene.has_map:
        return
    ballots = [ballot for ballot in store.ballots() if task.counts(ballot)]
    if len(ballots) < len(CLASSICAL) * len(task.folds):
        try:
            ballots = _ask(run, task)
        except InputError as error:  # training pixels of one class
            run.report.line(f"SVM and random forest have no vote: {error}")
            return
        store.add_ballots(ballots)
    pixels = sum(len(held_out) for _, held_out in task.folds)
    found = " and ".join(
        f"{title_of(name, data.scene)} "
        f"{sum(one.right for one in ballots if one.method == name) / pixels:.3f}"
        for name in CLASSICAL
    )
    run.report.line(
        f"OA on {pixels} validation pixels: {found}; they vote, too, while the race's best are not "
        "ahead by more than chance"
    )


def _ask(run: Run, task: RaceTask) -> list[Ballot]:
    assert task.unlabelled is not None
    data, blind = run.context.data, task.unlabelled.pixels
    asked = [(name, number) for number in range(len(task.folds)) for name in CLASSICAL]
    ballots = []
    with open_fits(run) as fits:
        splits = [
            fold_of(run, learnt, np.concatenate([held_out, blind]))
            for learnt, held_out in task.folds
        ]
        found = fits(fit_method, [(name, splits[number]) for name, number in asked])
        for (name, number), fit in zip(asked, found, strict=True):
            held_out = task.folds[number][1]
            known, answers = np.split(fit.predicted, [len(held_out)])
            right = int((known == data.targets(held_out)).sum())
            ballots.append(Ballot(name, number, len(held_out), right, pack_classes(answers)))
    return ballots
