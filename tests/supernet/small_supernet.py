"""A small space, labelled pixels, and the training of a supernet in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hytas._engine import Budget, Feasible, SearchSpace, builtin_space_text
from hytas.models import InputShape
from hytas.models.blocks import Drop
from hytas.supernet import Supernet, SupernetLearner, SupernetSettings
from hytas.train import ALONE, Epoch, Processes, Recipe, TrainingResult, Watch, train
from small import pixels

SHAPE = InputShape(bands=6, classes=3, patch_size=3)
RECIPE = Recipe(epochs=4, batch_size=8, whitened=True)
SMALL = {"embed_dim": [32, 48], "band_depth": [0, 1, 2, 3], "pixel_depth": [0, 1, 2, 3]}


def small_space(**genes: list[Any]) -> str:
    """The text of hytas-wide with some genes' values alone."""
    space = json.loads(builtin_space_text("hytas-wide"))
    for gene in space["genes"]:
        if gene["name"] in genes:
            gene["values"] = genes[gene["name"]]
            gene.pop("weights", None)
    return json.dumps(space)


def feasible(budget: str = "1M-params", **genes: list[Any]) -> Feasible:
    space = SearchSpace.parse(small_space(**{**SMALL, **genes}), SHAPE.variables())
    return Feasible(space, Budget.parse(budget))


def trained(
    among: Feasible,
    settings: SupernetSettings | None = None,
    recipe: Recipe = RECIPE,
    checkpoint: Path | None = None,
    progress: Callable[[Epoch], None] = lambda _: None,
    processes: Processes = ALONE,
) -> tuple[Supernet, TrainingResult]:
    supernet = Supernet.new("hytas-wide", SHAPE, seed=3)
    learner = SupernetLearner(
        supernet,
        among,
        settings or SupernetSettings(),
        seed=3,
        drop=Drop(recipe.drop_path, recipe.dropout),
    )
    result = train(
        learner,
        pixels(24, 0),
        pixels(12, 1),
        recipe,
        seed=3,
        watch=Watch(progress, processes, checkpoint),
    )
    return supernet, result
