"""A race of networks so small that a training takes milliseconds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

import hytas.race
from hytas.race import RaceListener, RacePlan, Racer, RaceTask, RungResult, rung_results
from hytas.race.plan import RungRanks, TrialBatch, Winner
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.store import Store
from hytas.train import LabelledPixels, Recipe, recipes_of
from hytas.train.fit import Fit
from hytas.types import Pixels

CLASSES, PIXELS = 3, 90
CPU = torch.device("cpu")
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


@dataclass(frozen=True)
class SmallSource:
    """What the fits of a small race read; all pixels are in memory."""

    build: Build
    known: LabelledPixels
    digest: str = "small"
    device: torch.device = CPU
    one_thread: bool = True
    reads_all: bool = True

    def network(self, fit: Fit) -> nn.Module:
        return self.build(fit.architecture, fit.recipe)

    def labelled(self, pixels: Pixels) -> LabelledPixels:
        return self.known.subset(pixels)

    def training(self, fit: Fit, network: nn.Module) -> LabelledPixels:
        return self.labelled(fit.trained)

    def unlabelled(self, pixels: Pixels) -> LabelledPixels:
        return self.labelled(pixels)

    @property
    def patch_bytes(self) -> int:
        return self.known.patch_bytes

    def packed(self) -> Self:
        return self._packed

    @cached_property
    def _packed(self) -> Self:
        return replace(self, known=self.known.in_memory())


def race_task(
    folds: int = 1, build: Build = build, epochs: int = 0, recipes: Sequence[str] = ("plain",)
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
    return RaceTask(Store(Path(), SmallSource(build, labelled)), parts, named, 0)


def race(task: RaceTask, ranked: Sequence[Evaluation], store: EvaluationStore, **asked) -> Racer:
    """Hold a race whose fits lie next to a store."""
    fits = Store(store.path.with_suffix(".fits"), task.fits.source)
    own = {name: asked.pop(name) for name in ("finalists", "steps", "known") if name in asked}
    listener = RaceListener()
    told = {"notify": "line", "on_training": "training", "on_rung": "rung"}
    for name, method in told.items():
        setattr(listener, method, asked.pop(name, getattr(listener, method)))
    task = replace(task, fits=fits, **own)
    return hytas.race.race(task, ranked, store, listener=listener, **asked)


def replay(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    finalists: int = 5,
    steps: int = 3,
    over: bool = False,
    known: Sequence[Mapping[str, Any]] = (),
) -> tuple[Racer, list[RungRanks]]:
    """Return the winner of a race whose trainings are in a store, and the ranks of its rungs."""
    results = {((t.id, t.recipe), t.steps, t.fold): t for t in store.trainings()}
    task = replace(task, finalists=finalists, steps=steps, known=known)
    walk = RacePlan(task, ranked).walk()
    ranks, step = [], next(walk)
    while not isinstance(step, Winner):
        if isinstance(step, RungRanks):
            ranks.append(step)
        if isinstance(step, TrialBatch) and not over:
            assert all(one.key in results for one in step.trials)
        step = walk.send((results, over))
    assert step.racer is not None
    return step.racer, ranks


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


def figures(accuracy: float, probability: float | None = None) -> dict[str, float]:
    """What a training reached; the probability is as large as the accuracy unless told."""
    return {"accuracy": accuracy, "probability": accuracy if probability is None else probability}


def results(store: EvaluationStore) -> list[RungResult]:
    """What the finalists reached in the rungs."""
    return rung_results(store.trainings())


def without_time(store: EvaluationStore) -> list[Training]:
    """The trainings but for their seconds."""
    return [replace(item, seconds=0.0) for item in store.trainings()]
