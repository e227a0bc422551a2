"""The race: rungs, folds, failures, and what is there already."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from small_race import (
    Counting,
    Small,
    figures,
    race,
    race_task,
    ranked,
    replay,
    results,
    without_time,
)
from torch import Tensor, nn

from hytas.models import Network
from hytas.race import (
    DEFAULT_RANKING,
    RANKINGS,
    RaceProgress,
    RungEnd,
    race_scores,
    results_by_racer,
    size_rows,
    smaller_finalists,
)
from hytas.search import Evaluation, EvaluationStore, Training, pack_merits
from hytas.train import Recipe, recipes_of
from hytas.workers import OneByOne

FIVE = {"finalists": 5, "steps": 3, "workers": 1}


USUAL = RANKINGS[DEFAULT_RANKING]
HELD = len(race_task().folds[0][1])


@pytest.mark.parametrize("folds", [1, 3])
def test_the_best_on_validation_pixels_wins(folds: int, store: EvaluationStore) -> None:
    told: list[str] = []
    winner = race(race_task(folds), ranked(7), store, notify=told.append, **FIVE)
    done = results(store)
    early, late = (
        {item.key[0]: USUAL(item.figures) for item in done if item.steps == steps}
        for steps in (3, 6)
    )
    assert set(early) == {item.id for item in ranked(5)}
    assert set(late) == set(sorted(early, key=early.__getitem__)[-2:])
    assert len(store.trainings()) == 7 * folds
    assert {item.fold for item in store.trainings()} == set(range(folds))
    # The best over all folds, not of any one.
    assert winner.finalist.id == max(late, key=late.__getitem__)
    each = f", on {folds} folds" if folds > 1 else ""
    assert told[0] == f"race: 5 finalists, 3 steps each{each}"
    assert told[6] == f"race: 2 finalists, 6 steps each{each}"
    assert sum("accuracy 0." in line and "embed_dim" in line for line in told) == 7


def test_the_last_rung_is_no_longer_than_the_final_training(store: EvaluationStore) -> None:
    # Of 90 pixels 67 train: 5 steps of 16 an epoch.
    task = race_task(epochs=2)
    assert task.final_steps == 10
    race(task, ranked(5), store, **FIVE)
    assert [item.steps for item in store.trainings()] == [3] * 5 + [10] * 2


def keep(store: EvaluationStore, reached: dict[int, tuple[float, ...]]) -> None:
    """As if the finalists had been trained before: steps -> accuracy of each."""
    for steps, values in reached.items():
        for finalist, value in zip(ranked(len(values)), values, strict=True):
            store.add_training(Training(finalist.id, "plain", steps, 0, HELD, figures(value), 0.0))


def keep_sized(
    store: EvaluationStore, sizes: Sequence[int], wrong: Sequence[int], rungs: Sequence[int]
) -> list[Evaluation]:
    """Finalists of such sizes, as if each had so many pixels wrong after each of the rungs."""
    finalists = [
        replace(one, costs={"params": size})
        for one, size in zip(ranked(len(sizes)), sizes, strict=True)
    ]
    for steps in rungs:
        for finalist, errors in zip(finalists, wrong, strict=True):
            right = pack_merits(np.arange(HELD) >= errors)
            accuracy = figures(1 - errors / HELD)
            training = Training(finalist.id, "plain", steps, 0, HELD, accuracy, 0.0, right=right)
            store.add_training(training)
    return finalists


class Diverging(Small):
    """Its logits are no numbers."""

    def forward(self, patches: Tensor) -> Tensor:
        return super().forward(patches) * torch.nan


class ShortOfMemory(Small):
    """Needs more than there is."""

    def forward(self, patches: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def by_id(finalists: list[Evaluation]) -> dict[int, int]:
    """Width -> number of the evaluation."""
    return {item.architecture["embed_dim"]: item.id for item in finalists}


@pytest.mark.parametrize("folds", [1, 2])
def test_a_finalist_whose_training_fails_is_out(folds: int, store: EvaluationStore) -> None:
    # In one of its folds.
    fails = Counting(
        lambda built, width: Diverging(4) if width in (4, 6) and built.times[width] == 1 else None
    )
    winner = race(race_task(folds, fails), ranked(5), store, **FIVE)
    failed = {item.key[0]: item for item in results(store) if item.reason}
    assert set(failed) == {by_id(ranked(5))[width] for width in (4, 6)}
    assert all("diverged" in item.reason and not item.figures for item in failed.values())
    assert not set(failed) & {item.key[0] for item in results(store) if item.steps == 6}
    # What failed is in the store, too.
    assert replay(race_task(folds), ranked(5), store)[0] == winner


class Beside(OneByOne):
    """Workers that share the memory of this machine."""

    shares_memory = elsewhere = True


def test_what_lacks_memory_beside_others_is_trained_again_alone(
    store: EvaluationStore, tmp_path: Path
) -> None:
    short = Counting(
        lambda built, width: ShortOfMemory(4) if width == 4 and built.times[width] == 1 else None
    )
    winner = race(race_task(build=short), ranked(5), store, **{**FIVE, "workers": Beside()})
    assert not any(item.reason for item in store.trainings())
    with EvaluationStore(tmp_path / "roomy.sqlite") as other:
        assert race(race_task(), ranked(5), other, **FIVE) == winner
        assert sorted(without_time(other), key=str) == sorted(without_time(store), key=str)


def test_each_finalist_keeps_the_recipe_that_does_best(store: EvaluationStore) -> None:
    told: list[str] = []
    task = race_task(epochs=2, recipes=("plain", "full"))
    winner = race(task, ranked(5), store, notify=told.append, **FIVE)
    assert told[0] == "race: 5 finalists, 3 steps each"
    assert "race: 4 finalists, 3 steps each" in told[:8]
    done = results(store)
    early = {item.key: USUAL(item.figures) for item in done if item.steps == 3}
    by_plain = sorted(
        (early[number, "plain"], number) for number in {item.id for item in ranked(5)}
    )
    better = {number for _, number in by_plain[1:]}
    assert {number for number, name in early if name == "full"} == better
    best = {
        number: max(
            (name for other, name in early if other == number), key=lambda name: early[number, name]
        )
        for number, _ in early
    }
    late = {item.key for item in done if item.steps > 3}
    assert all(best[number] == recipe for number, recipe in late)
    assert winner.key in late
    assert {recipe.flips for recipe in task.recipes.values()} == {True, False}


def test_a_finalist_that_fails_by_the_first_recipe_is_trained_by_the_others(
    store: EvaluationStore,
) -> None:
    task = race_task(epochs=2, recipes=("plain", "full"))
    wild = {**task.recipes, "plain": replace(task.recipes["plain"], learning_rate=1e9)}
    winner = race(replace(task, recipes=wild), ranked(5), store, **FIVE)
    assert winner.recipe == "full"
    assert {item.key for item in results(store) if item.steps == 3} == {
        (item.id, name) for item in ranked(5) for name in ("plain", "full")
    }


class Projecting(Network):
    """A network that may have a projection of pixels."""

    def __init__(self, projects: bool) -> None:
        super().__init__()
        self.project = nn.Linear(4, 4) if projects else None

    @property
    def pixel_projection(self) -> nn.Linear | None:
        return self.project


def test_a_recipe_that_makes_no_difference_to_a_network_does_not_race() -> None:
    recipes = recipes_of(Recipe(), "full,plain,unwhitened")
    for projects, names in ((True, ["full", "plain", "unwhitened"]), (False, ["full", "plain"])):
        task = replace(race_task(build=lambda *_, p=projects: Projecting(p)), recipes=recipes)
        assert task.recipes_for({}) == names


def test_a_race_reports_its_trainings_and_the_end_of_each_rung(store: EvaluationStore) -> None:
    progress: list[RaceProgress] = []
    rungs: list[RungEnd] = []
    winner = race(
        race_task(), ranked(7), store, on_training=progress.append, on_rung=rungs.append, **FIVE
    )
    assert [one.rung for one in rungs] == list(range(1, rungs[0].rungs + 1))
    assert [one.steps for one in progress] == sorted(one.steps for one in progress)
    assert progress[-1].steps == progress[-1].all_steps
    assert progress[-1].trained == progress[-1].trainings
    assert rungs[-1].rows[0].racer == winner
    for before, after in pairwise(rungs):
        kept = {row.racer.finalist.id for row in before.rows if row.kept}
        assert kept == {row.racer.finalist.id for row in after.rows}


def test_the_last_rung_takes_folds_of_its_own(store: EvaluationStore) -> None:
    folds = race_task(4).folds
    task = replace(race_task(1, epochs=8), further=folds[1:])
    ends: list[RungEnd] = []
    progress: list[RaceProgress] = []
    race(task, ranked(5), store, on_rung=ends.append, on_training=progress.append, **FIVE)
    early, late = (end.steps for end in ends)
    assert late > early
    assert [end.folds for end in ends] == [1, 4]
    # The last rung has eight trainings to do, and progress does not jump where it begins.
    last = [one for one in progress if one.rung == 2]
    assert [(one.trained, one.trainings) for one in last] == [(n, 8) for n in range(9)]
    before = [one for one in progress if one.rung == 1]
    assert before[-1].steps == last[0].steps < last[-1].steps == last[-1].all_steps
    trained = Counter((item.steps, item.fold) for item in store.trainings())
    assert trained == {(early, 0): 5, **{(late, fold): 2 for fold in range(4)}}
    held = sum(len(held_out) for _, held_out in folds)
    last = [item for item in results(store) if item.steps == late and item.folds == 4]
    assert [len(item.right) for item in last] == [held, held]
    for item in last:
        assert item.right.mean() == pytest.approx(item.figures["accuracy"])


def test_a_last_rung_takes_all_folds_however_short_the_final_training_is(
    store: EvaluationStore, tmp_path: Path
) -> None:
    folds = race_task(4).folds
    task = replace(race_task(1, epochs=1), further=folds[1:])
    assert task.final_steps == 5
    ends: list[RungEnd] = []
    progress: list[RaceProgress] = []
    asked = {**FIVE, "steps": 5}
    winner = race(task, ranked(5), store, on_rung=ends.append, on_training=progress.append, **asked)
    assert [(end.steps, end.folds) for end in ends] == [(5, 1), (5, 4)]
    trained = Counter(item.fold for item in store.trainings())
    assert trained == {0: 5, 1: 2, 2: 2, 3: 2}
    assert progress[-1].steps == progress[-1].all_steps
    last = {item.key: item for item in results(store) if item.folds == 4}
    assert winner.key in last
    # If the time is over in the last rung, the best of the first one wins.
    with EvaluationStore(tmp_path / "over.sqlite") as other:
        found = race(task, ranked(5), other, until=lambda: len(other.trainings()) > 5, **asked)
        assert found == ends[0].rows[0].racer
        assert len(other.trainings()) == 6


def test_a_small_network_wins_if_it_is_preferred_and_as_good(store: EvaluationStore) -> None:
    sizes, wrong = (1000, 900, 400, 200, 90), (1, 9, 9, 2, 8)
    finalists = keep_sized(store, sizes, wrong, (3, 6))
    task = race_task()
    winner, ranks = replay(task, finalists, store)
    assert winner.finalist is finalists[0]
    assert replay(replace(task, prefer="small"), finalists, store)[0].finalist is finalists[3]
    # The last rung has the best of the smaller ones in place of a large one that is far behind.
    assert {one.finalist.id for one in ranks[-1].racers} == {finalists[n].id for n in (0, 3)}
    by_racer = results_by_racer(store.trainings())
    rows = size_rows(finalists, by_racer, race_scores(by_racer, USUAL), winner.key)
    lines = [line for _, line in smaller_finalists(rows)]
    assert lines[-2].startswith("200 parameters, 20.0% of the winner's")
    assert lines[-2].endswith("as good within chance")
    assert lines[-1].endswith("below it by more than chance")


@pytest.mark.parametrize("after", [0, 2, 5, 6, 100])
def test_a_race_whose_time_is_over_ends_with_the_best_so_far(
    after: int, store: EvaluationStore
) -> None:
    """A rung that is under way does not decide, but for the first one."""
    ends: list[RungEnd] = []

    def until() -> bool:
        return len(store.trainings()) >= after

    found = race(race_task(), ranked(7), store, on_rung=ends.append, until=until, **FIVE)
    trained = len(store.trainings())
    assert found == ends[-1].rows[0].racer
    if after < 100:
        assert trained == max(1, after)
        assert [len(end.rows) for end in ends] == [min(trained, 5)]
    else:
        assert len(ends) == ends[0].rungs
    # The race that goes on trains nothing more, and has the same winner.
    assert race(race_task(), ranked(7), store, until=lambda: True, **FIVE) == found
    assert len(store.trainings()) == trained


def test_the_small_one_wins_also_if_the_time_is_over(store: EvaluationStore) -> None:
    sizes, wrong = (1000, 900, 400, 200, 90), (1, 9, 9, 2, 8)
    finalists = keep_sized(store, sizes, wrong, (3,))
    small = replace(race_task(), prefer="small")
    assert replay(race_task(), finalists, store, over=True)[0].finalist is finalists[0]
    assert replay(small, finalists, store, over=True)[0].finalist is finalists[3]
