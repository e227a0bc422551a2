"""The task of a race: networks, pixels, folds and recipes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hytas.models import as_network
from hytas.race.front import FRONT_FINALISTS
from hytas.race.rankings import DEFAULT_RANKING
from hytas.race.results import Key
from hytas.race.rungs import FEW_FINALISTS, LEAST_FINALISTS, PREFERENCES, Rung
from hytas.search import Evaluation, MethodVote, unpack_classes
from hytas.train import LabelledPixels, Recipe, distinct
from hytas.types import Pixels

ENOUGH_PIXELS = 60
"""Validation pixels, of all folds together, on which a race can rank. Each fold costs as much."""
MANY_PIXELS = 1000
"""Validation pixels wanted in the last rung; on fewer, one pixel may decide."""
FEW_LABELS = 400
"""Training and validation pixels below which finalists are of all kinds and sizes alike."""
FOLDS_WITH_VOTE = 2
"""Most folds of a first rung in which finalists vote. Measured: notes/decisions.md."""


@dataclass(frozen=True, eq=False)
class RaceTask:
    """Networks, pixels, folds and recipes of a race.

    Attributes:
        build: architecture and recipe -> its untrained network.
        labelled: all pixels that the race may read, in ascending order.
        folds: flat indices of training and of validation pixels, for each fold; at least one.
            Early rungs, of many finalists, take the first ones (`folds_of`).
        further: additional folds of the last rung, so that most labelled pixels validate once.
        prefer: "accurate" or "small": the finalist that wins among those within a standard
            deviation of chance of the first.
        recipes: name -> recipe of the final training. A rung takes all of it but the length.
        seed: of every training.
        device: of the training.
        folder: of the checkpoints between rungs; it is removed at the end. None trains each rung
            from the start, to the same result.
        ranking: name of one of `hytas.race.RANKINGS`.
        augmented: recipe whose noise, illumination and brightness give the augmented accuracy,
            whatever recipe a racer is trained by.
        unlabelled: unlabelled pixels, whose targets are ignored; racers are ranked by their
            agreement on them (`hytas.race.consensus`). None ranks by validation pixels alone.
        linear: linear networks, which join the last rung of each race.
        front: costs of a Pareto front with accuracy that the race is for; () for none.
    """

    build: Callable[[Mapping[str, Any], Recipe], nn.Module]
    labelled: LabelledPixels
    folds: Sequence[tuple[Pixels, Pixels]]
    recipes: Mapping[str, Recipe]
    seed: int
    device: torch.device
    folder: Path | None = None
    ranking: str = DEFAULT_RANKING
    augmented: Recipe = field(default_factory=Recipe)
    unlabelled: LabelledPixels | None = None
    further: Sequence[tuple[Pixels, Pixels]] = ()
    prefer: str = PREFERENCES[0]
    front: tuple[str, ...] = ()
    linear: Sequence[Evaluation] = ()

    @property
    def has_few_labels(self) -> bool:
        """Whether finalists of all sizes have equal chances, because labels are few."""
        return self.unlabelled is None and len(self.labelled) < FEW_LABELS

    @property
    def last_finalists(self) -> int:
        """Return the number of finalists of the last rung."""
        return FRONT_FINALISTS if self.front else LEAST_FINALISTS

    @property
    def all_folds(self) -> list[tuple[Pixels, Pixels]]:
        """Return the folds of the last rung, beginning with those of earlier rungs."""
        return [*self.folds, *self.further]

    @property
    def patch_bytes(self) -> int:
        """Bytes of the patches that each worker needs."""
        return sum(part.patch_bytes for part in (self.labelled, self.unlabelled) if part)

    @property
    def final_steps(self) -> int:
        """Optimiser steps of a whole training on the first fold; 0 where the recipe has none."""
        pixels = len(self.folds[0][0])
        return max(recipe.steps_for(pixels) for recipe in self.recipes.values())

    def recipes_for(self, architecture: Mapping[str, Any]) -> list[str]:
        """Return the recipes that train a network in different ways; of equal ones the first.

        Whitening sets the projection of pixels. A network without one trains the same either way.
        """
        recipes = self.recipes
        if len({recipe.whitened for recipe in recipes.values()}) > 1:
            network = self.build(architecture, next(iter(recipes.values())))
            if as_network(network, "recipe whitened").pixel_projection is None:
                recipes = {n: replace(recipe, whitened=False) for n, recipe in recipes.items()}
        return list(distinct(recipes))

    def folds_of(self, rung: Rung) -> int:
        """Return the number of folds of a rung: all in the last one, few with many finalists.

        In the first rung the vote also separates finalists, so `FOLDS_WITH_VOTE` are enough.
        """
        if rung.all_folds:
            return len(self.all_folds)
        if rung.finalists <= FEW_FINALISTS:
            return len(self.folds)
        sums = np.cumsum([len(held_out) for _, held_out in self.folds])
        enough = min(int(np.searchsorted(sums, ENOUGH_PIXELS)) + 1, len(self.folds))
        voted = rung.steps == rung.first and self.unlabelled is not None
        return min(enough, FOLDS_WITH_VOTE) if voted else enough

    def accepts(self, vote: MethodVote) -> bool:
        """Return whether a vote is of these folds and pixels."""
        return (
            vote.fold < len(self.folds)
            and vote.pixels == len(self.folds[vote.fold][1])
            and len(unpack_classes(vote.predictions)) == len(self.unlabelled or ())
        )

    def checkpoint(self, racer: Key, fold: int) -> Path | None:
        """Return the checkpoint file of a racer on a fold."""
        if self.folder is None:
            return None
        self.folder.mkdir(exist_ok=True)
        number, recipe = racer
        return self.folder / f"{number}-{recipe}-{fold}.safetensors"

    def keep_checkpoints(self, racers: Iterable[Key]) -> None:
        """Remove the checkpoints of all other racers; without `racers`, the folder."""
        if self.folder is None or not self.folder.exists():
            return
        kept = {self.checkpoint(key, fold) for key in racers for fold in range(len(self.all_folds))}
        for path in self.folder.iterdir():
            if path not in kept:
                path.unlink()
        if not kept:
            self.folder.rmdir()
