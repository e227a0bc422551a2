"""A run in a second: two candidates, no race, and two epochs."""

from hytas.run import RunConfig
from hytas.train import Recipe
from tiny import SPACE

CONFIG = RunConfig(
    budget="2K..8K-params",
    space=SPACE,
    proxy="params",
    population=2,
    generations=1,
    finalists=1,
    patch_size=3,
    split="random",
    train_per_class=10,
    recipe=Recipe(epochs=2, batch_size=8),
)
