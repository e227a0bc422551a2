"""Which score finds ground of no class of a model: each class in turn is left out of the training.

    python benchmarks/unknown_ground.py --data IndianPine.mat [--labels gt.mat] [--out unknown.json]

A network of pixel tokens is trained on 30 pixels a class without the class that is left out. The
area under the ROC curve says how well a score tells pixels of that class from held-out pixels of
the others. The distances are fitted on validation pixels. `known` and `unknown` are the shares of
both that get class 0 with `--unknown .05`.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from scipy.stats import mannwhitneyu

from hytas.data import Scene, load_scene, scene_from_arrays
from hytas.deploy.unknown import UnknownGround
from hytas.machine import one_thread
from hytas.models import build_network
from hytas.run import RunConfig
from hytas.run.prepared import prepare_scene
from hytas.temperature import fit_temperature
from hytas.train import Recipe, logits_of, train
from networks import pixel_network

ARCHITECTURE = pixel_network(2, 32, patch=5)
FEWEST = 15
"""Pixels of a class that is left out."""
SHARE = 0.05
Logits = NDArray[np.float32]


def scores(
    logits: Logits, targets: NDArray[np.int64]
) -> tuple[dict[str, Callable[[Logits], Logits]], float]:
    """Return functions from logits to scores, and a threshold, by logits of validation pixels."""
    temperature = fit_temperature(logits, targets)

    def chances(values: Logits) -> Logits:
        return np.asarray(softmax(values / np.float32(temperature), axis=1))

    distance = UnknownGround.fit(chances(logits), targets)
    functions = {
        "probability": lambda values: -chances(values).max(axis=1),
        "energy": lambda values: -logsumexp(values, axis=1),
        "distance": lambda values: distance.scores(chances(values)),
    }
    return functions, distance.threshold(SHARE)


def areas(scene: Scene, steps: int) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield for each class that is left out the area of each score, and the shares of class 0."""
    for left_out in range(1, scene.classes + 1):
        gone = np.flatnonzero(scene.labels == left_out)
        if len(gone) < FEWEST:
            continue
        labels = np.where(scene.labels == left_out, 0, scene.labels)
        config = RunConfig(split="random", train_per_class=30, validation_fraction=0.3)
        data = prepare_scene(config, scene_from_arrays(scene.cube, labels, name=scene.name))
        network, split = build_network(ARCHITECTURE, data.shape), data.split
        recipe = replace(Recipe(), steps=steps, most_epochs=None)
        nothing = data.labelled(split.train[:0])
        with one_thread():
            train(network, data.labelled(split.train), nothing, recipe, seed=0)
            validation, known, unknown = (
                logits_of(network, data.unlabelled(pixels), torch.device("cpu"))
                for pixels in (split.validation, split.test, gone)
            )
        found, threshold = scores(validation, data.targets(split.validation))
        figures = {name: _area(score(unknown), score(known)) for name, score in found.items()}
        for name, logits in (("known", known), ("unknown", unknown)):
            figures[name] = float((found["distance"](logits) > threshold).mean())
        yield left_out, figures


def _area(above: Logits, below: Logits) -> float:
    return float(mannwhitneyu(above, below).statistic / (len(above) * len(below)))


@click.command()
@click.option("--data", default="synthetic", show_default=True, help="Scene.")
@click.option("--labels", help="File of its labels.")
@click.option("--steps", default=100, show_default=True, help="Optimiser steps.")
@click.option("--out", type=Path, help="JSON file of all figures.")
def main(data: str, labels: str | None, steps: int, out: Path | None) -> None:
    """Print the area of each score and the shares of class 0, for each class, and their means."""
    found = dict(areas(load_scene(data, labels), steps))
    for left_out, figures in found.items():
        click.echo(f"{left_out:<4} {'  '.join(f'{k} {v:.3f}' for k, v in figures.items())}")
    means = {
        name: np.mean([one[name] for one in found.values()]) for name in next(iter(found.values()))
    }
    click.echo(f"mean {'  '.join(f'{name} {value:.3f}' for name, value in means.items())}")
    if out is not None:
        out.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
