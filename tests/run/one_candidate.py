"""A run in a second: two candidates, no race, and two epochs."""

from pathlib import Path

from hytas.data import Scene
from hytas.decide.records import HeldOut
from hytas.job import choose, train_winner
from hytas.run import Report, RunConfig, RunFolder
from hytas.run.context import open_run
from hytas.run.final.fits import records_of as records_of_task
from hytas.run.final.task import final_task
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


def trained(config: RunConfig, scene: Scene, out: Path, report: Report | None = None) -> RunFolder:
    """Return the folder of a run up to its final training: nothing is exported or reported."""
    with open_run(out, config, scene, "cpu", report or Report()) as run:
        choose(run)
        train_winner(run)
    return RunFolder(out)


def records_of(
    config: RunConfig, scene: Scene, out: Path, seed: int | None = None
) -> list[HeldOut]:
    """Return the records that decided for the winner of a run, or for its model of a seed."""
    with open_run(out, config, scene, "cpu", Report()) as run:
        return records_of_task(final_task(run if seed is None else run.of_seed(seed)))
