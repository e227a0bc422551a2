"""Networks trained alone, on the pixels of a supernet: what inherited weights are compared with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from hytas.run.context import Run
from hytas.run.final.train import forget_damaged
from hytas.train import Recipe, TrainingResult, train


def train_alone(
    run: Run, architecture: Mapping[str, Any], recipe: Recipe, checkpoint: Path | None = None
) -> tuple[nn.Module, TrainingResult]:
    """Train an architecture on the training pixels; validation pixels choose the best epoch.

    Raises:
        DivergedError: the training leaves the range of numbers.
    """
    context, data = run.context, run.context.data
    if checkpoint is not None:
        forget_damaged(checkpoint, run.report.line)
    network = context.network(architecture, recipe)
    result = train(
        network,
        data.labelled(data.split.train),
        data.labelled(data.split.validation),
        recipe,
        seed=context.config.seed,
        device=context.device,
        checkpoint=checkpoint,
        progress=run.report.epoch,
    )
    return network.eval(), result


def probability_of(result: TrainingResult) -> float:
    """Return the mean probability of the true class on validation pixels, of the best epoch."""
    return result.history[result.best_epoch - 1].score
