"""Class prior: adapt a trained network to the class shares around the labels of its scene.

Training sets often have the same number of pixels for every class, and a network learns these
shares. Where test pixels lie among labelled ones, pixels of a class look alike in both, and the
shares can be estimated from unlabelled pixels (`hytas.class_prior`). The factors of the classes
become part of the bias of the read-out, so the model keeps its size and its speed.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.class_prior import distance, estimate_prior, label_shares
from hytas.decide.decisions import (
    LEAST_PIXELS,
    Decisions,
    Maps,
    choose_by_brier_score,
    maps_of,
    tempered,
)
from hytas.decide.records import HeldOut
from hytas.deploy.smoothing import around
from hytas.metrics import compare_predictions
from hytas.models import Network
from hytas.results import ClassPrior, SmoothingChoice
from hytas.run.context import RunContext
from hytas.run.prepared import PreparedScene
from hytas.train import Recipe, logits_of
from hytas.types import Pixels, Smoother

STRENGTHS = (1.0, 0.75, 0.5, 0.25)
"""Exponents of the factors. The first one that loses no held-out pixels beyond chance is taken."""
MOST_READ = 2**15
"""Unlabelled pixels that the network classifies; of more, as many, evenly spread."""
LEAST_READ = 100
LEAST_RATIO = 2.0
"""Of the distance of both shares, to the distance by which the estimate misses known shares."""
LEAST_OVERLAP = 0.5
"""Share of test pixels inside the patch of a training pixel at which they lie among these."""


def no_prior(context: RunContext, recipe: Recipe) -> str:
    """Return why a run keeps the class shares of its labels, whatever the scene holds; or ""."""
    config, split = context.config, context.data.split
    if config.class_prior == "labels":
        return "class_prior is labels"
    if recipe.class_weights:
        return "class_weights of the recipe were asked for"
    if not context.data.task.has_probabilities:
        return "values have no shares"
    if not isinstance(context.data, PreparedScene):
        return f"{context.data.unit} have no neighbours"
    if context.origin.no_self_training or context.config.teacher is not None:
        return context.origin.no_self_training or "a teacher assumes shares of its own"
    if split.spatially_disjoint:
        return "the split is spatially disjoint"
    if split.test_only.size:
        return "other scenes, with other shares, are classified, too"
    if np.isin(split.test, split.train_and_validation).all():
        return "no test pixels lie among labelled ones"
    counts = np.bincount(context.data.targets(context.final_pixels[0]))
    alike = np.bincount(counts[counts > 0]).max()
    if alike < max(2, np.count_nonzero(counts) / 2):
        # Labels drawn by number are as many in most classes; others may be shares of the scene.
        return "few classes have the same number of training pixels"
    if split.kind == "fixed" and split.overlap < LEAST_OVERLAP:
        return (
            f"only {split.overlap:.0%} of the test pixels lie inside the patch of a training pixel"
        )
    return ""


def adapt_prior(
    network: nn.Module,
    context: RunContext,
    recipe: Recipe,
    trained: Pixels,
    records: Sequence[HeldOut],
    decisions: Decisions,
) -> ClassPrior:
    """Adapt a trained network, in place, as far as held-out pixels allow.

    The shares of held-out pixels are known, so they tell how far an estimate errs. And as these are
    the shares of the labels, most factors lose some of these pixels. The largest factors are taken
    that lose no more than chance would, in the map as it was smoothed before. So a class with
    few pixels is not given up for the others.

    Args:
        network: trained by `recipe` on pixels `trained` of the run's scene.
        records: of held-out pixels, with which the decisions were made.
        decisions: on temperature and smoothing.

    Returns:
        What was decided; `shifted` gives the records of the adapted network.
    """
    if reason := no_prior(context, recipe):
        return ClassPrior(False, reason=reason)
    head = getattr(network, getattr(network, "readout", Network.readout), None)
    bias = getattr(head, "bias", None)
    if not isinstance(bias, nn.Parameter):
        return ClassPrior(False, reason="the read-out has no bias")
    compared = sum(len(record.compared) for record in records)
    if compared < LEAST_PIXELS or decisions.calibration.reason:
        reason = f"the confidence of {compared} validation pixels is not calibrated"
        return ClassPrior(False, compared, reason=reason)
    data, temperature = context.data.as_scene, decisions.calibration.temperature
    near = np.setdiff1d(around(trained, data.usable, 2 * data.guide.radius), trained)
    read = near[:: -(-len(near) // MOST_READ) or 1]
    if len(read) < LEAST_READ:
        reason = f"{len(read)} unlabelled pixels lie around the labels, fewer than {LEAST_READ}"
        return ClassPrior(False, compared, reason=reason)
    counts = np.bincount(data.targets(trained), minlength=len(bias))
    labels = label_shares(counts)
    logits = logits_of(network, data.unlabelled(read), context.device)
    chances = tempered(logits, temperature)
    prior = estimate_prior(chances, labels, counts, len(near) / len(read))
    error = _error(records, decisions, labels)
    choice = ClassPrior(
        False,
        compared,
        len(near),
        labels.tolist(),
        prior.tolist(),
        distance(prior, labels),
        error,
    )
    if choice.distance < LEAST_RATIO * error:
        return replace(choice, reason="the estimate is not sure enough")
    assert data.smoother is not None  # samples have classes
    choice = _strongest(choice, records, decisions, data.smoother)
    if choice.used:
        with torch.no_grad():
            bias.add_(torch.from_numpy(_shift(choice, decisions)).to(bias))
    return choice


def shifted(records: Sequence[HeldOut], choice: ClassPrior, decisions: Decisions) -> list[HeldOut]:
    """Return the records as the network gives them with other class shares."""
    return [record.shifted(_shift(choice, decisions)) for record in records]


def smoothing_with(
    choice: ClassPrior, records: Sequence[HeldOut], decisions: Decisions, context: RunContext
) -> SmoothingChoice | None:
    """Return how maps of an adapted network are smoothed, unless the user said so.

    Args:
        choice: that was used.
        records: as the adapted network gives them (`shifted`).
        decisions: before it was adapted.
        context: of the run.
    """
    smoothing = decisions.smoothing
    if smoothing is None or context.config.smooth != "auto":
        return smoothing
    smoother = context.data.as_scene.smoother
    assert smoother is not None  # `smoothing` has one
    maps = _maps(records, decisions, smoother)
    return choose_by_brier_score(smoothing, maps, np.divide(choice.scene, choice.labels))


def _maps(records: Sequence[HeldOut], decisions: Decisions, smoother: Smoother) -> Maps:
    self_trained, temperature = decisions.self_training.used, decisions.calibration.temperature
    return maps_of(records, self_trained, smoother, temperature)


def _shift(choice: ClassPrior, decisions: Decisions) -> NDArray[np.float32]:
    """Return what is added to the logits, which the temperature divides."""
    factors = np.array(choice.log_factors)
    return (decisions.calibration.temperature * factors).astype(np.float32)


def _strongest(
    choice: ClassPrior, records: Sequence[HeldOut], decisions: Decisions, smoother: Smoother
) -> ClassPrior:
    """Return the choice with the largest factors that lose no held-out pixels beyond chance."""
    method = "none" if decisions.smoothing is None else decisions.smoothing.method

    before = _maps(records, decisions, smoother).right(method)
    for strength in STRENGTHS:
        choice = replace(choice, strength=strength)
        after = _maps(shifted(records, choice, decisions), decisions, smoother).right(method)
        choice = replace(choice, OA_before=float(before.mean()), OA_after=float(after.mean()))
        if not compare_predictions(after, before)[2]:
            return replace(choice, used=True)
    return replace(choice, strength=0.0, reason="held-out pixels were lost by all factors")


def _error(records: Sequence[HeldOut], decisions: Decisions, labels: NDArray[np.float64]) -> float:
    """Return the distance of the estimated shares of held-out pixels from their true ones."""
    self_trained, temperature = decisions.self_training.used, decisions.calibration.temperature
    logits = np.concatenate([record.final_logits(self_trained)[0] for record in records])
    targets = np.concatenate([record.targets for record in records])
    true = np.bincount(targets, minlength=len(labels)) / len(targets)
    return distance(estimate_prior(tempered(logits, temperature), labels), true)
