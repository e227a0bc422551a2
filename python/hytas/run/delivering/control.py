"""The control of a search: the same search and trainings in another space."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hytas.errors import InputError
from hytas.results import RunResults
from hytas.run.choosing.searching import check_search
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_feasible
from hytas.run.folder import RunFolder, read_json
from hytas.run.pace import Pace
from hytas.run.progress import Report
from hytas.run.times import spent_before
from hytas.search import EvaluationStore


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
        space, feasible = open_feasible(own, context.data.shape, context.fits)
        check_search(replace(context, config=own, space=space, feasible=feasible))
    except InputError as error:
        raise InputError("control", control, f"the same search is refused: {error}") from None


def _of_control(config: RunConfig) -> RunConfig:
    return replace(config, space=str(config.control), control=None)


def control_of(run: Run) -> Run | None:
    """Return the run of the control, in a folder of its own; None if there is none.

    Args:
        run: its final training must be done.
    """
    config = run.context.config
    if config.control is None or run.first is not None:
        return None
    run.report.stage("control")
    own = _of_control(config)
    inner = run.inside(run.folder.control.name, own)
    return replace(
        inner, report=_Lines(run.report), pace=Pace(own.minutes, spent_before(inner.folder.times))
    )


def rows_of(run: Run, metrics: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return what a run and its control reached; None without a control that has ended.

    Args:
        metrics: of the run.
    """
    config = run.context.config
    if config.control is None or run.first is not None:
        return None
    control = RunFolder(run.folder.control)
    if not control.metrics.is_file():
        return None
    return [
        _row(run.folder, metrics, config.space),
        _row(control, read_json(control.metrics), config.control),
    ]


def _row(folder: RunFolder, metrics: Mapping[str, Any], space: str) -> dict[str, Any]:
    """Return what a run reached in a space, and how much it scored and trained."""
    results, seeds = RunResults.of(metrics), metrics.get("seeds", {})
    over = seeds.get("smoothed", {}) if results.is_smoothed else seeds
    with EvaluationStore(folder.evaluations, read_only=True) as store:
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
