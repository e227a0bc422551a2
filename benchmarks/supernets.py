"""What supernets cost, and what the spaces that they evolve are worth.

    python benchmarks/supernets.py costs --data IndianPine.mat
    python benchmarks/supernets.py spaces original.json evolved.json random.json \
        --data IndianPine.mat --budget 20K..100K-params

All times are CPU seconds of one process with one thread, so other programs change them little.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from hytas.data import load_scene
from hytas.machine import one_thread
from hytas.models import build_network
from hytas.models.blocks import Drop
from hytas.run import RunConfig
from hytas.run.choosing.searching import race_stage, search_stage
from hytas.run.context import Run, open_run
from hytas.run.folder import read_json
from hytas.run.progress import SILENT
from hytas.run.supernet import train_alone
from hytas.supernet import InheritedScore, Judge, Supernet, SupernetLearner, SupernetSettings
from hytas.train import LabelledPixels, Recipe, Subnet
from hytas.train.learner import OneNetwork
from hytas.train.loop import train_epoch
from hytas.train.state import TrainingState
from hytas.train.step import Course

STEPS = 4
"""Steps of each subnet that are timed, after one that is not."""


def common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all sections share."""
    options = [
        click.option("--data", required=True),
        click.option("--labels"),
        click.option("--budget", default="20K..100K-params", show_default=True),
        click.option("--split", default="auto"),
        click.option("--seed", default=0),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def opened(data: str, labels: str | None, folder: Path, **settings: Any) -> Iterator[Run]:
    """Yield a run in a folder."""
    config = RunConfig(presets="full", **settings)
    with open_run(folder, config, load_scene(data, labels=labels), "cpu", SILENT) as run:
        yield run


@click.group()
def main() -> None:
    torch.set_num_threads(1)


class OneSubnet(SupernetLearner):
    """A learner that trains a given architecture, cut anew for each step."""

    architecture: dict[str, Any]

    def subnets(self, epoch: int, steps: int) -> Iterator[Sequence[Subnet]]:
        for _ in range(steps):
            yield [self._subnet(self.architecture)]


def seconds(work: Callable[[], object], times: int) -> float:
    """Return the mean CPU seconds of a piece of work, after it was done once."""
    work()
    begun = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begun) / times


@main.command()
@common
@click.option("--space", default="hytas-wide", show_default=True)
@click.option("--subnets", default=60, show_default=True)
def costs(data: str, labels: str | None, subnets: int, **settings: Any) -> None:
    """A step of a supernet beside steps of the same networks alone; and 1000 inherited scores."""
    with tempfile.TemporaryDirectory() as folder, one_thread():
        for run in opened(data, labels, Path(folder) / "run", **settings):
            context, recipe = run.context, Recipe()
            shape, split = context.data.shape, context.data.split
            drawn = context.feasible.space.unpack(
                context.feasible.sample(subnets, run.context.config.seed, "choices")
            )
            supernet = Supernet.new(context.space.name, shape, 0)
            batch = context.data.labelled(split.train[: recipe.batch_size])
            shared, alone = _steps(supernet, run, drawn, batch, recipe)
            print(f"a step of {subnets} subnets: {1000 * shared:.1f} ms")
            print(f"a step of them alone:     {1000 * alone:.1f} ms, ratio {shared / alone:.2f}")
            validation = context.data.labelled(split.validation)
            score, begun, wall = (
                InheritedScore(supernet, validation),
                time.process_time(),
                time.time(),
            )
            for architecture in drawn:
                score(architecture)
            spent, waited = time.process_time() - begun, time.time() - wall
            print(
                f"1000 inherited scores on {len(validation)} pixels: "
                f"{1000 * spent / subnets:.0f} CPU s ({1000 * waited / subnets:.0f} s)"
            )


def _steps(
    supernet: Supernet,
    run: Run,
    drawn: Sequence[dict[str, Any]],
    batch: LabelledPixels,
    recipe: Recipe,
) -> tuple[float, float]:
    drop = Drop(recipe.drop_path, recipe.dropout)
    learner = OneSubnet(supernet, run.context.feasible, SupernetSettings(), seed=0, drop=drop)
    state = TrainingState.of(learner.weights)
    course = Course(batch, recipe, recipe.schedule(len(batch)), 1e-3, 0, torch.device("cpu"))
    found = []
    for architecture in drawn:
        learner.architecture = architecture
        network = build_network(architecture, supernet.shape, drop_path=recipe.drop_path)
        one = OneNetwork(network)
        own = TrainingState.of(one.weights)
        found.append(
            (
                seconds(lambda: train_epoch(learner, state, course), STEPS),
                seconds(lambda one=one, own=own: train_epoch(one, own, course), STEPS),
            )
        )
    shared, alone = np.array(found).mean(0)
    return float(shared), float(alone)


def by_ranking(run: Run, begun: float, limit: float) -> dict[str, Any]:
    """Search by the proxy, race if there are finalists, and train for the time that is left."""
    search_stage(run)
    race_stage(run)
    architecture, recipe = read_json(run.folder.architecture), run.recipe[1]
    if limit:
        some = time.process_time()
        train_alone(run, architecture, replace(recipe, steps=20))
        step = (time.process_time() - some) / 20
        begun += 20 * step  # what it took to find out is no part of the search
        left = limit - (time.process_time() - begun)
        recipe = replace(recipe, steps=max(20, int(left / step)))
    network, _ = train_alone(run, architecture, recipe)
    spent = time.process_time() - begun
    return {**told(run, architecture, spent, accuracy(run, network)), "steps": recipe.steps}


def accuracy(run: Run, network: torch.nn.Module) -> float:
    """Return the accuracy on at most 4000 test pixels."""
    data = run.context.data
    test = np.sort(np.random.default_rng(0).permutation(data.split.test)[:4000])
    parts = [Judge(data.labelled(part), torch.device("cpu"), 0) for part in np.array_split(test, 8)]
    sizes = [len(part) for part in np.array_split(test, 8)]
    return float(np.average([part.figures(network)["accuracy"] for part in parts], weights=sizes))


def told(run: Run, architecture: dict[str, Any], spent: float, test: float) -> dict[str, Any]:
    """Return the figures of a search."""
    return {
        "seconds": round(spent, 1),
        "test_OA": round(test, 4),
        "params": run.context.space.cost(architecture)["params"],
    }


@main.command()
@click.argument("spaces", nargs=-1, required=True)
@common
@click.option("--steps", default=300, show_default=True, help="Of a network's training.")
@click.option("--finalists", default=4, show_default=True)
@click.option("--generations", default=4, show_default=True)
def spaces(
    spaces: tuple[str, ...], data: str, labels: str | None, steps: int, **settings: Any
) -> None:
    """The same search in several spaces, in the CPU time of the first."""
    settings["recipe"] = Recipe(steps=steps, most_epochs=None, patience=1.0)
    limit = 0.0
    for space in spaces:
        with tempfile.TemporaryDirectory() as folder, one_thread():
            for run in opened(data, labels, Path(folder) / "run", space=space, **settings):
                found = by_ranking(run, time.process_time(), limit)
        limit = limit or found["seconds"]
        print(json.dumps({"space": space, **found}), flush=True)


if __name__ == "__main__":
    main()
