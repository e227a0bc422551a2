"""The race as a run has it: its pixels, its length, its winner, and what it must not read."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from without_references import run_pipeline

from hytas.data import Scene, scene_from_arrays
from hytas.decide.decisions import Conditions, decide
from hytas.job import choose, train_winner
from hytas.models import build_network
from hytas.race import (
    DEFAULT_RANKING,
    ENOUGH_PIXELS,
    RANKINGS,
    Racer,
    RaceTask,
    RungResult,
    best_first,
    race_scores,
    rung_results,
)
from hytas.run import SILENT, RunConfig, RunFolder
from hytas.run.choosing.searching import (
    check_search,
    race_task,
    ranked_evaluations,
)
from hytas.run.context import RunContext, open_run, prepare
from hytas.run.delivering.reporting import run_facts
from hytas.run.final.fits import observed
from hytas.run.folder import write_json
from hytas.run.progress import Report
from hytas.run.weights import load_weights
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.store import Store
from hytas.train import Recipe, logits_of
from refusals import refuses
from small import fields
from tiny import SPACE

RACE = RunConfig(
    space=SPACE,
    budget="2K..8K-params",
    proxy="params",
    population=6,
    generations=2,
    finalists=5,
    race_steps=3,
    patch_size=3,
    validation_fraction=0.45,  # more than 60 pixels: one fold
    recipe=Recipe(epochs=0, batch_size=16),
)

CPU = torch.device("cpu")


def task_in(context: RunContext) -> RaceTask:
    """Return the race of a run that keeps no training."""
    return race_task(context, Store(Path(), context.source))


FEW = replace(RACE, validation_fraction=0.2)


def fixed_scene(poison: int = 0) -> Scene:
    """Three classes with a fixed split; `poison` shifts the labels of the test pixels."""
    generator = np.random.default_rng(1)
    labels = np.repeat(np.arange(1, 4), 12)[None].repeat(12, 0)
    cube = generator.normal(labels[..., None], 0.8, (12, 36, 9)).astype(np.float32)
    is_train = np.zeros(labels.shape, bool)
    is_train[:, ::3] = True
    changed = np.where(is_train, labels, (labels - 1 + poison) % 3 + 1)
    scene = scene_from_arrays(cube, changed, name="stripes")
    train, test = (np.where(part, scene.labels, 0) for part in (is_train, ~is_train))
    return replace(scene, train=train, test=test)


def kept(folder: Path) -> tuple[list[Evaluation], list[Training]]:
    """The evaluations and the trainings of a run."""
    with EvaluationStore(folder / "evaluations.sqlite") as store:
        return store.evaluations(), store.trainings()


def without_time(items: list[Training]) -> list[Training]:
    return [replace(item, seconds=0.0) for item in items]


class Stopping(Report):
    """Ends the run at the line that `at` names."""

    def __init__(self, at: Callable[[str], bool]) -> None:
        self.at = at

    def line(self, text: str) -> None:
        """Stop, as Ctrl-C would."""
        if self.at(text):
            raise KeyboardInterrupt


def test_a_run_ends_with_the_winner_of_its_race_also_if_stopped(tmp_path: Path) -> None:
    scene = fixed_scene()
    outcome = run_pipeline(RACE, scene, tmp_path / "whole", device="cpu")
    evaluations, trainings = kept(tmp_path / "whole")
    rungs: dict[tuple[int, str], list[RungResult]] = {}
    named = {item.id: item for item in evaluations}
    for result in rung_results(trainings):
        if named[result.key[0]].architecture["space"] != "linear":
            rungs.setdefault(result.key, []).append(result)
    last = [
        Racer(named[number], recipe)
        for (number, recipe), results in rungs.items()
        if any(result.steps == 6 for result in results)
    ]
    assert len(rungs) == 5 + 4  # full, and plain of the better: this space has nothing to whiten
    assert len(last) == 2  # none of a smaller size class is ahead of these
    winner = best_first(last, race_scores(rungs, RANKINGS[DEFAULT_RANKING]))[0]
    assert outcome.architecture == winner.finalist.architecture
    chosen = json.loads((tmp_path / "whole" / "recipe.json").read_text())
    assert chosen == {"preset": winner.recipe}
    assert not (tmp_path / "whole" / "race").exists()
    for preset, recipe in RACE.recipes.items():  # the report shows the settings of the winner's
        write_json(tmp_path / "whole" / "recipe.json", {"preset": preset})
        shown = run_facts(RunFolder(tmp_path / "whole")).config["recipe"]
        assert (shown["flips"], shown["mixup"]) == (recipe.flips, recipe.mixup)

    stop = Stopping(lambda text: text.startswith("race: 2 finalists"))
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(RACE, scene, tmp_path / "stopped", device="cpu", report=stop)
    before = kept(tmp_path / "stopped")[1]
    assert {item.steps for item in before} == {3}
    run_pipeline(RACE, scene, tmp_path / "stopped", device="cpu")
    after = kept(tmp_path / "stopped")[1]
    assert [item for item in after if item.steps == 3] == before  # their seconds, too
    assert without_time(after) == without_time(trainings)
    names = [tmp_path / name / "architecture.json" for name in ("whole", "stopped")]
    assert names[0].read_bytes() == names[1].read_bytes()


def test_few_pixels_are_validated_in_folds() -> None:
    context = prepare(FEW, fixed_scene(), CPU)
    task = task_in(context)
    split = context.data.split
    assert 1 < len(task.folds) == math.ceil(ENOUGH_PIXELS / len(split.validation)) < 5
    np.testing.assert_array_equal(task.folds[0][0], split.train)
    np.testing.assert_array_equal(task.folds[0][1], split.validation)
    for learnt, validation in task.folds:
        np.testing.assert_array_equal(np.union1d(learnt, validation), split.train_and_validation)
    assert not set(split.test) & set(context.source.known.pixels)


def test_where_test_pixels_lie_apart_a_race_judges_on_pixels_that_lie_apart() -> None:
    settings = replace(RACE, split="blocks", train_per_class=60, patch_size=3)
    context = prepare(settings, fields(0.8), CPU)
    folds, split, width = task_in(context).folds, context.data.split, context.data.scene.width
    assert len(folds) > 1
    held = np.concatenate([held_out for _, held_out in folds])
    assert len(set(held)) == len(held) >= ENOUGH_PIXELS
    assert not set(split.test) & {*held, *np.concatenate([learnt for learnt, _ in folds])}
    for learnt, held_out in folds:
        rows, columns = (
            np.abs(np.subtract.outer(*places))
            for places in zip(np.divmod(learnt, width), np.divmod(held_out, width), strict=True)
        )
        assert np.maximum(rows, columns).min() > 1  # no patch of one holds one of the others


def test_pixels_of_a_race_are_those_of_the_run() -> None:
    context = prepare(FEW, fixed_scene(), CPU)
    chosen = task_in(context).folds[-1][1]
    expected, given = context.data.labelled(chosen), context.source.labelled(chosen)
    sent = context.source.packed().labelled(chosen)
    for found in (given, sent):
        np.testing.assert_array_equal(found.patches(found.pixels), expected.patches(chosen))
        np.testing.assert_array_equal(found.targets, expected.targets)
        np.testing.assert_array_equal(found.dark, expected.dark)
        assert found.classes == expected.classes


def test_labels_of_test_pixels_change_nothing(tmp_path: Path) -> None:
    """From the search to the trained weights; what follows reads the weights."""
    asked = replace(RACE, proxy="snip,naswot,params", finalists=3, race_steps=2).with_epochs(1)
    found, truth = [], []
    for poison in (0, 1):
        folder = tmp_path / str(poison)
        with open_run(folder, asked, fixed_scene(poison), "cpu", SILENT) as run:
            choose(run)
            train_winner(run)
        evaluations, trainings = kept(folder)
        scores = [item.scores for item in evaluations]
        assert all(set(row) == {"snip", "naswot", "params"} for row in scores)
        model, data = load_weights(run.folder.weights), run.context.data
        # The card names the scene by a fingerprint, which is of all its labels.
        card = replace(model.card, learnt_from=())
        weights = {name: value.tolist() for name, value in model.network.state_dict().items()}
        facts = run_facts(run.folder, shape=data.shape)
        ladder = facts.sizes, facts.smaller
        made = (run.folder.architecture.read_text(), weights, card, model.training, ladder)
        found.append((scores, without_time(trainings), made))
        truth.append(data.targets(data.split.test))
    assert found[0] == found[1]
    assert (truth[0] != truth[1]).all()
    assert max(training.fold for training in trainings) > 0  # the last rung takes all folds
    assert found[0][2][-1][0]


def test_a_small_network_is_preferred_among_those_that_race() -> None:
    scene = fixed_scene()
    for changed in ({"finalists": 1}, {"finalists": None, "validation_fraction": 0.0}):
        context = prepare(replace(RACE, prefer="small", **changed), scene, CPU)
        with refuses("prefer", "small", "chooses among finalists whose sizes a race compares"):
            check_search(context)
    check_search(prepare(replace(RACE, prefer="small"), scene, CPU))


def test_in_the_last_rung_every_labelled_pixel_validates_once() -> None:
    context = prepare(FEW, fixed_scene(), CPU)
    task, split = task_in(context), context.data.split
    assert len(task.folds) < len(task.all_folds) == 5
    held = np.concatenate([held_out for _, held_out in task.all_folds])
    assert len(set(held)) == len(held) > 0.9 * len(split.train_and_validation)
    for learnt, validation in task.further:
        np.testing.assert_array_equal(np.union1d(learnt, validation), split.train_and_validation)
    # Beyond a guard band the folds are what they are.
    apart = prepare(replace(RACE, split="blocks", train_per_class=60), fields(0.8), CPU)
    assert not task_in(apart).further


def test_labels_of_test_pixels_change_no_confidence() -> None:
    """Networks are asked about test pixels, whose labels nobody reads."""
    asked, scene = replace(RACE, split="blocks", train_per_class=60), fields(0.8)
    split = prepare(asked, scene, CPU).data.split
    poisoned = scene.labels.copy()
    poisoned.flat[split.test] = poisoned.flat[split.test] % 3 + 1
    found = []
    for labels in (scene.labels, poisoned):
        context = prepare(asked, replace(scene, labels=labels), CPU, split)
        data, sample = context.data, context.data.unlabelled_sample(0)
        assert context.feasible is not None
        assert sample is not None
        records = []
        for number, (trained, held_out) in enumerate(task_in(context).folds[:2]):
            genes = context.feasible.unrank(0)
            network = build_network(genes, data.shape, seed=number)
            record = observed(network, data, trained, held_out, CPU)
            known = np.eye(3, dtype=np.float32)[record.targets]  # it would be one of chance
            seen = logits_of(network, sample, CPU)
            shown = {"unlabelled": sample.pixels, "unlabelled_logits": seen}
            records.append(replace(record, logits=known, **shown))
        decisions = decide(records, data.smoother, Conditions(no_self_training="none"))
        found.append(decisions._replace(unknown=None))  # which has another test
    assert found[0] == found[1]
    assert found[0].calibration.agreement is not None
    assert np.isin(split.test, records[0].unlabelled).any()


@pytest.mark.parametrize(("proxy", "first"), [("width", 0), ("params", 1)])
def test_width_ranks_across_depths_and_other_proxies_in_each(
    proxy: str, first: int, tmp_path: Path
) -> None:
    """By most proxies deeper networks have larger scores, whether they are better or not."""
    context = prepare(replace(RACE, proxy=proxy), fixed_scene(), CPU)
    rows = [(1, 3.0), (2, 2.0), (2, 1.0)]  # the wide one has one layer
    with EvaluationStore(tmp_path / "evaluations.sqlite") as store:
        store.add(
            Evaluation(n, 0, {"space": "s", "depth": depth}, {"params": 9}, {proxy: value}, {}, 0.0)
            for n, (depth, value) in enumerate(rows)
        )
        assert ranked_evaluations(context, store)[0].id == first
