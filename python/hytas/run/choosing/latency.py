"""Under a latency budget, time the finalists themselves: a table of layers only estimates."""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hytas._engine import Feasible
from hytas.export import describe
from hytas.export.latency import threads_and_batch, time_models
from hytas.model_card import ModelCard
from hytas.models import SensorModel
from hytas.run.context import Run, RunContext
from hytas.run.folder import read_json, write_json
from hytas.search import Evaluation
from hytas.spaces.budgets import read_text

_PREFIX = "latency@"
_NANOSECONDS = 1e6  # of a millisecond
_MOST = 4
"""Times that finalists are chosen, at most."""


class _Limit(NamedTuple):
    """Conditions of a latency bound, and the most milliseconds."""

    name: str
    threads: int
    batch: int
    most: float


def within_latency(
    run: Run,
    ranked: Sequence[Evaluation],
    choose: Callable[[Sequence[Evaluation]], Sequence[Evaluation]],
) -> list[Evaluation]:
    """Return the ranked candidates without those that take longer than the budget allows.

    Finalists are timed. Others are chosen in place of those that take longer, and timed as well.

    Args:
        run: its budget may bound a latency.
        ranked: candidates, the best first.
        choose: returns the finalists among candidates, as the race does.
    """
    left, limits = list(ranked), _limits(run.context.feasible)
    if not limits:
        return left
    fast: set[int] = set()
    for _ in range(_MOST):
        group = [one for one in choose(left) if one.id not in fast]
        if not group:
            break
        over = [_over(run, group, limit) for limit in limits]
        slow = {one.id for place, one in enumerate(group) if any(each[place] for each in over)}
        fast |= {one.id for one in group} - slow
        left = [one for one in left if one.id not in slow]
    else:
        left = [one for one in left if one.id in fast]
    if not left:
        run.report.line("no candidate keeps the latency when timed; those of the table race")
        return list(ranked)
    return left


def _limits(feasible: Feasible | None) -> list[_Limit]:
    if feasible is None:
        return []
    limits = []
    for name, _, most in feasible.budget.bounds:
        if name.startswith(_PREFIX):
            table = json.loads(read_text(name.removeprefix(_PREFIX), "latency table"))
            limits.append(_Limit(name, *threads_and_batch(table), most / _NANOSECONDS))
    return limits


def _over(run: Run, group: Sequence[Evaluation], limit: _Limit) -> list[bool]:
    """Return which candidates take longer than a limit; each is timed once in a run's life."""
    path = run.folder.latency  # a resumed race has the same finalists
    stored = read_json(path, {})
    measured = stored.setdefault(limit.name, {})
    new = [one for one in group if str(one.id) not in measured]
    if new:
        times = time_models(
            [_model(run.context, one) for one in new], threads=limit.threads, batch=limit.batch
        )
        measured |= {str(one.id): ms for one, ms in zip(new, times, strict=True)}
        write_json(path, stored)
    milliseconds = [measured[str(one.id)] for one in group]
    count = sum(ms > limit.most for ms in milliseconds)
    run.report.line(
        f"{len(milliseconds)} finalists timed: {min(milliseconds):.3f} to "
        f"{max(milliseconds):.3f} ms, of {limit.most:g} ms allowed; {count} of them take longer "
        "and leave the race"
    )
    return [ms > limit.most for ms in milliseconds]


def _model(context: RunContext, candidate: Evaluation) -> tuple[SensorModel, ModelCard]:
    data = context.data
    recipe = next(iter(context.config.recipes.values()))
    network = context.source.begun(candidate.architecture, recipe, context.config.seed)
    model = SensorModel(network, data.preprocessing).eval()
    return model, describe(data.scene, data.preprocessing, candidate.architecture, data.shape)
