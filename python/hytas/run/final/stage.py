"""The stages of the final training: records of held-out pixels, then the winner's weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from hytas.decide.decisions import Conditions, Decisions, decide
from hytas.decide.members import choose_members, with_members
from hytas.decide.records import HeldOut
from hytas.export import describe
from hytas.model_card import ModelCard
from hytas.models.table import mean_network
from hytas.results import NETWORK, MeanChoice
from hytas.run.context import Run, RunContext
from hytas.run.final.fits import fit_all, network_after, records_of, result_of
from hytas.run.final.prior import adapt_prior, shifted, smoothing_with
from hytas.run.final.task import FinalTask, final_task, linear_fit
from hytas.run.weights import (
    CALIBRATION,
    CLASS_PRIOR,
    MEAN,
    SELF_TRAINING,
    SMOOTHING,
    TrainedModel,
    save_weights,
)
from hytas.spaces import space_of
from hytas.spaces.names import LINEAR_SPACE, MEAN_WITH
from hytas.spaces.shape import Shape
from hytas.store import Store
from hytas.train.fit import Fit
from hytas.train.loop import Watch
from hytas.types import Pixels

Decided = tuple[MeanChoice, list[HeldOut], Decisions]
"""The networks that the model averages, the records of their mean, and the decisions by these."""


def folds_stage(run: Run) -> None:
    """Do the fits of the folds; where there are workers, that of the winner beside them.

    Raises:
        DivergedError: the loss or the logits of a training are not finite any more.
    """
    task, report = final_task(run), run.report
    beside: list[Fit] = []
    if task.data.trains_in_parallel and not (task.holds_out or run.folder.is_trained):
        # It trains while others do. Its self-training is for nothing if the records speak against.
        beside.append(task.winner(not task.no_self_training))
        beside += [linear_fit(fit, task.trained) for fit in task.linear]
    watch = Watch(report.epoch) if task.holds_out else Watch()
    fit_all(task, task.fold_fits, report, "trainings of the winner", watch, beside)
    records_of(task)


def are_done(run: Run) -> bool:
    """Return whether the results of all folds are there, or a model for which they decided."""
    if run.folder.is_trained or not run.choice.architecture.is_file():
        return run.folder.is_trained
    fits = (one for fit in final_task(run).fold_fits for one in fit.chain)
    return all(run.store.get(fit) is not None for fit in fits)


def train_stage(run: Run, decided: Decided) -> None:
    """Train the architecture of the run, and write its weights with what was decided.

    It trains on training and validation pixels, unless the configuration says "train": the
    architecture is chosen already, and few pixels are worth more in the training.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    task, context = final_task(run), run.context
    mean, records, decisions = decided
    fits = task.data.task.fits
    linear = {fit: linear_fit(fit, task.trained) for fit in fits if fit in mean.members}
    if NETWORK in mean.members:
        winner = task.winner(decisions.self_training.used)
    else:
        winner = linear.pop(next(iter(linear)))
    watch = Watch(run.report.epoch)
    fit_all(task, [winner, *linear.values()], run.report, "the final training", watch)
    result, *rounds = [result_of(task.store, one).done for one in winner.chain]
    network, architecture = averaged(task.store, winner, linear, task.data.shape)
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
    of_maps = (decisions.self_training, decisions.smoothing, prior)
    for each in (mean, decisions.calibration, *(of_maps if decisions.smoothing else ())):
        assert each is not None
        run.report.line(each.describe())
    card = card_of(context, architecture, task.trained, decisions)
    card = task.data.task.with_intervals(card, records)
    if prior.used:
        card = replace(card, class_shares={"labels": prior.labels, "assumed": prior.assumed})
    save_weights(run.folder.weights, TrainedModel(network, card, training))


def averaged(
    store: Store, winner: Fit, linear: Mapping[str, Fit], shape: Shape
) -> tuple[nn.Module, dict[str, Any]]:
    """Return the winner's network, or its mean with linear ones, and the architecture of it.

    Args:
        linear: fits of the networks in closed form of the mean, by their names.
    """
    network = network_after(store, winner)
    if linear:
        network = mean_network(network, shape, list(linear))
        for name, fit in linear.items():
            network.linear[name] = network_after(store, fit)
    return network, with_members(winner.architecture, (NETWORK, *linear))


def decide_for(task: FinalTask, context: RunContext) -> Decided:
    """Return the decisions for the winner of a run, by its records, and these of its mean.

    Raises:
        InputError: a record is missing or damaged.
    """
    records, data = records_of(task), task.data
    conditions = Conditions(
        smooth=context.config.smooth,
        kept_smoothing=context.origin.smoothing,
        disjoint=data.split.spatially_disjoint,
        no_self_training=task.no_self_training,
        folds=0 if task.holds_out else len(records),
        pixels=task.held_out,
        has_probabilities=data.task.has_probabilities,
    )
    mean = _choose_mean(task, context, records, conditions)
    records = [record.mean(mean.members) for record in records]
    return mean, records, decide(records, data.smoother, conditions)


def _choose_mean(
    task: FinalTask, context: RunContext, records: Sequence[HeldOut], conditions: Conditions
) -> MeanChoice:
    """Choose the networks that the model averages: the winner alone without other ones."""
    architecture = task.architecture
    if not task.linear:
        return MeanChoice((NETWORK,), reason="the run has no networks in closed form")
    if context.feasible is None or MEAN_WITH in architecture:
        given = (NETWORK, *architecture.get(MEAN_WITH, ()))
        return MeanChoice(given, reason="the architecture was given")
    own = architecture["fit"] if space_of(architecture) == LINEAR_SPACE else None

    def fits(members: Sequence[str]) -> bool:
        return context.fits_budget(with_members(architecture, members))

    linear = [fit for fit in task.linear if fit != own]
    return choose_members(records, task.data.smoother, conditions, linear, fits)


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
    temperature = decisions.calibration.temperature
    card = describe(
        data.scene, data.preprocessing, architecture, data.shape, temperature, smoothing
    )
    card = replace(
        card,
        scale_by=context.config.scale_by,
        learnt_from=(*data.sources(trained), *taught_by),
        unknown=None if decisions.unknown is None else decisions.unknown.to_dict(),
    )
    return context.origin.card_of(data.task.described(card), decisions)
