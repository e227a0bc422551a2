"""The stages of the final training: records of held-out pixels, then the winner's weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas.errors import InputError
from hytas.export import describe
from hytas.model_card import ModelCard
from hytas.run.context import Run, RunContext
from hytas.run.final.decide import LEAST_PIXELS, Conditions, Decisions, decide
from hytas.run.final.records import HeldOut
from hytas.run.final.self_training import self_train
from hytas.run.final.train import (
    FinalTask,
    Progress,
    fit,
    forget_damaged,
    hold_out,
    observe,
    run_all,
)
from hytas.run.folder import read_json
from hytas.run.weights import CALIBRATION, SELF_TRAINING, SMOOTHING, TrainedModel, save_weights
from hytas.train import DivergedError
from hytas.types import Pixels


class Fold(NamedTuple):
    """A training whose network classifies held-out pixels.

    Attributes:
        trained, watched: pixels that it trains on, and pixels that choose its best epoch.
        held_out: the held-out pixels.
        checkpoint: of the training.
        record: file of the record.
        of_winner: whether it is the final training itself, which leaves out validation pixels.
    """

    trained: Pixels
    watched: Pixels
    held_out: Pixels
    checkpoint: Path
    record: Path
    of_winner: bool = False


def folds_of(run: Run) -> tuple[list[Fold], int]:
    """Return the trainings whose records decide for the winner of a run; none with few pixels.

    The second value is how many pixels could be held out.

    A network is too confident on pixels that it was trained on. Where the final training uses all
    labelled pixels, its architecture is also trained without the pixels of each fold
    (`Split.folds_like_test`). No label of a test pixel is read. A teacher that was trained on
    pixels of a fold does not teach there.
    """
    context, folder, records = run.context, run.folder, run.records
    if context.holds_out_validation:
        trained, watched = context.final_pixels
        own = Fold(trained, watched, watched, folder.checkpoint, records.record(0), True)
        return [own], len(watched)
    folds = [
        Fold(trained, trained[:0], held_out, folder.fold_checkpoint(at), records.record(at))
        for at, (trained, held_out) in enumerate(context.folds()[: run.most_folds])
    ]
    pixels = sum(len(fold.held_out) for fold in folds)
    return (folds if pixels >= LEAST_PIXELS else []), pixels


def task_of(
    run: Run, trained: Pixels, watched: Pixels, held_out: Pixels, checkpoint: Path
) -> FinalTask:
    """Return a training of the run's architecture by its recipe.

    A teacher that was trained on held-out pixels does not take part.
    """
    context, (_, recipe) = run.context, run.recipe
    labelled = context.data.labelled(context.data.split.train_and_validation)
    teacher = context.teacher()
    if teacher is not None and not np.intersect1d(teacher.seen, held_out).size:
        labelled = replace(labelled, teacher=teacher)
    return FinalTask(
        context.network(read_json(run.folder.architecture), recipe),
        labelled,
        trained,
        watched,
        recipe,
        context.config.seed,
        context.device,
        checkpoint,
        context.data.trains_in_parallel,
        run.pace.ends(),
    )


def winner_task(run: Run) -> FinalTask:
    """Return the final training of a run."""
    context = run.context
    return task_of(run, *context.final_pixels, context.data.split.test, run.folder.checkpoint)


def folds_stage(run: Run) -> None:
    """Write the records of held-out pixels that the folder lacks.

    Raises:
        DivergedError: the loss or the logits of a training are not finite any more.
    """
    missing = [fold for fold in folds_of(run)[0] if _fault(fold)]
    if not missing:
        return
    for fold in missing:
        if fold.record.exists():
            run.report.notice(f"{fold.record.name}: {_fault(fold)}: made again")
            fold.record.unlink()
    tasks = [
        task_of(run, fold.trained, fold.watched, fold.held_out, fold.checkpoint) for fold in missing
    ]
    with _free_recipe(run):
        if run.context.data.trains_in_parallel and not missing[0].of_winner:
            own = [] if run.folder.weights.exists() else [winner_task(run)]
            run_all([*tasks, *own], run.workers, "trainings of the winner", run.report)
        for fold, task in zip(missing, tasks, strict=True):
            _record(run, fold, task).save(fold.record)
            run.folder.manifest.record([fold.record])
            if run.folder.weights.exists() or not fold.of_winner:
                task.forget_checkpoints()


def are_recorded(run: Run) -> bool:
    """Return whether the records of all folds are there."""
    return not any(map(_fault, folds_of(run)[0]))


def _fault(fold: Fold) -> str:
    """Return what is wrong with the record of a fold; or ""."""
    if not fold.record.exists():
        return "missing"
    try:
        same = np.array_equal(HeldOut.load(fold.record).trained, fold.trained)
    except InputError as error:
        return str(error).removeprefix(f"{fold.record}: ")
    return "" if same else "is of another run"


def _record(run: Run, fold: Fold, task: FinalTask) -> HeldOut:
    """Train the network of a fold, and record its logits before and after self-training."""
    data = run.context.data
    progress: Progress = run.report.epoch
    if not fold.of_winner:
        run.report.line(
            f"calibration: training on {len(fold.trained)} pixels, to measure confidence on others"
        )
        progress = _work(run, "calibrate", task)
    forget_damaged(task.checkpoint, run.report)
    fit(task, progress)
    voting = data.pixels_that_vote(task.seed)
    unlabelled = fold.held_out[:0] if voting is None else voting.pixels
    record = hold_out(task.network, data, fold.trained, fold.held_out, unlabelled, task.device)
    if run.no_self_training:
        return record
    try:
        self_train(task, data.as_scene, run.report, _work(run, "self-train", task))
    except DivergedError as error:
        run.report.line(f"self-training: {error}")
        return record
    groups = record.pixels, record.neighbours, record.unlabelled
    held_out, neighbours, others = observe(task.network, data, groups, task.device)
    return replace(
        record,
        logits_after=held_out,
        neighbour_logits_after=neighbours,
        unlabelled_logits_after=others,
    )


def _work(run: Run, name: str, task: FinalTask) -> Progress:
    """Return what reports the epochs of a fold's training as pixels."""
    pixels = len(task.trained)
    return lambda epoch: run.report.pixels(name, epoch.epoch * pixels, epoch.epochs * pixels)


def train_stage(run: Run) -> None:
    """Decide by the records, train the architecture of the run, and write its weights.

    It trains on training and validation pixels, unless the configuration says "train": the
    architecture is chosen already, and few pixels are worth more in the training.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    context, data = run.context, run.context.data
    decisions = decide_for(run)
    task = winner_task(run)
    forget_damaged(task.checkpoint, run.report)
    with _free_recipe(run):
        result = fit(task, run.report.epoch)
        rounds = []
        if decisions.self_training.used:
            rounds = self_train(task, data.as_scene, run.report, run.report.epoch)
    training = {
        **result.to_dict(),
        "preset": run.recipe[0],
        CALIBRATION: decisions.calibration.to_dict(),
        SMOOTHING: None if decisions.smoothing is None else decisions.smoothing.to_dict(),
        SELF_TRAINING: decisions.self_training.to_dict(),
        "self_training_rounds": [each.to_dict() for each in rounds],
    }
    if decisions.smoothing is not None:
        run.report.line(decisions.self_training.describe())
    run.report.line(decisions.calibration.describe())
    if decisions.smoothing is not None:
        run.report.line(decisions.smoothing.describe())
    card = card_of(context, read_json(run.folder.architecture), task.trained, decisions)
    save_weights(run.folder.weights, TrainedModel(task.network, card, training))
    task.forget_checkpoints()


def decide_for(run: Run) -> Decisions:
    """Return the decisions for the winner of a run.

    Raises:
        InputError: a record is missing or damaged.
    """
    context, (folds, pixels) = run.context, folds_of(run)
    conditions = Conditions(
        smooth=context.config.smooth,
        kept_smoothing=context.origin.smoothing,
        disjoint=context.data.split.spatially_disjoint,
        no_self_training=run.no_self_training,
        folds=0 if context.holds_out_validation else len(folds),
        pixels=pixels,
    )
    records = [HeldOut.load(fold.record) for fold in folds]
    return decide(records, context.data.smoother, conditions)


def card_of(
    context: RunContext, architecture: Mapping[str, Any], trained: Pixels, decisions: Decisions
) -> ModelCard:
    """Return the card of a network that was trained on some pixels of the run."""
    data, choice, teacher = context.data, decisions.smoothing, context.teacher()
    taught_by = () if teacher is None else teacher.sources
    smoothing = None
    if choice is not None:
        guide = data.as_scene.guide
        chosen = replace(guide, method=choice.method, temperature=choice.temperature)
        smoothing = chosen.to_dict()
    card = describe(
        data.scene,
        data.preprocessing,
        architecture,
        data.shape,
        decisions.calibration.temperature,
        smoothing,
        context.config.scale_by,
        [*data.sources(trained), *taught_by],
        None if decisions.unknown is None else decisions.unknown.to_dict(),
    )
    return context.origin.card_of(card, decisions)


@contextmanager
def _free_recipe(run: Run) -> Iterator[None]:
    """Remove what a training left if it diverges, so that the recipe may change."""
    try:
        yield
    except DivergedError:
        run.folder.forget_training(records=True)
        raise
