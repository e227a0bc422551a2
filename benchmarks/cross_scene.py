"""How well models do on ground that they never saw: one part of a scene trains, another tests.

    python benchmarks/cross_scene.py --data IndianPine.mat --out cross.json
    python benchmarks/cross_scene.py --data cube.mat --labels gt.mat --out cross.json

A scene is cut in two along a row or a column. The line is the one that leaves the most classes on
both sides; of such lines the one with the widest gap. The classes of one side alone are left out.
The side with more labelled pixels trains. SVM, random forest and the winner of a small search on
the training side are compared, with bands scaled by the training pixels and by each part itself,
and the winner without augmentation, with light and with full augmentation. --light 1.3 multiplies
the values of the test part. The same command goes on where it was stopped.
"""

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from hytas.data import Scene, Split, load_scene, scene_from_arrays
from hytas.data.join import join_scenes
from hytas.data.several import scaled_by_itself
from hytas.job import run_pipeline
from hytas.machine import one_thread
from hytas.metrics import accuracy_report, summarise
from hytas.models import build_network
from hytas.models.layers import probabilities
from hytas.references import ReferenceResults, ReferenceSettings, fit_method
from hytas.run import RunConfig
from hytas.run.folder import read_json
from hytas.run.prepared import prepare_scene
from hytas.train import Recipe, recipes_of, train

LEAST_PIXELS = 20
"""Pixels of a class on each side, so that it counts."""
GAPS = range(4, 41, 2)
METHODS = ("svm", "rf")
RECIPES = ("plain", "light", "full")
SCALINGS = ("training", "scene")


@dataclass(frozen=True)
class Cut:
    """A cut of a scene: rows or columns `start` to `stop` belong to no part."""

    axis: int
    start: int
    stop: int
    classes: int

    def sides(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts before and after the gap."""
        before, after = slice(0, self.start), slice(self.stop, None)
        if self.axis == 0:
            return values[before], values[after]
        return values[:, before], values[:, after]


def best_cut(labels: np.ndarray) -> Cut:
    """Return the cut with the most classes on both sides, and of these that with the widest gap."""
    best = None
    for axis in (0, 1):
        for gap in GAPS:
            for start in range(8, labels.shape[axis] - gap - 8):
                cut = Cut(axis, start, start + gap, 0)
                counts = [
                    np.bincount(side.ravel(), minlength=int(labels.max()) + 1)[1:]
                    for side in cut.sides(labels)
                ]
                least = np.minimum(*counts)
                merit = (int((least >= LEAST_PIXELS).sum()), gap, int(least.sum()))
                if best is None or merit > best[0]:
                    best = merit, replace(cut, classes=merit[0])
    assert best is not None
    return best[1]


def parts(scene: Scene) -> tuple[Scene, Scene, Cut]:
    """Return the part to train on, the part to test on, and the cut between them."""
    cut = best_cut(scene.labels)
    sides = cut.sides(scene.labels)
    counts = [np.bincount(side.ravel(), minlength=scene.classes + 1) for side in sides]
    common = np.minimum(*counts) >= LEAST_PIXELS
    common[0] = False
    names = dict(enumerate(scene.class_names, 1))
    found = [
        scene_from_arrays(
            np.ascontiguousarray(cube),
            np.where(common[side], side, 0),
            name=f"{scene.name} part {number}",
            class_names=names,
        )
        for number, (cube, side) in enumerate(zip(cut.sides(scene.cube), sides, strict=True), 1)
    ]
    found.sort(key=lambda part: -int((part.labels > 0).sum()))
    return found[0], found[1], cut


def drawn(joined: Scene, per_class: int, seed: int) -> Split:
    """Return `per_class` random pixels of each class of the first part, and all of the second."""
    generator, labels = np.random.default_rng(seed), joined.without_test_only().labels.ravel()
    chosen = [
        generator.permutation(np.flatnonzero(labels == number))[:per_class]
        for number in range(1, joined.classes + 1)
    ]
    nothing = np.empty(0, np.int64)
    train_pixels = np.sort(np.concatenate(chosen))
    return Split(train_pixels, nothing, joined.test_only, "random", seed, 7, 0.0)


@functools.cache
def searched(part: Scene, budget: str, folder: Path) -> dict[str, Any]:
    """Return the winner of a small search on the training part."""
    config = RunConfig(
        budget=budget,
        population=20,
        generations=5,
        finalists=8,
        recipe=Recipe(epochs=0),
        split="random",
        train_per_class=50,
    )
    run_pipeline(config, part, folder, device="cpu")
    return read_json(folder / "architecture.json")


def network_fit(
    joined: Scene, split: Split, architecture: dict[str, Any], recipe: Recipe
) -> dict[str, Any]:
    """Return the accuracy of a network on the test pixels of a split."""
    data = prepare_scene(RunConfig(), joined, split)
    network = build_network(
        architecture,
        data.shape,
        drop_path=recipe.drop_path,
        dropout=recipe.dropout,
        seed=split.seed,
    )
    nothing = data.labelled(split.validation)
    with one_thread():
        train(network, data.labelled(split.train), nothing, recipe, seed=split.seed)
        telling, chances = data.labelled(split.test), []
        with torch.no_grad():
            for chosen in telling.positions(torch.device("cpu")):
                patches, _ = telling.batch(chosen, torch.device("cpu"))
                chances.append(probabilities(network.eval()(patches)).numpy())
    found = np.concatenate(chances)
    return accuracy_report(telling.targets, found.argmax(axis=1), joined.class_names, found)


def fits(
    joined: dict[str, Scene],
    winner: Callable[[], dict[str, Any]],
    per_class: int,
    seed: int,
    steps: int,
) -> Iterator[tuple[str, Any]]:
    """Yield the name of each method and the function that gives its report on the test part."""
    recipes = recipes_of(replace(Recipe(), steps=steps, most_epochs=None), ",".join(RECIPES))
    for scaling, scene in joined.items():
        split = drawn(scene, per_class, seed)
        for method in METHODS:

            def reference(scene: Scene = scene, split: Split = split, method: str = method) -> Any:
                fit = fit_method(scene, split, ReferenceSettings(), method)
                truth = scene.targets(split.test)
                return accuracy_report(truth, fit.predicted, scene.class_names, fit.probabilities)

            yield f"{method}, scaled by {scaling}", reference
        for name, recipe in recipes.items():

            def network(scene: Scene = scene, split: Split = split, recipe: Recipe = recipe) -> Any:
                return network_fit(scene, split, winner(), recipe)

            yield f"winner, {name}, scaled by {scaling}", network


@click.command()
@click.option("--data", required=True, help="Scene.")
@click.option("--labels", help="File of its labels.")
@click.option("--budget", default="100K-params", show_default=True, help="Of the winner.")
@click.option("--per-class", default=50, show_default=True, help="Training pixels per class.")
@click.option("--seeds", default=5, show_default=True, help="Number of seeds.")
@click.option("--steps", default=1500, show_default=True, help="Optimiser steps of a network.")
@click.option("--light", default=1.0, show_default=True, help="Factor of the test part's values.")
@click.option("--only", default="", help="Methods whose name begins so, such as svm.")
@click.option("--out", type=Path, required=True, help="JSON file of all fits; grows fit by fit.")
def main(
    data: str,
    labels: str | None,
    budget: str,
    per_class: int,
    seeds: int,
    steps: int,
    light: float,
    only: str,
    out: Path,
) -> None:
    """Print OA, AA and kappa on the other part of the scene, over seeds."""
    torch.set_num_threads(1)
    first, second, cut = parts(load_scene(data, labels))
    way = ("rows", "columns")[cut.axis]
    counts = [int((part.labels > 0).sum()) for part in (first, second)]
    click.echo(
        f"{first.name} trains, {second.name} tests: {cut.classes} classes, {counts[0]} and "
        f"{counts[1]} labelled pixels, {way} {cut.start} to {cut.stop - 1} are left out"
    )
    second = replace(second, cube=second.cube * np.float32(light))
    joined = {
        "training": join_scenes([first], [second]),
        "scene": join_scenes([scaled_by_itself(first)], [scaled_by_itself(second)]),
    }

    def winner() -> dict[str, Any]:
        return searched(first, budget, out.with_suffix(f".{first.name.replace(' ', '-')}"))

    setting = {"per class": per_class, "steps": steps, "budget": budget, "light": light}
    results = ReferenceResults(out, setting)
    table: dict[str, list[dict[str, Any]]] = {}
    for seed in range(seeds):
        for name, work in fits(joined, winner, per_class, seed, steps):
            if not name.startswith(only):
                continue
            key = f"{first.name}: {name}"
            if (run := results.get(key, seed)) is None:
                started = time.monotonic()
                run = {"method": key, "seed": seed, "test": work(), "details": {}}
                run["seconds"] = round(time.monotonic() - started, 1)
                results.add(run)
            table.setdefault(name, []).append(run["test"])
            click.echo(f"seed {seed}  {name:<36} OA {run['test']['OA']:.4f}", err=True)
    click.echo(f"{'method':<36} OA              AA     kappa")
    for name, reports in table.items():
        found = summarise(reports)
        spread = found["OA"]["std"] or 0.0
        click.echo(
            f"{name:<36} {found['OA']['mean']:.3f} +- {spread:.3f}  {found['AA']['mean']:.3f}  "
            f"{found['kappa']['mean']:.3f}"
        )


if __name__ == "__main__":
    main()
