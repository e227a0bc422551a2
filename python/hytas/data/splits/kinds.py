"""The kinds of split: by the scene's own maps, at random, or by blocks."""

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
        raise refusal("class-without-training", "labels", number=scene.class_ids[untrained[0]])
    if not any(tested):
        raise InputError("labels", rule=f"the test map of {scene.name} holds no pixel to test on")
    notes = tuple(
        str(note("class-in-training-map", name=name))
        for name, seen, count in zip(scene.class_names, trained, tested, strict=True)
        if seen and count == 0
    )
    chosen, test = np.flatnonzero(scene.train), np.flatnonzero(scene.test)
    if not counts:
        return chosen, test, notes
    chosen = _draw(scene, chosen, counts, generator)
    return chosen, test, (str(note("pixels-drawn", count=len(chosen))), *notes)


def at_random(
    scene: Samples,
    counts: tuple[int, ...],
    published: bool,
    generator: np.random.Generator,
    *,
    argument: str = "labels",
    sample: str = "labelled pixel",
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """Return `counts` random pixels of each class, the other pixels, and notes.

    At most half of a class is drawn; for `published` counts all but one pixel. The single pixel of
    a class is a training pixel.
    """
    totals = class_totals(scene, scene.labels)
    if max(totals) < 2:
        raise refusal("classes-of-one-sample", argument, scene=scene.name, sample=sample)
    most = tuple(
        max(1, min(count, total - 1 if published else total // 2))
        for count, total in zip(counts, totals, strict=True)
    )
    facts = {"sample": sample, "unit": sample.split()[-1]}
    notes = tuple(
        str(note("class-of-one-sample", name=name, **facts))
        for name, total in zip(scene.class_names, totals, strict=True)
        if total == 1
    )
    pixels = np.flatnonzero(scene.labels)
    chosen = _draw(scene, pixels, most, generator)
    return chosen, np.setdiff1d(pixels, chosen), notes


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
        argument, value, hint = {
            "blocks": ("block", block, "use another size"),
            "folds": ("folds", parts, "use fewer, or another `block`"),
            "polygons": ("split", "polygons", "draw more polygons of each class, or use blocks"),
        }[settings.kind]
        facts = {"scene": scene.name, "guard": guard, "else": hint}
        raise refusal("split-of-few-classes", argument, value, **facts)
    labels = scene.labels.ravel()
    notes = []
    totals = np.bincount(labels, minlength=scene.classes + 1)
    for label, name in enumerate(scene.class_names, start=1):
        total, count = int(totals[label]), int((labels[sides.test] == label).sum())
        trained, tested = sides.trained[label - 1], sides.tested[label - 1]
        if not total or (trained and tested):  # a class of another scene has no pixel
            continue
        code = "class-on-training-side" if trained else "class-in-guard-band"
        if tested:
            code = "class-on-test-side" if count == total else "class-not-trained"
        guarded = total - count
        notes.append(str(note(code, name=name, total=total, count=count, guarded=guarded)))
    generator = np.random.default_rng(seed)
    untrained = np.flatnonzero(~sides.trained) + 1
    test = sides.test[~np.isin(labels[sides.test], untrained)]
    return _draw(scene, sides.candidates, counts, generator), test, tuple(notes)


def _draw(
    scene: Samples, pixels: Pixels, counts: tuple[int, ...], generator: np.random.Generator
) -> Pixels:
    labels = scene.labels.ravel()[pixels]
    samples = [
        generator.permutation(pixels[labels == label])[:count]
        for label, count in enumerate(counts, start=1)
    ]
    return np.sort(np.concatenate(samples))
