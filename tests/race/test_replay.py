"""Races that are replayed on a table of learning curves."""

import sys
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from small_race import race, race_task, ranked

from hytas.lab.benchmark.curve_table import TABLE, TEST, CurveTable, FinalFigures, Snapshot
from hytas.lab.benchmark.replay import Plan, Replayed, replay, usual_plan
from hytas.race import RacePlan, Racer, RaceTask, Rung
from hytas.race.plan import PlanStep, Reply, Trial, TrialBatch, Winner
from hytas.search import Evaluation, EvaluationStore

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import ablation

FINALISTS, STEPS, NETWORKS = 5, 3, 7


def table_of(task: RaceTask, store: EvaluationStore) -> CurveTable:
    """The table of the trainings of a real race."""
    rungs = RacePlan(replace(task, finalists=FINALISTS, steps=STEPS), ranked(NETWORKS)).rungs
    before = {rung.steps: rung.before for rung in rungs}
    trainings = store.trainings()
    return CurveTable(
        "small",
        "none",
        {"folds": len(task.folds), "seed": task.seed, "ranking": task.ranking, "labels": 90}
        | {"finalists": FINALISTS, "steps": STEPS},
        [len(held_out) for _, held_out in task.all_folds],
        len(task.folds[0][0]),
        ranked(NETWORKS),
        {one.id: task.recipes_for(one.architecture) for one in ranked(NETWORKS)},
        [],
        task.recipes,
        [Snapshot(one, before[one.steps]) for one in trainings],
        {(one.id, one.recipe): {"members": ["network"]} for one in trainings},
    )


@pytest.mark.parametrize(("folds", "recipes"), [(1, ("plain",)), (2, ("plain", "full"))])
def test_a_replay_has_the_winner_and_the_steps_of_the_race(
    folds: int, recipes: tuple[str, ...], store: EvaluationStore, tmp_path: Path
) -> None:
    task = race_task(folds, recipes=recipes, epochs=2)
    winner = race(task, ranked(NETWORKS), store, finalists=FINALISTS, steps=STEPS, workers=1)
    table_of(task, store).save(tmp_path / "small.curves.gz")
    keys = {(one.id, one.recipe) for one in store.trainings()}
    figures = FinalFigures({key: {"shipped OA": 0.5 + (key == winner.key) / 4} for key in keys}, {})
    figures.save(tmp_path / "small.test.json")
    table = CurveTable.load(tmp_path / "small.curves.gz")
    test = FinalFigures.load(tmp_path / "small.test.json")
    longest = {}
    for one in sorted(store.trainings(), key=lambda one: one.steps):
        longest[one.id, one.recipe, one.fold] = one.steps
    expected = Replayed(winner, sum(longest.values()), 0.0)
    assert replay(usual_plan, table, test) == expected


def last_of_all(task: RaceTask, ranked: Sequence[Evaluation]) -> Generator[PlanStep, Reply, None]:
    """A plan of somebody else: train all networks for a length that no table has."""
    racers = [Racer(one, next(iter(task.recipes))) for one in ranked[:FINALISTS]]
    trials = [Trial(one, 0, Rung(len(ranked), 4, 4)) for one in racers]
    trainings, _ = yield TrialBatch(trials, racers, 0, 1)
    assert all(trainings[one.key].steps == 4 for one in trials)
    yield Winner(racers[-1])


def test_a_plan_of_a_user_is_replayed_on_the_nearest_lengths(store: EvaluationStore) -> None:
    task = race_task(epochs=2)
    winner = race(task, ranked(NETWORKS), store, finalists=FINALISTS, steps=STEPS, workers=1)
    table = table_of(task, store)
    figures = {key: {"shipped OA": 0.75 if key == winner.key else 0.5} for key in table.decided}
    replayed = replay(last_of_all, table, FinalFigures(figures, {}))
    chosen = ranked(NETWORKS)[FINALISTS - 1]
    regret = 0.0 if chosen.id == winner.finalist.id else 0.25
    assert replayed == Replayed(Racer(chosen, "plain"), 4 * FINALISTS, regret)


def test_each_rule_is_left_out_alone(store: EvaluationStore) -> None:
    task = race_task(epochs=20)
    race(task, ranked(NETWORKS), store, finalists=FINALISTS, steps=STEPS, workers=1)
    whole = table_of(task, store)
    table = replace(
        whole,
        candidates=[replace(one, scores={"dss": float(one.id)}) for one in whole.candidates],
        networks={number: [recipe] for number, recipe in whole.decided},
    )
    figures = {
        key: {"shipped OA": key[0] / 100, "shipped AA": key[0] / 100} for key in table.decided
    }
    tables = [
        ablation.SuiteTable(table, FinalFigures(figures, {"svm": {"raw OA": 0.1, "raw AA": 0.1}}))
    ]
    report = ablation.report_of(tables)
    assert list(report["rules"]) == list(ablation.RULES)
    assert report["rules"]["2 finalists in the last rung (1)"]["steps"] < 0
    assert report["rules"]["2 finalists in the last rung (4)"]["steps"] > 0
    assert all(rule.lines > 0 for rule in ablation.RULES.values() if rule.code)
    assert report["plans"]["best by proxy"]["regrets"] == {"small": 0.0}
    assert ablation.report_of(tables) == report  # all rules are in place again
    assert "| small |" in ablation.text_of(report)


def test_no_published_plan_is_ahead_on_the_published_tables() -> None:
    folder = Path(ablation.__file__).parent / "curves"
    paths = sorted(folder.glob(f"*{TABLE}"))
    tables = [
        ablation.SuiteTable(
            CurveTable.load(path),
            FinalFigures.load(path.with_name(path.name.removesuffix(TABLE) + TEST)),
        )
        for path in paths
    ]
    assert len(tables) >= 13

    def mean_regret(plans: Sequence[Plan]) -> float:
        return fmean(ablation.row_of(plans, tables).regrets.values())

    ours = mean_regret([usual_plan])
    assert ours < 1
    assert ours < min(map(mean_regret, ablation.PLANS.values()))
