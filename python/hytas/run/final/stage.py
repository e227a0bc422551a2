"""The stages of the final training: records of held-out pixels, then the winner's weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas.errors import InputError
from hytas.export import describe
from hytas.model_card import ModelCard
from hytas.results import NETWORK, MeanChoice
from hytas.run.context import Run, RunContext
from hytas.run.final.decide import LEAST_PIXELS, Conditions, Decisions, decide
from hytas.run.final.held_out import HeldOut
from hytas.run.final.members import choose_members, with_members
from hytas.run.final.prior import adapt_prior, shifted, smoothing_with
from hytas.run.final.self_training import self_train
from hytas.run.final.tasks import complete_all
from hytas.run.final.train import FinalTask, averaged, fit
from hytas.run.folder import read_json
from hytas.run.start import Scratch
from hytas.run.weights import (
    CALIBRATION,
    CLASS_PRIOR,
    MEAN,
    SELF_TRAINING,
    SMOOTHING,
    TrainedModel,
    save_weights,
)
from hytas.spaces import parse_budget, space_of
from hytas.spaces.names import FITS, LINEAR_SPACE, MEAN_WITH, network_of
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
    teacher = context.teacher
    if teacher is not None and not np.intersect1d(teacher.seen, held_out).size:
        labelled = replace(labelled, teacher=teacher)
    architecture = read_json(run.folder.architecture)
    if isinstance(context.origin, Scratch):  # of a mean, the linear networks are fitted afterwards
        architecture = network_of(architecture)
    return FinalTask(
        context.network(architecture, recipe),
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
        replace(
            task_of(run, fold.trained, fold.watched, fold.held_out, fold.checkpoint),
            held_out=fold.held_out,
            self_trains=not run.no_self_training,
        )
        for fold in missing
    ]
    data, of_winner = run.context.data, missing[0].of_winner
    if data.trains_in_parallel and not (of_winner or run.folder.weights.exists()):
        # It trains while others do. Its self-training is for nothing if the records speak against.
        own = [replace(winner_task(run), self_trains=not run.no_self_training)]
    else:
        own = []
    workers = run.training_workers if data.trains_in_parallel and not of_winner else "1"
    progress = run.report.epoch if of_winner else None
    with _free_recipe(run):
        records = complete_all(
            [*own, *tasks], data, workers, "trainings of the winner", run.report, progress
        )
        for fold, task, record in zip(missing, tasks, records[len(own) :], strict=True):
            assert record is not None
            record.save(fold.record)
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


def train_stage(run: Run) -> None:
    """Decide by the records, train the architecture of the run, and write its weights.

    It trains on training and validation pixels, unless the configuration says "train": the
    architecture is chosen already, and few pixels are worth more in the training.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    context, data = run.context, run.context.data
    mean, records, decisions = decide_for(run)
    task = replace(winner_task(run), self_trains=decisions.self_training.used)
    task.forget_damaged(run.report.line)
    with _free_recipe(run):
        if data.trains_in_parallel and not context.holds_out_validation:
            complete_all([task], data, run.training_workers, "the final training", run.report)
        result = fit(task, run.report.epoch, run.report.line)
        rounds = []
        if task.self_trains:
            rounds = self_train(task, data.as_scene, run.report.line, run.report.epoch)
    architecture = read_json(run.folder.architecture)
    if isinstance(context.origin, Scratch):
        architecture = network_of(architecture)
    network, architecture = averaged(task.network, architecture, mean.members, data, task.trained)
    prior = adapt_prior(network, context, task.recipe, task.trained, records, decisions)
    if prior.used:
        adapted = shifted(records, prior, decisions)
        decisions = decisions._replace(
            unknown=decisions.unknown_of(adapted),
            smoothing=smoothing_with(prior, adapted, decisions, context),
        )
    training = {
        **result.to_dict(),
        "preset": run.recipe[0],
        CALIBRATION: decisions.calibration.to_dict(),
        SMOOTHING: None if decisions.smoothing is None else decisions.smoothing.to_dict(),
        SELF_TRAINING: decisions.self_training.to_dict(),
        CLASS_PRIOR: prior.to_dict(),
        MEAN: mean.to_dict(),
        "self_training_rounds": [each.to_dict() for each in rounds],
    }
    run.report.line(mean.describe())
    if decisions.smoothing is not None:
        run.report.line(decisions.self_training.describe())
    run.report.line(decisions.calibration.describe())
    if decisions.smoothing is not None:
        run.report.line(decisions.smoothing.describe())
        run.report.line(prior.describe())
    card = card_of(context, architecture, task.trained, decisions)
    if prior.used:
        card = replace(card, class_shares={"labels": prior.labels, "assumed": prior.assumed})
    save_weights(run.folder.weights, TrainedModel(network, card, training))
    run.folder.forget_training()  # of the folds, too: a stop after a record leaves its checkpoint


def records_of(run: Run) -> list[HeldOut]:
    """Read the records that decide for the winner of a run.

    Raises:
        InputError: a record is missing or damaged.
    """
    return [HeldOut.load(fold.record) for fold in folds_of(run)[0]]


def decide_for(run: Run) -> tuple[MeanChoice, list[HeldOut], Decisions]:
    """Return the decisions for the winner of a run, by its records, and these of its mean.

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
    records = records_of(run)
    mean = _choose_mean(run, records, conditions)
    records = [record.mean(mean.members) for record in records]
    return mean, records, decide(records, context.data.smoother, conditions)


def _choose_mean(run: Run, records: Sequence[HeldOut], conditions: Conditions) -> MeanChoice:
    """Choose the networks that the model averages: the winner alone without linear networks."""
    context, architecture = run.context, read_json(run.folder.architecture)
    if not context.mixes_linear:
        return MeanChoice((NETWORK,), reason="the run has no linear networks")
    if context.feasible is None or MEAN_WITH in architecture:
        given = (NETWORK, *architecture.get(MEAN_WITH, ()))
        return MeanChoice(given, reason="the architecture was given")
    own = architecture["fit"] if space_of(architecture) == LINEAR_SPACE else None

    def fits(members: Sequence[str]) -> bool:
        costs = context.costs(with_members(architecture, members))
        bounds = parse_budget(context.config.budget or ()).bounds
        return all(costs.get(name, most) <= most for name, _, most in bounds)

    linear = [fit for fit in FITS if fit != own]
    return choose_members(records, context.data.smoother, conditions, linear, fits)


def card_of(
    context: RunContext, architecture: Mapping[str, Any], trained: Pixels, decisions: Decisions
) -> ModelCard:
    """Return the card of a network that was trained on some pixels of the run."""
    data, choice, teacher = context.data, decisions.smoothing, context.teacher
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
