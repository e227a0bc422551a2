"""The trained Pareto front of a race beside the proxy's front, in as many optimiser steps.

    python benchmarks/trained_front.py [--seed 0] [--finalists 12]

Both come from one search. The race trains finalists and keeps those that no other beats. Of the
proxy's front, as many members are trained as those steps allow, evenly spaced by parameters, as
long as the last rung. Each network is then trained anew and classifies the test pixels.
"""

import argparse
import csv
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from hytas.data import synthetic_scene
from hytas.job import choose
from hytas.race.front import hypervolume, non_dominated
from hytas.run import SILENT, RunConfig, read_run
from hytas.run.choosing.searching import race_task
from hytas.run.context import RunContext, open_run, prepare, shorter
from hytas.train import Recipe, logits_of, train

FINAL_STEPS = 100


def test_accuracy(context: RunContext, architecture: dict[str, Any], steps: int) -> float:
    """Train on training pixels for so many steps; return the accuracy on test pixels."""
    split, (recipe, *_) = context.data.split, context.config.recipes.values()
    network = context.network(architecture, recipe)
    training, none = (context.data.labelled(pixels) for pixels in (split.train, split.train[:0]))
    train(network, training, none, shorter(recipe, steps), seed=context.config.seed)
    found = logits_of(network, context.data.unlabelled(split.test), torch.device("cpu"))
    return float((found.argmax(axis=1) == context.data.targets(split.test)).mean())


def volume(rows: list[tuple[int, float]], largest: int) -> float:
    """Return the hypervolume of parameters and accuracies."""
    points = np.array([[params / largest, 1 - accuracy] for params, accuracy in rows])
    return hypervolume(points[non_dominated(points)], [1.0, 1.0])


def compare(seed: int, finalists: int) -> None:
    """Print both fronts and their hypervolumes."""
    scene = synthetic_scene()
    config = RunConfig(
        budget="100K-params",
        pareto="params,accuracy",
        presets="full",
        population=10,
        generations=6,
        finalists=finalists,
        race_steps=20,
        seed=seed,
        recipe=Recipe(steps=FINAL_STEPS),
    )
    context = prepare(config, scene, torch.device("cpu"))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        with open_run(path, config, scene, "cpu", SILENT, workers=1) as run:
            choose(run)
        front = json.loads((path / "front.json").read_text())
        trainings = read_run(path).trainings()
        with (path / "pareto.csv").open() as file:
            proxy = [
                {name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)
            ]
    steps, before = 0, {}
    for one in sorted(trainings, key=lambda row: row["steps"]):
        key = one["id"], one["recipe"], one["fold"]
        steps += one["steps"] - before.get(key, 0)
        before[key] = one["steps"]
    folds = len(race_task(context).all_folds)
    count = max(1, steps // (front["steps"] * folds))
    proxy.sort(key=lambda row: row["params"])
    places = np.unique(np.linspace(0, len(proxy) - 1, count).round().astype(int))
    largest, length = front["reference"]["params"], front["steps"]
    trained = [
        (one["params"], test_accuracy(context, one["architecture"], length))
        for one in front["networks"]
    ]
    by_proxy = []
    for row in [proxy[at] for at in places]:
        genes = {name: value for name, value in row.items() if name not in ("params", "score")}
        accuracy = test_accuracy(context, {"space": context.space.name, **genes}, length)
        by_proxy.append((row["params"], accuracy))
    print(f"seed {seed}: {steps} steps of the race on {folds} folds; the last rung has {length}")
    for name, rows in (("trained", trained), (f"proxy's, of {len(proxy)}", by_proxy)):
        print(f"  {name}: {len(rows)} networks, hypervolume {volume(rows, largest):.4f}: {rows}")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--finalists", type=int, default=12)
    given = parser.parse_args()
    torch.set_num_threads(1)
    compare(given.seed, given.finalists)
