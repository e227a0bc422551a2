"""With `minutes`, choose the lengths of the race and of the final training by measured rates."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hytas.errors import InputError
from hytas.race import Racer, RaceTask, Rung, size_of
from hytas.race.plan import Trial
from hytas.race.race import fit_of
from hytas.run.context import Run, shorter
from hytas.run.folder import read_json, write_json
from hytas.run.pace import (
    RACE_ENDS,
    Lengths,
    TrainingRate,
    Workload,
    fitting_lengths,
    fitting_steps,
    shortened,
)
from hytas.run.soft_labels import ROUNDS, SHARE
from hytas.search import Evaluation, EvaluationStore
from hytas.store import Store
from hytas.workers import open_workers

FEW_STEPS, MORE_STEPS = 5, 20
"""Optimiser steps of the two trainings that measure a rate: their difference has no overhead."""
MEASURED_AMONG = 20
"""Of the best candidates."""


def read_plan(path: Path) -> dict[str, Any]:
    """Return what was shortened so far: name -> what is done, and of how much."""
    try:
        return read_json(path)
    except InputError:  # none was, or the file is damaged: it is measured again
        return {}


def keep_plan(run: Run, **lengths: tuple[int, int]) -> None:
    """Keep lengths, so that a run that goes on keeps them, and notify of shorter ones."""
    write_json(run.folder.pace, {**read_plan(run.folder.pace), **lengths})
    run.folder.manifest.record([run.folder.pace])
    if text := shortened(lengths):
        run.report.notice(f"for {run.pace.minutes:g} minutes: {text}")


def within_minutes(run: Run, task: RaceTask, ranked: Sequence[Evaluation]) -> RaceTask:
    """Return the task with shorter recipes, fewer finalists and fewer steps in the first rung.

    They are measured and chosen once; a run that goes on reads them.

    Args:
        ranked: candidates, the best first.
    """
    most = Lengths(task.finalists, task.steps, task.final_steps)
    plan = read_plan(run.folder.pace)
    if "finalists" in plan:
        chosen = Lengths(*(int(plan[name][0]) for name in Lengths._fields))
    else:
        rate = measured_rate(task, ranked)
        own = len(task.recipes_for(ranked[0].architecture))
        left, training = run.pace.left(RACE_ENDS), run.pace.left() - run.pace.left(RACE_ENDS)
        chosen = fitting_lengths(task, most, rate, workload_of(run, task, own), left, training)
        pairs = zip(Lengths._fields, zip(chosen, most, strict=True), strict=True)
        keep_plan(run, **dict(pairs))
    recipes = dict(task.recipes)
    if chosen.steps < most.steps:
        recipes = {name: shorter(recipe, chosen.steps) for name, recipe in recipes.items()}
    return replace(task, recipes=recipes, finalists=chosen.finalists, steps=chosen.race_steps)


def measured_rate(task: RaceTask, candidates: Sequence[Evaluation]) -> TrainingRate:
    """Return what a training takes here: the mean of a large and a middle-sized candidate."""
    sized = sorted(candidates[:MEASURED_AMONG], key=size_of)
    recipe = next(iter(task.recipes))
    chosen = dict.fromkeys((len(sized) - 1, len(sized) // 2))
    sums = []
    with TemporaryDirectory() as folder:
        alone = replace(task, fits=Store(Path(folder), task.fits.source))
        for steps in (FEW_STEPS, MORE_STEPS):
            rung = Rung(len(chosen), steps, steps)
            fits = [fit_of(alone, Trial(Racer(sized[at], recipe), 0, rung)) for at in chosen]
            seconds = [fitted.seconds for _, fitted in alone.fits.run(fits)]
            sums.append(sum(seconds) / len(seconds))
    step = max(0.0, sums[1] - sums[0]) / (MORE_STEPS - FEW_STEPS) or sums[1] / MORE_STEPS
    return TrainingRate(step, max(0.0, sums[0] - FEW_STEPS * step))


def workload_of(run: Run, task: RaceTask, recipes: int) -> Workload:
    """Return what the lengths of a run are multiplied by."""
    context, source = run.context, run.context.source
    device = source.device
    with open_workers(
        run.training_workers,
        on_cpu=device.type == "cpu",
        sent_bytes=source.patch_bytes,
        shared_gpu=device,
    ) as pool:
        count = pool.count
    at_once = count if context.data.trains_in_parallel and device.type == "cpu" else 1
    folds = 0 if context.holds_out_validation else len(task.folds)
    further = context.config.seeds - 1
    after = 0.0 if context.no_self_training else ROUNDS * SHARE
    trainings = -(-(folds + 1) // at_once) + -(-further // at_once)
    return Workload(recipes, count, trainings + after * (folds + 1 + further))


def shorter_training(run: Run, task: RaceTask, store: EvaluationStore, winner: Racer) -> int | None:
    """Return the steps of the final training in the time that is left; None as usual.

    The race has trained the winner, so its rate is known.
    """
    recipe = run.context.config.recipes[winner.recipe]
    most = recipe.steps_for(len(run.context.final_pixels[0]))
    own = [
        one for one in store.trainings() if (one.id, one.recipe) == winner.key and not one.reason
    ]
    if own:  # a training goes on where that of the rung before ended
        last, *before = sorted({one.steps for one in own}, reverse=True)
        seconds = max(one.seconds for one in own if one.steps == last)
        rate = TrainingRate(seconds / (last - max(before, default=0)))
    else:
        rate = measured_rate(task, [winner.finalist])
    steps = fitting_steps(most, rate, workload_of(run, task, 1), run.pace.left())
    keep_plan(run, steps=(steps, most))
    return None if steps == most else steps
