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
from hytas.run.final.fits import (
    fit_all,
    folds_of,
    linear_fit,
    network_after,
    records_of,
    result_of,
    winner_fit,
)
from hytas.run.final.prior import adapt_prior, shifted, smoothing_with
from hytas.run.folder import read_json
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
from hytas.spaces.names import LINEAR_SPACE, MEAN_WITH
from hytas.train.fit import Fit
from hytas.train.loop import Watch
from hytas.types import Pixels


def folds_stage(run: Run) -> None:
    """Do the fits of the folds; where there are workers, that of the winner beside them.

    Raises:
        DivergedError: the loss or the logits of a training are not finite any more.
    """
    folds, data = folds_of(run)[0], run.context.data
    of_winner = run.context.holds_out_validation
    beside: list[Fit] = []
    if data.trains_in_parallel and not (of_winner or run.folder.is_trained):
        # It trains while others do. Its self-training is for nothing if the records speak against.
        beside.append(winner_fit(run, not run.no_self_training))
        beside += [linear_fit(fit, beside[0].trained) for fit in run.context.fits]
    fits = [*(fold.last for fold in folds), *(fit for fold in folds for fit in fold.linear)]
    workers = run.training_workers if data.trains_in_parallel and not of_winner else "1"
    watch = Watch(run.report.epoch if of_winner else lambda _: None)
    fit_all(run, fits, workers, "trainings of the winner", watch, beside)
    records_of(run)


def are_done(run: Run) -> bool:
    """Return whether the results of all folds are there, or a model for which they decided."""
    if run.folder.is_trained or not run.choice.architecture.is_file():
        return run.folder.is_trained
    fits = [fit for fold in folds_of(run)[0] for fit in (*fold.last.chain, *fold.linear)]
    return all(run.store.get(fit) is not None for fit in fits)


def train_stage(run: Run) -> None:
    """Decide by the records, train the architecture of the run, and write its weights.

    It trains on training and validation pixels, unless the configuration says "train": the
    architecture is chosen already, and few pixels are worth more in the training.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    context, data = run.context, run.context.data
    mean, records, decisions = decide_for(run)
    winner = winner_fit(run, decisions.self_training.used)
    linear = {fit: linear_fit(fit, winner.trained) for fit in data.task.fits if fit in mean.members}
    parallel = data.trains_in_parallel and not context.holds_out_validation
    watch = Watch(run.report.epoch)
    workers = run.training_workers if parallel else "1"
    fit_all(run, [winner, *linear.values()], workers, "the final training", watch)
    result, *rounds = [result_of(run, one).done for one in winner.chain]
    network, architecture = averaged(run, winner, linear)
    recipe, trained = run.recipe[1], winner.trained
    prior = adapt_prior(network, context, recipe, trained, records, decisions)
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
    card = card_of(context, architecture, winner.trained, decisions)
    card = data.task.with_intervals(card, records)
    if prior.used:
        card = replace(card, class_shares={"labels": prior.labels, "assumed": prior.assumed})
    save_weights(run.folder.weights, TrainedModel(network, card, training))


def averaged(run: Run, winner: Fit, linear: Mapping[str, Fit]) -> tuple[nn.Module, dict[str, Any]]:
    """Return the winner's network, or its mean with linear ones, and the architecture of it.

    Args:
        linear: fits of the networks in closed form of the mean, by their names.
    """
    network, shape = network_after(run.store, winner), run.context.data.shape
    if linear:
        network = mean_network(network, shape, list(linear))
        for name, fit in linear.items():
            network.linear[name] = network_after(run.store, fit)
    return network, with_members(winner.architecture, (NETWORK, *linear))


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
        has_probabilities=context.data.task.has_probabilities,
    )
    records = records_of(run)
    mean = _choose_mean(run, records, conditions)
    records = [record.mean(mean.members) for record in records]
    return mean, records, decide(records, context.data.smoother, conditions)


def _choose_mean(run: Run, records: Sequence[HeldOut], conditions: Conditions) -> MeanChoice:
    """Choose the networks that the model averages: the winner alone without other ones."""
    context, architecture = run.context, read_json(run.choice.architecture)
    if not context.fits:
        return MeanChoice((NETWORK,), reason="the run has no networks in closed form")
    if context.feasible is None or MEAN_WITH in architecture:
        given = (NETWORK, *architecture.get(MEAN_WITH, ()))
        return MeanChoice(given, reason="the architecture was given")
    own = architecture["fit"] if space_of(architecture) == LINEAR_SPACE else None

    def fits(members: Sequence[str]) -> bool:
        costs = context.costs(with_members(architecture, members))
        bounds = parse_budget(context.config.budget or ()).bounds
        return all(costs.get(name, most) <= most for name, _, most in bounds)

    linear = [fit for fit in context.fits if fit != own]
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
