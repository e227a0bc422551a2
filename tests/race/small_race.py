"""A race of networks so small that a training takes milliseconds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hytas.race import RaceTask, RungResult, rung_results
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.train import LabelledPixels, Recipe, recipes_of

CLASSES, PIXELS = 3, 90
RECIPE = Recipe(epochs=0, batch_size=16, whitened=False)

Build = Callable[[Mapping[str, Any], Recipe], nn.Module]


class Small(nn.Module):
    """One hidden layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(9 * 4, width), nn.Linear(width, CLASSES)

    def forward(self, patches: Tensor) -> Tensor:
        return self.head(self.hidden(patches.flatten(1)).relu())


def build(architecture: Mapping[str, Any], _: Recipe = RECIPE) -> nn.Module:
    """The network of an architecture, with weights of its own."""
    torch.manual_seed(architecture["embed_dim"])
    return Small(architecture["embed_dim"])


def race_task(
    folds: int = 1,
    build: Build = build,
    epochs: int = 0,
    recipes: Sequence[str] = ("plain",),
    folder: Path | None = None,
) -> RaceTask:
    """Three classes of 4 bands that overlap; a third of the pixels validates, others in turn."""
    generator = np.random.default_rng(1)
    targets = np.arange(PIXELS) % CLASSES
    patches = generator.normal(targets[:, None, None, None], 1.5, (PIXELS, 3, 3, 4))
    patches = patches.astype(np.float32)
    pixels = np.arange(PIXELS)
    labelled = LabelledPixels(lambda chosen: patches[chosen], pixels, targets, CLASSES)
    parts = [(pixels[pixels % 4 != fold], pixels[pixels % 4 == fold]) for fold in range(folds)]
    named = recipes_of(replace(RECIPE, epochs=epochs), ",".join(recipes))
    return RaceTask(build, labelled, parts, named, 0, torch.device("cpu"), folder)


def ranked(count: int) -> list[Evaluation]:
    """So many finalists of different widths; their numbers are not their ranks."""
    return [
        Evaluation(10 + 7 * place % 11, 0, {"space": "s", "embed_dim": 4 + place}, {}, {}, {}, 0.0)
        for place in range(count)
    ]


class Counting:
    """Builds networks, and counts how often each architecture was built."""

    def __init__(self, instead: Callable[["Counting", int], nn.Module | None]) -> None:
        """`instead` gives another network for a width, where it returns one."""
        self.instead = instead
        self.widths: list[int] = []

    @property
    def times(self) -> Counter[int]:
        """Width -> how often it was built."""
        return Counter(self.widths)

    def __call__(self, architecture: Mapping[str, Any], _: Recipe) -> nn.Module:
        width = architecture["embed_dim"]
        self.widths.append(width)
        return self.instead(self, width) or build(architecture)


def figures(accuracy: float, probability: float = 0.0) -> dict[str, float]:
    """What a training reached, with and without augmentation."""
    return {"accuracy": accuracy, "augmented_accuracy": accuracy, "probability": probability}


def results(store: EvaluationStore) -> list[RungResult]:
    """What the finalists reached in the rungs."""
    return rung_results(store.trainings())


def without_time(store: EvaluationStore) -> list[Training]:
    """The trainings but for their seconds."""
    return [replace(item, seconds=0.0) for item in store.trainings()]
