"""Class prior: adapt a trained network to the class shares around the labels of its scene.

Training pixels are often drawn so that each class has as many, and a network learns these shares.
Where test pixels lie among labelled ones, pixels of a class look alike in both, and the shares can
be estimated from unlabelled pixels (`hytas.class_prior`). The factors of the classes become part of
the bias of the read-out, so the model keeps its size and its speed.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.class_prior import distance, estimate_prior, label_shares
from hytas.deploy.smoothing import around
from hytas.metrics import compare_predictions
from hytas.models import Network
from hytas.results import ClassPrior
from hytas.run.context import RunContext
from hytas.run.final.decide import LEAST_PIXELS, Decisions, maps_of, probabilities
from hytas.run.final.held_out import HeldOut
from hytas.run.prepared import PreparedScene
from hytas.train import Recipe, logits_of
from hytas.types import Pixels

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
        return "class_prior labels was asked for"
    if recipe.class_weights:
        return "class_weights of the recipe were asked for"
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
        # Drawn by number, most classes have as many; else their shares may be those of the scene.
        return "most classes have another number of training pixels than the others"
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
) -> tuple[ClassPrior, list[HeldOut]]:
    """Adapt a trained network, in place, as far as held-out pixels allow.

    The shares of held-out pixels are known, so they tell how far an estimate errs. And as these are
    the shares of the labels, most factors lose some of these pixels. The largest factors are taken
    that lose no more than chance would, in the map that the run makes. So a class with few pixels
    is not given up for the others.

    Args:
        network: trained by `recipe` on pixels `trained` of the run's scene.
        records: of held-out pixels, with which the decisions were made.
        decisions: on temperature and smoothing.

    Returns:
        What was decided; and the records as the adapted networks give them.
    """
    if reason := no_prior(context, recipe):
        return ClassPrior(False, reason=reason), list(records)
    head = getattr(network, getattr(network, "readout", Network.readout), None)
    if not isinstance(head, nn.Linear) or head.bias is None:
        return ClassPrior(False, reason="the read-out is no linear layer with a bias"), list(
            records
        )
    compared = sum(len(record.compared) for record in records)
    if compared < LEAST_PIXELS or decisions.calibration.reason:
        reason = f"the confidence of {compared} validation pixels is not calibrated"
        return ClassPrior(False, compared, reason=reason), list(records)
    data, temperature = context.data.as_scene, decisions.calibration.temperature
    near = np.setdiff1d(around(trained, data.usable, 2 * data.guide.radius), trained)
    read = near[:: -(-len(near) // MOST_READ) or 1]
    if len(read) < LEAST_READ:
        reason = f"{len(read)} unlabelled pixels lie around the labels, less than {LEAST_READ}"
        return ClassPrior(False, compared, reason=reason), list(records)
    # A class without a training pixel counts as half of one: a share of 0 has no logarithm.
    counts = np.maximum(np.bincount(data.targets(trained), minlength=head.out_features), 0.5)
    labels, self_trained = label_shares(counts), decisions.self_training.used
    logits = logits_of(network, data.unlabelled(read), context.device)
    chances = probabilities(logits, temperature)
    prior = estimate_prior(chances, labels, counts, len(near) / len(read))
    choice = ClassPrior(
        False,
        compared,
        len(near),
        labels.tolist(),
        prior.tolist(),
        distance(prior, labels),
        _error(records, self_trained, temperature, labels),
    )
    if choice.distance < LEAST_RATIO * choice.error:
        return replace(choice, reason="the estimate is not sure enough"), list(records)

    def right(shifted: Sequence[HeldOut]) -> NDArray[np.bool_]:
        maps = maps_of(shifted, self_trained, data.smoother, temperature)
        return maps.right("none" if decisions.smoothing is None else decisions.smoothing.method)

    before = right(records)
    for strength in STRENGTHS:
        shift = (temperature * strength * np.log(prior / labels)).astype(np.float32)
        shifted = [record.shifted(shift) for record in records]
        after = right(shifted)
        accuracies = float(before.mean()), float(after.mean())
        choice = replace(choice, OA_before=accuracies[0], OA_after=accuracies[1])
        if not compare_predictions(after, before)[2]:
            with torch.no_grad():
                head.bias.add_(torch.from_numpy(shift).to(head.bias))
            return replace(choice, used=True, strength=strength), shifted
    return replace(choice, reason="held-out pixels were lost by all factors"), list(records)


def _error(
    records: Sequence[HeldOut], self_trained: bool, temperature: float, labels: NDArray[np.float64]
) -> float:
    """Return the distance of the estimated shares of held-out pixels from their true ones."""
    logits = np.concatenate([record.final_logits(self_trained)[0] for record in records])
    targets = np.concatenate([record.targets for record in records])
    true = np.bincount(targets, minlength=len(labels)) / len(targets)
    return distance(estimate_prior(probabilities(logits, temperature), labels), true)
