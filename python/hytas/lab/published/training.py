"""Train a published network by the one training loop, with the recipe of its paper."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from hytas.data import Preprocessing
from hytas.models import InputShape, check_band_group, count_parameters
from hytas.models.layers import probabilities
from hytas.references.task import FitProgress, Predicted, Task
from hytas.run.source import RunSource
from hytas.run.start import Scratch
from hytas.store import open_store
from hytas.train import LabelledPixels, Recipe
from hytas.train.fit import Fit
from hytas.train.loop import Watch
from hytas.train.presets import BARE
from hytas.train.schedule import Schedule
from hytas.types import Array, Pixels

TEST = "test"


def published_recipe(task: Task, steps: int, **settings: Any) -> Recipe:
    """Return a recipe without any part of hytas' own: AdamW, by default without warm-up.

    Args:
        steps: as published; those of the task replace them.
    """
    values = BARE | {"dropout": 0.0, "warmup": 0.0, "clip_norm": 1e9} | settings
    return Recipe(**values, steps=task.steps or steps)


@dataclass(frozen=True, eq=False)
class PublishedSource(RunSource):
    """What the training of a published network reads.

    Attributes:
        make: returns the network with random weights.
    """

    make: Callable[[InputShape], nn.Module] | None = None

    def network(self, fit: Fit) -> nn.Module:
        """Return the network, whose weights the seed of the fit decides."""
        assert self.make is not None
        assert isinstance(self.shape, InputShape)
        with torch.random.fork_rng([]):
            torch.manual_seed(fit.seed)
            return self.make(self.shape)


def fit_published(
    task: Task,
    progress: FitProgress,
    scaling: Preprocessing,
    make: Callable[[InputShape], nn.Module],
    recipe: Recipe,
    schedule: type[Schedule] = Schedule,
) -> Predicted:
    """Train a network on all training pixels of a task, and predict the test pixels.

    Args:
        schedule: of the learning rate; that of `Schedule` keeps its peak.
    """
    source = _source(task, scaling, make)
    epochs, pixels = recipe.epochs_for(len(task.train)), task.train
    fit = Fit(
        {"published": make.__name__},
        recipe,
        task.seed,
        pixels,
        pixels[:0],
        schedule=schedule(epochs, 0.0, None),
        logits={TEST: task.test},
    )
    watch = Watch(lambda epoch: progress("train", epoch.epoch, epoch.epochs))
    with open_store(task.fits, source) as store:
        fitted = store.one(fit, watch)
    trained = fitted.done
    chances = probabilities(torch.from_numpy(fitted.logits[TEST]).double()).numpy()
    steps = len(trained.history) * recipe.steps_per_epoch(len(pixels))
    details = {"parameters": count_parameters(source.network(fit)), "steps": steps}
    return Predicted(chances.argmax(axis=1).astype(np.int64), chances, details)


def _source(
    task: Task, scaling: Preprocessing, make: Callable[[InputShape], nn.Module]
) -> PublishedSource:
    check_band_group(task.band_group, len(scaling.bands))
    shape = InputShape(len(scaling.bands), task.classes, task.patch_size, task.band_group)

    def patches(pixels: Pixels) -> Array:
        return task.patches(pixels, scaling)

    known = LabelledPixels(patches, task.train, task.targets, task.classes).kept()
    tested = LabelledPixels(patches, task.test, np.zeros(len(task.test), np.int64), task.classes)
    digest = hashlib.sha256(known.patches(task.train).tobytes() + task.targets.tobytes())
    return PublishedSource(
        digest=digest.hexdigest(),
        shape=shape,
        origin=Scratch(),
        tune="all",
        class_names=(),
        device=torch.device(task.device),
        one_thread=False,
        known=known,
        others=tested,
        data=None,
        make=make,
    )
