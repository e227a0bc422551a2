"""With `minutes`, choose the lengths of the race and of the final training by measured rates."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hytas.decide.decisions import LEAST_PIXELS
from hytas.errors import InputError
from hytas.race import Racer, RaceTask, Rung, size_of
from hytas.race.plan import Trial
from hytas.race.race import fit_of
from hytas.run.context import Run, shorter
from hytas.run.folder import read_json, write_json
from hytas.run.pace import (
    FINAL,
    RACE_ENDS,
    Lengths,
    Load,
    TrainingRate,
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


def read_plan(run: Run) -> dict[str, Any]:
    """Return what was shortened so far: name -> what is done, and of how much."""
    try:
        return read_json(run.folder.pace) if run.folder.pace.exists() else {}
    except InputError:  # it is measured again
        return {}


def keep_plan(run: Run, **lengths: tuple[int, int]) -> None:
    """Keep lengths, so that a run that goes on keeps them, and notify of shorter ones."""
    before = read_plan(run)
    new = {name: list(each) for name, each in lengths.items() if name not in before}
    write_json(run.folder.pace, {**before, **new})
    run.folder.manifest.record([run.folder.pace])
    if text := shortened(new):
        run.report.notice(f"for {run.pace.minutes:g} minutes: {text}")


def within_minutes(
    run: Run, task: RaceTask, ranked: Sequence[Evaluation], finalists: int, steps: int
) -> tuple[RaceTask, int, int]:
    """Return the task with shorter recipes, and finalists and steps of the first rung.

    They are measured and chosen once; a run that goes on reads them.

    Args:
        ranked: candidates, the best first.
        finalists, steps: without minutes.
    """
    most = Lengths(finalists, steps, task.final_steps)
    plan = read_plan(run)
    if "finalists" in plan:
        chosen = Lengths(*(int(plan[name][0]) for name in Lengths._fields))
    else:
        rate = measured_rate(task, ranked)
        own = len(task.recipes_for(ranked[0].architecture))
        left, training = run.pace.left(RACE_ENDS), run.pace.left() - run.pace.left(RACE_ENDS)
        load, _ = load_of(run, task, own, most.steps, rate, training)
        chosen = fitting_lengths(task, most, rate, load, left, training)
        pairs = zip(Lengths._fields, zip(chosen, most, strict=True), strict=True)
        keep_plan(run, **dict(pairs))
    recipes = dict(task.recipes)
    if chosen.steps < most.steps:
        recipes = {name: shorter(recipe, chosen.steps) for name, recipe in recipes.items()}
    return replace(task, recipes=recipes), chosen.finalists, chosen.race_steps


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


def load_of(
    run: Run, task: RaceTask, recipes: int, most: int, rate: TrainingRate, seconds: float
) -> tuple[Load, int | None]:
    """Return what the lengths of a run are multiplied by, and how many folds are trained on.

    None are all folds, and self-training. If the final training would then have less than half of
    its steps, fewer folds are trained on, and there is no self-training.
    """
    context, source = run.context, run.context.source
    device = source.device
    with open_workers(
        run.training_workers,
        on_cpu=device.type == "cpu",
        sent_bytes=source.patch_bytes,
        shared_gpu=device,
    ) as pool:
        count = pool.count
    sizes = [] if context.holds_out_validation else [len(held) for _, held in task.folds]
    few = min(len(sizes), int(np.searchsorted(np.cumsum(sizes), LEAST_PIXELS)) + 1)
    further = context.config.seeds - 1
    at_once = count if context.data.trains_in_parallel and device.type == "cpu" else 1

    def load(folds: int, after: float) -> Load:
        trainings = -(-(folds + 1) // at_once) + -(-further // at_once)
        return Load(recipes, count, trainings + after * (folds + 1 + further))

    whole = load(len(sizes), 0.0 if context.no_self_training else ROUNDS * SHARE)
    if 2 * fitting_steps(most, rate, whole, seconds) >= most:
        return whole, None
    return load(few, 0.0), few


def shorter_training(
    run: Run, task: RaceTask, store: EvaluationStore, winner: Racer
) -> dict[str, int]:
    """Return "steps" and "folds" of the final training in the time that is left.

    What is as usual is left out. The race has trained the winner, so its rate is known.
    """
    most = usual_steps(run, winner)
    own = [
        one for one in store.trainings() if (one.id, one.recipe) == winner.key and not one.reason
    ]
    if own:  # a training goes on where that of the rung before ended
        last, *before = sorted({one.steps for one in own}, reverse=True)
        seconds = max(one.seconds for one in own if one.steps == last)
        rate = TrainingRate(seconds / (last - max(before, default=0)))
    else:
        rate = measured_rate(task, [winner.finalist])
    load, folds = load_of(run, task, 1, most, rate, run.pace.left())
    steps = fitting_steps(most, rate, load, run.pace.left())
    plan = read_plan(run) | {"steps": [steps, most]}
    if folds is not None:
        plan |= {"folds": [folds, len(task.folds)]}
        if not run.context.no_self_training:
            plan |= {"self_training": [0, ROUNDS]}
    write_json(run.folder.pace, plan)
    run.folder.manifest.record([run.folder.pace])
    if text := shortened({name: plan[name] for name in plan if name in FINAL}):
        run.report.notice(f"for {run.pace.minutes:g} minutes: {text}")
    return ({} if steps == most else {"steps": steps}) | ({} if folds is None else {"folds": folds})


def usual_steps(run: Run, winner: Racer) -> int:
    """Return the optimiser steps of the winner's recipe without minutes."""
    recipe = run.context.config.recipes[winner.recipe]
    return recipe.steps_for(len(run.context.final_pixels[0]))
