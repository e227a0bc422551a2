"""The kinds of split: by the scene's own maps, at random, or by blocks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hytas.data.findings import note, refusal
from hytas.data.labels.maps import LabelMap
from hytas.data.samples import Samples
from hytas.data.scene import Scene
from hytas.data.splits.blocks import DRAWS, Units, split_blocks
from hytas.data.splits.settings import SplitSettings
from hytas.errors import InputError
from hytas.types import Pixels


def class_totals(scene: Samples, labels: LabelMap) -> list[int]:
    """Return the number of pixels of each class among `labels`, of any shape."""
    totals: list[int] = np.bincount(labels.ravel(), minlength=scene.classes + 1)[1:].tolist()
    return totals


def from_maps(
    scene: Samples, counts: tuple[int, ...], generator: np.random.Generator
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """Return training pixels of the scene's map, `counts` of each class, test pixels, and notes."""
    if scene.train is None or scene.test is None:
        rule = "'fixed' needs a training and a test map"
        raise InputError("split", rule=rule, hint=f"{scene.name} has one label map")
    trained, tested = (class_totals(scene, part) for part in (scene.train, scene.test))
    totals = class_totals(scene, scene.labels)  # a class of another scene has no pixel
    untrained = [at for at in range(scene.classes) if totals[at] and not trained[at]]
    if untrained:
        facts: dict[str, Any] = {"number": scene.class_ids[untrained[0]], "count": 0}
        raise refusal("class-not-to-train", "labels", **facts, train="train", test="test")
    if not any(tested):
        raise InputError("labels", rule=f"the test map of {scene.name} holds no pixel to test on")
    notes = one_sided(scene, trained, tested)
    chosen, test = np.flatnonzero(scene.train), np.flatnonzero(scene.test)
    if not counts:
        return chosen, test, notes
    return _draw(scene, chosen, counts, generator), test, notes


def at_random(
    scene: Samples,
    counts: tuple[int, ...],
    published: bool,
    generator: np.random.Generator,
    *,
    argument: str = "labels",
    samples: str = "pixels",
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """Return `counts` random pixels of each class, the other pixels, and notes.

    At most half of a class is drawn; for `published` counts all but one pixel. The single pixel of
    a class is a training pixel.
    """
    totals = class_totals(scene, scene.labels)
    if max(totals) < 2:
        raise refusal("split-of-few-classes", argument, scene=scene.name)
    most = tuple(
        max(1, min(count, total - 1 if published else total // 2))
        for count, total in zip(counts, totals, strict=True)
    )
    pixels = np.flatnonzero(scene.labels)
    chosen = _draw(scene, pixels, most, generator)
    left = [total - min(count, total) for total, count in zip(totals, most, strict=True)]
    return chosen, np.setdiff1d(pixels, chosen), one_sided(scene, most, left, samples)


def by_blocks(
    scene: Scene, counts: tuple[int, ...], patch_size: int, settings: SplitSettings, seed: int
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """Return random pixels of training blocks, all pixels of test blocks, and notes.

    Polygons take the place of blocks where the settings say so.
    """
    two = settings.kind in ("blocks", "polygons")
    block, draws = settings.block, DRAWS if two else 1
    parts, part = (2, 0) if two else (settings.folds, settings.fold)
    pixels = int((scene.labels > 0).sum())
    if parts > pixels:
        raise InputError("folds", parts, f"must be at most {pixels}, the labelled pixels")
    guard = patch_size // 2
    units: int | Units = block
    if settings.kind == "polygons":
        if scene.polygons is None:
            raise refusal("split-without-polygons", "split", scene=scene.name)
        units = scene.polygons
    sides = split_blocks(scene.labels, units, guard, parts, part, seed, draws)
    if (sides.trained & sides.tested).sum() < scene.least_classes:
        argument, value, key = {
            "blocks": ("block", block, "block"),
            "folds": ("folds", parts, "folds"),
            "polygons": ("split", "polygons", "split"),
        }[settings.kind]
        raise refusal("split-of-few-classes", argument, value, scene=scene.name, key=key)
    labels = scene.labels.ravel()
    training, tested = (class_totals(scene, labels[one]) for one in (sides.candidates, sides.test))
    generator = np.random.default_rng(seed)
    untrained = np.flatnonzero(~sides.trained) + 1
    test = sides.test[~np.isin(labels[sides.test], untrained)]
    notes = one_sided(scene, training, tested)
    return _draw(scene, sides.candidates, counts, generator), test, notes


def one_sided(
    scene: Samples, training: Sequence[int], tested: Sequence[int], samples: str = "pixels"
) -> tuple[str, ...]:
    """Return a note on each class with samples to train on (C,) or to test on (C,) alone."""
    totals = class_totals(scene, scene.labels)
    notes = []
    for name, total, left, right in zip(scene.class_names, totals, training, tested, strict=True):
        if total and not (left and right):  # a class of another scene has no sample
            counts: dict[str, Any] = {
                "training": left,
                "tested": right,
                "unused": max(0, total - left - right),
            }
            notes.append(str(note("class-on-one-side", name=name, samples=samples, **counts)))
    return tuple(notes)


def _draw(
    scene: Samples, pixels: Pixels, counts: tuple[int, ...], generator: np.random.Generator
) -> Pixels:
    labels = scene.labels.ravel()[pixels]
    samples = [
        generator.permutation(pixels[labels == label])[:count]
        for label, count in enumerate(counts, start=1)
    ]
    return np.sort(np.concatenate(samples))
