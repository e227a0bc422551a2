"""What each setting of the training recipe is worth on ground further off.

    python benchmarks/recipe.py --data IndianPine.mat --per-class 10 --vary flips=no --vary mixup=0

The training side of a block split (blocks of 16, guard of 3) is parted into blocks of 8 once more,
with a guard of 3 again: one part trains, the other tells; no test pixel is looked at. One network,
pixel tokens of a 7 x 7 patch, is trained with the recipe as it is and with each variation, on the
same pixels and from the same weights.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import torch
import torch.nn.functional as F

from hytas.data import Scene, load_scene, scene_from_arrays
from hytas.data.splits.blocks import DRAWS, split_blocks
from hytas.machine import one_thread
from hytas.models import build_network
from hytas.run import RunConfig
from hytas.run.prepared import PreparedScene, prepare_scene
from hytas.train import Recipe, logits_of, train
from networks import pixel_network

ARCHITECTURE = pixel_network(3, 64)
BLOCK, INNER_BLOCK, GUARD = 16, 8, 3


def training_side(scene: Scene, draw: int) -> Scene:
    """The scene with only those labels that a block split with seed `draw` trains on."""
    side = split_blocks(scene.labels, BLOCK, GUARD, 2, 0, draw, DRAWS).candidates
    labels = np.zeros_like(scene.labels)
    labels.flat[side] = scene.labels.flat[side]
    return scene_from_arrays(scene.cube, labels, name=scene.name)


def drawn(scene: Scene, per_class: int, draws: list[int]) -> Iterator[PreparedScene]:
    """For each draw what trains and what tells."""
    for draw in draws:
        config = RunConfig(
            split="blocks",
            block=INNER_BLOCK,
            train_per_class=per_class,
            validation_fraction=0.0,
            seed=draw,
        )
        yield prepare_scene(config, training_side(scene, draw))


def train_once(data: PreparedScene, recipe: Recipe) -> tuple[float, float]:
    """Overall accuracy and negative log-likelihood on the pixels that tell."""
    seed, split = data.split.seed, data.split
    network = build_network(ARCHITECTURE, data.shape, drop_path=recipe.drop_path, seed=seed)
    nothing = data.labelled(split.train[:0])
    train(network, data.labelled(split.train), nothing, recipe, seed=seed)
    logits = logits_of(network, data.unlabelled(split.test), torch.device("cpu"))
    targets = data.targets(split.test)
    loss = F.cross_entropy(torch.from_numpy(logits), torch.from_numpy(targets))
    return float((logits.argmax(axis=1) == targets).mean()), float(loss)


@click.command()
@click.option("--data", default="synthetic", show_default=True, help="Scene.")
@click.option("--labels", help="File of its labels.")
@click.option("--per-class", default=10, show_default=True, help="Training pixels per class.")
@click.option("--draws", default="0,1,2", show_default=True, help="Seeds of split and training.")
@click.option("--steps", default=400, show_default=True, help="Optimiser steps.")
@click.option(
    "--vary", multiple=True, help="Variation, as mixup=0 or flips=no,mixup=0; repeatable."
)
@click.option("--out", type=Path, help="JSON file of all figures, written after each variation.")
def main(
    data: str,
    labels: str | None,
    per_class: int,
    draws: str,
    steps: int,
    vary: tuple[str, ...],
    out: Path | None,
) -> None:
    """Print mean accuracy and likelihood of the recipe and of each variation."""
    usual = replace(Recipe(), steps=steps, most_epochs=None)
    scene = load_scene(data, labels)
    prepared = list(drawn(scene, per_class, [int(n) for n in draws.split(",")]))
    found = []
    for variation in ("", *vary):
        recipe = usual.changed([part for part in variation.split(",") if part])
        started = time.monotonic()
        with one_thread():
            figures = [train_once(each, recipe) for each in prepared]
        accuracies, losses = zip(*figures, strict=True)
        found.append({"recipe": variation or "as it is", "OA": accuracies, "NLL": losses})
        click.echo(
            f"{variation or 'as it is':<28} OA {np.mean(accuracies):.3f}  NLL {np.mean(losses):.3f}"
            f"  ({' '.join(f'{value:.3f}' for value in accuracies)})"
            f"  {time.monotonic() - started:.0f} s"
        )
        if out is not None:
            out.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
