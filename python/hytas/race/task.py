"""The task of a race: networks, pixels, folds and recipes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from hytas.models import as_network
from hytas.race.front import FRONT_FINALISTS
from hytas.race.rankings import DEFAULT_RANKING
from hytas.race.rungs import CONVERTED_FINALISTS, FEW_FINALISTS, LEAST_FINALISTS, PREFERENCES, Rung
from hytas.search import Evaluation, MethodFold
from hytas.store import Store
from hytas.train import Recipe, distinct
from hytas.train.fit import Fit
from hytas.types import Pixels

ENOUGH_PIXELS = 60
"""Validation pixels, of all folds together, on which a race can rank. Each fold costs as much."""
MANY_PIXELS = 1000
"""Validation pixels wanted in the last rung; on fewer, one pixel may decide."""


@dataclass(frozen=True, eq=False)
class RaceTask:
    """Networks, pixels, folds and recipes of a race.

    Attributes:
        fits: store of the trainings; its source has the networks and the pixels.
        folds: flat indices of training and of validation pixels, for each fold; at least one.
            Early rungs, of many finalists, take the first ones (`folds_of`).
        further: additional folds of the last rung, so that most labelled pixels validate once.
        prefer: "accurate" or "small": the finalist that wins among those within a standard
            deviation of chance of the first.
        recipes: name -> recipe of the final training. A rung takes all of it but the length.
        seed: of every training.
        ranking: name of one of `hytas.race.RANKINGS`.
        linear: networks in closed form, which join the last rung of each race.
        target: format that finalists of the last rung are ranked in; "" ranks them as trained.
        finalists: of the first rung; all candidates if there are fewer.
        steps: optimiser steps of the first rung.
        known: architectures that are finalists before all others.
        front: costs of a Pareto front with accuracy that the race is for; () for none.
    """

    fits: Store
    folds: Sequence[tuple[Pixels, Pixels]]
    recipes: Mapping[str, Recipe]
    seed: int
    ranking: str = DEFAULT_RANKING
    further: Sequence[tuple[Pixels, Pixels]] = ()
    prefer: str = PREFERENCES[0]
    front: tuple[str, ...] = ()
    linear: Sequence[Evaluation] = ()
    target: str = ""
    finalists: int = 24
    steps: int = 60
    known: Collection[Mapping[str, Any]] = ()

    @property
    def last_finalists(self) -> int:
        """Return the number of finalists of the last rung."""
        if self.front:
            return FRONT_FINALISTS
        return CONVERTED_FINALISTS if self.target else LEAST_FINALISTS

    @property
    def all_folds(self) -> list[tuple[Pixels, Pixels]]:
        """Return the folds of the last rung, beginning with those of earlier rungs."""
        return [*self.folds, *self.further]

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
            first, none = next(iter(recipes.values())), np.empty(0, np.int64)
            network = self.fits.source.network(Fit(architecture, first, self.seed, none, none))
            assert isinstance(network, nn.Module)
            if as_network(network, "recipe whitened").pixel_projection is None:
                recipes = {n: replace(recipe, whitened=False) for n, recipe in recipes.items()}
        return list(distinct(recipes))

    def folds_of(self, rung: Rung) -> int:
        """Return the number of folds of a rung: all in the last one, few with many finalists."""
        if rung.all_folds:
            return len(self.all_folds)
        if rung.finalists <= FEW_FINALISTS:
            return len(self.folds)
        sums = np.cumsum([len(held_out) for _, held_out in self.folds])
        return min(int(np.searchsorted(sums, ENOUGH_PIXELS)) + 1, len(self.folds))

    def accepts(self, fit: MethodFold) -> bool:
        """Return whether a fit of a reference method is of one of these folds."""
        return fit.fold < len(self.folds) and fit.pixels == len(self.folds[fit.fold][1])
