"""The control of a search: the same search and trainings in another space."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hytas.errors import InputError
from hytas.results import Results
from hytas.run.choosing.searching import check_search
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_feasible, pace_of
from hytas.run.folder import read_json, write_json
from hytas.run.progress import Report
from hytas.search import EvaluationStore

EVOLVED = "Evolved from "
"""The first words of what the file of an evolved space says of itself."""


def note_of_evolved(about: str, control: str | None) -> str:
    """Return what a user should know of an evolved space; "" for another space.

    Args:
        control: the space of the control, if the run does it.
    """
    if not about.startswith(EVOLVED):
        return ""
    origin = about.removeprefix(EVOLVED).partition(" for ")[0]
    note = (
        f"The space was evolved from {origin}. By its own measure it is better; whole searches in "
        "evolved spaces gained nothing in our measurements (docs/research.md)."
    )
    if control is not None:
        return note
    return (
        f"{note} The fair control is the same search in {origin}, with as many trainings of the "
        "same length: `control` does it in the same run, and reports both."
    )


class _Lines(Report):
    """Passes lines on; the events of a run are those of the run itself."""

    def __init__(self, report: Report) -> None:
        self.line = report.line  # type: ignore[method-assign]


def check_control(context: RunContext) -> None:
    """Refuse, before any work, a control that cannot be done."""
    config, control = context.config, context.config.control
    if control is None:
        return
    if control == config.space:
        raise InputError("control", control, "is the space of the run", "name another one")
    if config.recipe.epochs == 0:
        raise InputError("control", control, "compares trained networks, and nothing is trained")
    try:
        own = _of_control(config)
        space, feasible = open_feasible(own, context.data.shape, context.mixes_linear)
        check_search(replace(context, config=own, space=space, feasible=feasible))
    except InputError as error:
        raise InputError("control", control, f"the same search is refused: {error}") from None


def _of_control(config: RunConfig) -> RunConfig:
    return replace(config, space=str(config.control), control=None)


def control_stage(run: Run, search_and_train: Callable[[Run], None]) -> None:
    """Do the search of a run in the space of its control, and write both figures to the metrics.

    Args:
        run: its final training must be done.
        search_and_train: does all of the control that is not done.
    """
    config = run.context.config
    rows = None
    if config.control is not None:
        own = _of_control(config)
        inner = run.inside(run.folder.control.name, own)
        inner = replace(inner, report=_Lines(run.report), pace=pace_of(own, inner.folder))
        if not inner.folder.metrics.exists():
            run.report.notice(f"control: the same search in {config.control}")
        search_and_train(inner)
        rows = [_row(run, config.space), _row(inner, config.control)]
    metrics = read_json(run.folder.metrics)
    if metrics.pop("control", None) == rows:
        return
    if rows is not None:
        metrics["control"] = rows
        both = ", ".join(f"{row['OA']:.4f} in {row['space']}" for row in rows)
        run.report.notice(f"accuracy of the map {both}")
    write_json(run.folder.metrics, metrics)


def _row(run: Run, space: str) -> dict[str, Any]:
    """Return what a run reached in a space, and how much it scored and trained."""
    metrics = read_json(run.folder.metrics)
    results, seeds = Results.of(metrics), metrics.get("seeds", {})
    over = seeds.get("smoothed", {}) if results.is_smoothed else seeds
    with EvaluationStore(run.folder.evaluations, read_only=True) as store:
        scored, trainings = store.evaluations(), store.trainings()
    longest: dict[Any, int] = {}
    for one in sorted(trainings, key=lambda one: one.steps):  # a rung goes on from the one before
        longest[one.id, one.recipe, one.fold] = one.steps
    return {
        "space": space,
        **{name: results.of_map[name] for name in ("OA", "AA", "kappa")},
        "OA_seeds": over.get("OA"),
        "params": metrics["costs"].get("params"),
        "candidates": len(scored),
        "trainings": len(trainings),
        "race_steps": sum(longest.values()),
    }
