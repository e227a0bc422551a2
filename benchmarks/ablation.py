"""What each rule of a race is worth: races replayed on tables of learning curves without the rule.

    python benchmarks/ablation.py curves --out ablation.json

`curves` is the folder of `hytas benchmark curves`. Each rule is left out alone. A rule stays if it
lowers the mean regret by .2 points and raises that of no task by 2. Then the tasks of each sensor
are left out in turn: the rules that stay by the other tasks make a plan, which is replayed on those
that were left out. Published plans are replayed next to ours; those with random numbers ten times.

Regret is by how much the map of the winner is below the best map of the task's networks, in points
of OA, as it ships. Steps are optimiser steps of all trainings.
"""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from pkgutil import resolve_name
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

import click

from hytas.lab.benchmark.curve_table import TABLE, TEST, CurveTable, FinalFigures
from hytas.lab.benchmark.replay import Plan, replay, usual_plan
from hytas.race import finalists
from hytas.race.size_classes import WEIGHTS
from hytas.race.task import RaceTask
from race_plans import PLANS, one_network

STAYS, HARMS = 0.2, 2.0
"""Points of mean regret that a rule must save, and of one task that it must not cost."""
AS = ("OA", "AA")


class Rule(NamedTuple):
    """A rule or a constant of a race.

    Attributes:
        changes: name of `hytas.race` or of a table -> what leaves the rule out in its place.
        code: names of the functions that go with it.
    """

    changes: Mapping[str, Any]
    code: Sequence[str] = ()

    @property
    def lines(self) -> int:
        """Lines of the functions that go with it."""
        return sum(len(inspect.getsource(_named(name)).splitlines()) for name in self.code)


class SuiteTable(NamedTuple):
    """The table of a task, and the figures of its test."""

    curves: CurveTable
    test: FinalFigures


class Row(NamedTuple):
    """A plan on all tasks: regret in points and steps of each."""

    regrets: dict[str, float]
    steps: dict[str, float]


def _named(name: str) -> Any:
    return resolve_name(f"hytas.{name}")


def _nobody_joins(_: Any, racers: Any, __: int, ranked: Any) -> Any:
    return racers, ranked
    yield


def _diverse(*weights: float) -> Callable[..., Any]:
    def choose(task: RaceTask, ranked: Any) -> Any:
        return finalists.diverse(ranked, task.finalists, False, task.known, weights or WEIGHTS)

    return choose


def _best(task: RaceTask, ranked: Any) -> Any:
    return ranked[: task.finalists]


RULES: Mapping[str, Rule] = {
    "kinds that won are finalists": Rule(
        {"race.plan:choose_finalists": _diverse()},
        ["race.finalists:_portfolio", "race.finalists:_fewest_layers"],
    ),
    "finalists of size classes 5:1:1:1 (1:1:1:1)": Rule(
        {"race.plan:choose_finalists": _diverse(1, 1, 1, 1)}
    ),
    "finalists are diverse (the best of the search)": Rule(
        {"race.plan:choose_finalists": _best},
        ["race.finalists:diverse", "race.finalists:_values", "race.finalists:_values_and_pairs"],
    ),
    "recipes race (the first one)": Rule(
        {
            "lab.benchmark.curve_table:TableTask.recipes_for": lambda task, _: [
                next(iter(task.recipes))
            ]
        },
        ["race.plan:RacePlan._by_recipes", "race.rungs:compared_recipes"],
    ),
    "the better half by each recipe (all)": Rule(
        {"race.plan:compared_recipes": lambda count: count}, ["race.rungs:compared_recipes"]
    ),
    "linear networks join": Rule(
        {"race.plan:RacePlan._with_linear": _nobody_joins}, ["race.plan:RacePlan._with_linear"]
    ),
    "one far behind does not win": Rule(
        {"race.rungs:is_far_behind": lambda *_: False},
        ["race.rungs:is_far_behind"],
    ),
    "60 held-out pixels in early rungs (all folds)": Rule(
        {"race.task:RaceTask.folds_of": lambda task, _: len(task.all_folds)},
        ["race.task:RaceTask.folds_of"],
    ),
    "60 held-out pixels in early rungs (one fold)": Rule({"race.task:ENOUGH_PIXELS": 0}),
    "2 finalists in the last rung (1)": Rule({"race.task:LEAST_FINALISTS": 1}),
    "2 finalists in the last rung (4)": Rule({"race.task:LEAST_FINALISTS": 4}),
    "a rung keeps one in 2 (3)": Rule({"race.rungs:REDUCTION_FACTOR": 3}),
    "6 finalists end the halving (2)": Rule(
        {"race.rungs:FEW_FINALISTS": 2, "race.task:FEW_FINALISTS": 2}
    ),
}
"""Name, with another value in brackets -> rule."""


@contextmanager
def without(rules: Sequence[Rule]) -> Iterator[None]:
    """Leave rules out of every race."""
    with ExitStack() as stack:
        for rule in rules:
            for name, value in rule.changes.items():
                module, _, attributes = name.partition(":")
                owner, _, attribute = attributes.rpartition(".")
                thing = resolve_name(f"hytas.{module}:{owner}")
                stack.enter_context(patch.object(thing, attribute, value))
        yield


def row_of(plans: Sequence[Plan], tables: Sequence[SuiteTable]) -> Row:
    """Replay plans on tables; of several plans take the mean."""
    regrets, steps = {}, {}
    for table in tables:
        ends = [replay(plan, *table) for plan in plans]
        regrets[table.curves.name] = 100 * fmean(one.regret for one in ends)
        steps[table.curves.name] = fmean(one.steps for one in ends)
    return Row(regrets, steps)


def stays(whole: Row, left_out: Row, names: Sequence[str]) -> bool:
    """Return whether a rule earns its place on some tasks."""
    saved = [left_out.regrets[name] - whole.regrets[name] for name in names]
    return fmean(saved) >= STAYS and min(saved) > -HARMS


def suite_rows(plan: Plan, tables: Sequence[SuiteTable]) -> dict[str, dict[str, float]]:
    """Return for each task the OA and AA of the winner's maps, and of one network and of methods.

    A method has the better one of its raw and smoothed map, by the test: that favours it.
    """
    rows = {}
    for table in tables:
        winner, fixed = (replay(one, *table).winner for one in (plan, one_network))
        row = dict(table.test.racers[winner.key])
        row |= {
            f"one network {name}": table.test.racers[fixed.key][f"shipped {name}"] for name in AS
        }
        for method, figures in table.test.methods.items():
            for name in AS:
                row[f"{method} {name}"] = max(v for k, v in figures.items() if k.endswith(name))
        rows[table.curves.name] = row
    return rows


def text_of_suite(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the table of the suite: OA of each task, then mean and worst lead of the winner."""
    names = [
        name.removesuffix(" OA")
        for name in dict.fromkeys(name for row in rows.values() for name in row)
        if name.endswith(" OA")
    ]
    lines = [f"| task | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    for task, row in rows.items():
        cells = (f"{row[f'{one} OA']:.3f}" if f"{one} OA" in row else "" for one in names)
        lines.append(f"| {task} | {' | '.join(cells)} |")
    for figure in AS:
        cells = []
        for one in names:
            leads = [
                100 * (row[f"shipped {figure}"] - row[f"{one} {figure}"])
                for row in rows.values()
                if f"{one} {figure}" in row
            ]
            cells.append(f"{fmean(leads):+.2f}, {min(leads):+.2f}")
        lines.append(f"| lead of shipped in {figure}: mean, worst | {' | '.join(cells)} |")
    return lines


def text_of(report: Mapping[str, Any]) -> str:
    """Return the report as tables of Markdown."""
    lines = [
        "| plan | mean regret | worst regret | of | steps |",
        "|---|---|---|---|---|",
    ]
    for name, one in report["plans"].items():
        worst = max(one["regrets"], key=lambda task: one["regrets"][task])
        mean, most = fmean(one["regrets"].values()), one["regrets"][worst]
        steps = fmean(one["steps"].values())
        lines.append(f"| {name} | {mean:.2f} | {most:.2f} | {worst} | {steps:,.0f} |")
    lines += [
        "",
        "| rule left out | change of mean regret | most that the rule costs a task "
        "| change of steps | lines | stays |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in report["rules"].items():
        lines.append(
            f"| {name} | {one['saved']:+.2f} | {one['raised']:.2f} | {one['steps']:+,.0f} "
            f"| {one['lines'] or ''} | {'yes' if one['stays'] else 'no'} |"
        )
    lines += ["", "| sensor left out | tasks | with all rules | with those that stay |"]
    lines.append("|---|---|---|---|")
    for sensor, one in report["sensors"].items():
        lines.append(f"| {sensor} | {one['tasks']} | {one['all']:.2f} | {one['left']:.2f} |")
    return "\n".join([*lines, "", *text_of_suite(report["suite"])])


def report_of(tables: Sequence[SuiteTable]) -> dict[str, Any]:
    """Return regrets and steps of plans, of races without each rule, and by left-out sensors."""
    ours: Plan = usual_plan
    whole, names = row_of([ours], tables), [table.curves.name for table in tables]
    rows = {}
    for name, rule in RULES.items():
        with without([rule]):
            rows[name] = row_of([ours], tables)
    rules = {}
    for name, row in rows.items():
        saved = {task: row.regrets[task] - whole.regrets[task] for task in names}
        rules[name] = {
            **row._asdict(),
            "saved": fmean(saved.values()),
            "raised": max(0.0, -min(saved.values())),
            "steps": fmean(row.steps[task] - whole.steps[task] for task in names),
            "lines": RULES[name].lines,
            "stays": stays(whole, row, names),
        }
    sensors = {}
    for sensor in dict.fromkeys(table.curves.sensor for table in tables):
        others = [one.curves.name for one in tables if one.curves.sensor != sensor]
        left = [one for one in tables if one.curves.sensor == sensor]
        judged = [name for name in RULES if RULES[name].code] if others else []
        gone = [name for name in judged if not stays(whole, rows[name], others)]
        with without([RULES[name] for name in gone]):
            pruned = row_of([ours], left)
        sensors[sensor] = {
            "tasks": len(left),
            "all": fmean(whole.regrets[one.curves.name] for one in left),
            "left": fmean(pruned.regrets.values()),
            "gone": gone,
        }
    plans = {"ours": whole} | {name: row_of(own, tables) for name, own in PLANS.items()}
    return {
        "plans": {name: row._asdict() for name, row in plans.items()},
        "rules": rules,
        "sensors": sensors,
        "suite": suite_rows(ours, tables),
    }


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="JSON file for the whole report.")
def main(folder: Path, out: Path | None) -> None:
    """Replay races on the tables of a folder without each rule."""
    tables = [
        SuiteTable(
            CurveTable.load(path),
            FinalFigures.load(path.with_name(path.name.removesuffix(TABLE) + TEST)),
        )
        for path in sorted(folder.glob(f"*{TABLE}"))
    ]
    for table in [one for one in tables if not one.curves.facts["complete"]]:
        click.echo(f"left out: {table.curves.name}, whose networks are not all trained")
        tables.remove(table)
    if not tables:
        raise click.ClickException(f"{folder} has no complete table")
    report = report_of(tables)
    if out is not None:
        out.write_text(json.dumps(report, indent=1))
    click.echo(text_of(report))


if __name__ == "__main__":
    main()
