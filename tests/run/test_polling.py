"""Votes of an SVM and a random forest in the race of a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hytas.data import Scene, scene_from_arrays
from hytas.errors import InputError
from hytas.race import RaceTask
from hytas.run import RunConfig
from hytas.run.choosing import polling
from hytas.run.choosing.polling import poll
from hytas.run.choosing.searching import race_task
from hytas.run.context import Run, open_run
from hytas.run.progress import Silent
from hytas.run.stages import CHOOSING, run_stages
from hytas.search import Ballot, EvaluationStore, unpack_classes
from hytas.train import Recipe

ASKED = RunConfig(
    space="hytas",
    budget="30K..60K-params",
    proxy="params",
    population=6,
    generations=2,
    finalists=3,
    race_steps=3,
    patch_size=3,
    split="blocks",
    train_per_class=20,
    recipe=Recipe(epochs=1, batch_size=16),
)


def fields(seed: int = 3, classes: int = 3) -> Scene:
    """Classes in small fields all over the scene, which spectra tell apart."""
    generator = np.random.default_rng(seed)
    labels = np.kron(generator.integers(1, classes + 1, (12, 12)), np.ones((5, 5), np.int64))
    cube = generator.normal(labels[..., None], 0.5, (60, 60, 9)).astype(np.float32)
    return scene_from_arrays(cube, labels, name="fields")


class Told(Silent):
    """Keeps the lines of a run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        """Keep a line."""
        self.lines.append(text)


def polled(folder: Path, scene: Scene, report: Silent | None = None) -> tuple[Run, RaceTask, Any]:
    """A run whose race is about to begin, its task, and the ballots in its store."""
    with open_run(folder, ASKED, scene, "cpu", report or Silent()) as run:
        task = race_task(run.context)
        with EvaluationStore(run.folder.evaluations) as store:
            poll(run, task, store)
            return run, task, store.ballots()


def test_each_method_says_something_of_each_fold_and_of_the_pixels_of_the_vote(
    tmp_path: Path,
) -> None:
    told = Told()
    run, task, ballots = polled(tmp_path / "run", fields(), told)
    assert [(one.method, one.fold) for one in ballots] == [
        (name, fold) for name in ("rf", "svm") for fold in range(len(task.folds))
    ]
    assert task.unlabelled is not None
    truth = run.context.data.targets(task.unlabelled.pixels)
    for one in ballots:
        assert task.counts(one)
        assert one.pixels == len(task.folds[one.fold][1])
        assert 0.8 * one.pixels < one.right <= one.pixels  # spectra tell these classes apart
        # In the order of the pixels that racers are asked.
        assert np.mean(unpack_classes(one.answers) == truth) > 0.8
    (line,) = [line for line in told.lines if "they vote, too" in line]
    pixels = sum(len(held_out) for _, held_out in task.folds)
    right = sum(one.right for one in ballots if one.method == "svm")
    assert line.startswith(
        f"OA on {pixels} validation pixels: SVM (RBF) on spectra {right / pixels:.3f}"
    )


def test_no_label_that_a_race_must_not_read_is_read(tmp_path: Path) -> None:
    scene = fields()
    run, _, ballots = polled(tmp_path / "run", scene)
    secret = np.setdiff1d(np.arange(scene.labels.size), run.context.data.split.learnable)
    labels = scene.labels.copy()
    labels.flat[secret] = labels.flat[secret] % 3 + 1
    context = replace(
        run.context, data=replace(run.context.data, scene=replace(scene, labels=labels))
    )
    poisoned = replace(run, context=context)
    with EvaluationStore(tmp_path / "other.sqlite") as store:
        poll(poisoned, race_task(context), store)
        assert store.ballots() == ballots


def test_what_was_asked_once_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, task, ballots = polled(tmp_path / "run", fields())

    def refusing(*_: object) -> None:
        raise AssertionError

    with EvaluationStore(run.folder.evaluations) as store:
        with monkeypatch.context() as patch:
            patch.setattr(polling, "fit_method", refusing)
            poll(run, task, store)
        # Ballots of other folds are cast anew, and those of folds that are gone do not count.
        other = replace(ballots[0], pixels=ballots[0].pixels + 1)
        gone = replace(ballots[0], fold=len(task.folds))
        store.add_ballots([other, gone])
        poll(run, task, store)
        assert [one for one in store.ballots() if task.counts(one)] == ballots


def test_methods_that_cannot_be_fitted_do_not_end_the_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object) -> None:
        raise InputError("training pixels: of one class only")

    monkeypatch.setattr(polling, "fit_method", refusing)
    told = Told()
    _, _, ballots = polled(tmp_path / "run", fields(), told)
    assert ballots == []
    assert told.lines[-1].startswith("SVM and random forest have no vote: training pixels: of one")


def test_where_nobody_votes_nobody_is_asked(tmp_path: Path) -> None:
    with open_run(tmp_path / "run", ASKED, fields(), "cpu", Silent()) as run:
        task = replace(race_task(run.context), unlabelled=None)
        with EvaluationStore(run.folder.evaluations) as store:
            poll(run, task, store)
            assert store.ballots() == []
    assert not task.counts(Ballot("svm", 0, len(task.folds[0][1]), 1, b""))


def test_the_race_of_a_run_asks_before_its_first_rung(tmp_path: Path) -> None:
    told = Told()
    with open_run(tmp_path / "run", ASKED, fields(), "cpu", told) as run:
        run_stages(CHOOSING, run)
        with EvaluationStore(run.folder.evaluations, read_only=True) as store:
            assert {one.method for one in store.ballots()} == {"svm", "rf"}
    asked, raced = (
        next(at for at, line in enumerate(told.lines) if text in line)
        for text in ("they vote, too", "race: 3 finalists")
    )
    assert asked < raced
