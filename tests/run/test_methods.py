"""An SVM and a random forest beside the race of a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hytas.data import Scene
from hytas.race import RaceTask
from hytas.references import ReferenceSettings, fit_method
from hytas.run import RunConfig
from hytas.run.choosing.methods import record_methods
from hytas.run.choosing.searching import race_task
from hytas.run.context import Run, open_run
from hytas.run.fits import ReferenceFits
from hytas.run.progress import Report
from hytas.search import EvaluationStore
from hytas.train import Recipe
from small import fields
from tiny import SPACE
from told import Told

ASKED = RunConfig(
    space=SPACE,
    budget="2K..8K-params",
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


class References(Told):
    """Keeps the figures of the reference methods, too."""

    def __init__(self) -> None:
        super().__init__()
        self.references: dict[str, tuple[float, int]] = {}

    def reference(self, title: str, accuracy: float, pixels: int) -> None:
        """Keep the accuracy of a reference method."""
        self.references[title] = accuracy, pixels
        self.line(f"reference {title}")


def fitted(folder: Path, scene: Scene, report: Report | None = None) -> tuple[Run, RaceTask, Any]:
    """A run whose race is about to begin, its task, and the fits in its store."""
    with open_run(folder, ASKED, scene, "cpu", report or Report()) as run:
        task = race_task(run.context, run.store)
        with EvaluationStore(run.folder.evaluations) as store:
            record_methods(run, task, store)
            return run, task, store.methods()


def test_each_method_is_fitted_once_a_fold(tmp_path: Path) -> None:
    told = References()
    _, task, kept = fitted(tmp_path / "run", fields(), told)
    assert [(one.method, one.fold) for one in kept] == [
        (name, fold) for name in ("rf", "svm") for fold in range(len(task.folds))
    ]
    for one in kept:
        assert task.accepts(one)
        assert one.pixels == len(task.folds[one.fold][1])
        assert 0.8 * one.pixels < one.right <= one.pixels  # spectra tell these classes apart
    pixels = sum(len(held_out) for _, held_out in task.folds)
    right = sum(one.right for one in kept if one.method == "svm")
    assert told.references["SVM (RBF) on spectra"] == (right / pixels, pixels)


def test_a_fit_reads_the_labels_of_its_fold_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watching(given: Any, split: Any, *others: Any, **named: Any) -> Any:
        seen.append((set(split.train_and_validation.tolist()), split.test))
        return fit_method(given, split, *others, **named)

    monkeypatch.setattr("hytas.run.fits.fit_method", watching)
    scene = fields()
    run, task, kept = fitted(tmp_path / "run", scene)
    for (learnt, asked), (pixels, held_out) in zip(seen, 2 * list(task.folds), strict=True):
        assert learnt == set(pixels.tolist())
        assert not learnt & set(held_out.tolist())
        assert set(held_out.tolist()) == set(asked.tolist())
    # Without the labels of a fold, its fit gives the same answers.
    own, _ = task.folds[0]
    secret = np.setdiff1d(np.arange(scene.labels.size), own)
    labels = scene.labels.copy()
    labels.flat[secret] = labels.flat[secret] % 3 + 1
    data = replace(run.context.data, scene=replace(scene, labels=labels))
    fits = ReferenceFits(data.scene, ReferenceSettings.of(ASKED), "1", True)
    context = replace(run.context, data=data)
    poisoned = replace(run, context=context, fits=fits, report=Report())
    with EvaluationStore(tmp_path / "poisoned.sqlite") as store:
        record_methods(poisoned, task, store)
        again = store.methods()
    for one, other in zip(kept, again, strict=True):
        if one.fold == 0:
            assert other.held_out == one.held_out
            assert len(one.held_out) == 4 * one.pixels  # raw, and of a smoothed map
            assert other.right < one.right / 2  # the labels that count have changed
