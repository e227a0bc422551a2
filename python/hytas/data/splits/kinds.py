"""The kinds of split: by the scene's own maps, at random, or by blocks."""

import numpy as np

from hytas.data.findings import refusal
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
        f"{name} is in the training map only: it is not tested"
        for name, seen, count in zip(scene.class_names, trained, tested, strict=True)
        if seen and count == 0
    )
    chosen, test = np.flatnonzero(scene.train), np.flatnonzero(scene.test)
    if not counts:
        return chosen, test, notes
    chosen = _draw(scene, chosen, counts, generator)
    return chosen, test, (f"{len(chosen)} pixels drawn from the training map", *notes)


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
    unit = sample.split()[-1]
    notes = tuple(
        f"{name} has one {sample}, which is a training {unit}: the class is not tested"
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
    units = _polygons_of(scene) if settings.kind == "polygons" else block
    sides = split_blocks(scene.labels, units, guard, parts, part, seed, draws)
    if (sides.trained & sides.tested).sum() < scene.least_classes:
        value: int | str = block
        argument, hint = "block", "use another size"
        if settings.kind == "folds":
            argument, value, hint = ("folds", parts, "use fewer, or another `block`")
        if settings.kind == "polygons":
            argument, value = "split", "polygons"
            hint = "draw more polygons of each class, or use blocks"
        facts = {"scene": scene.name, "guard": guard, "else": hint}
        raise refusal("split-of-few-classes", argument, value, **facts)
    labels = scene.labels.ravel()
    notes = []
    totals = np.bincount(labels, minlength=scene.classes + 1)
    for label, name in enumerate(scene.class_names, start=1):
        total, count = totals[label], int((labels[sides.test] == label).sum())
        if not total:  # a class of another scene
            continue
        trained, tested = sides.trained[label - 1], sides.tested[label - 1]
        if trained and not tested:
            notes.append(f"{name} lies on the training side only: it is not tested")
        elif not trained and not tested:
            notes.append(
                f"{name} is neither trained nor tested: its {total} pixels lie in the guard band"
            )
        elif not trained and count == total:
            notes.append(
                f"{name} lies on the test side only: it is not trained, and its {count} pixels "
                "are not tested"
            )
        elif not trained:
            notes.append(
                f"{name} is not trained: of its {total} pixels {total - count} lie in the guard "
                f"band, and the other {count} are not tested"
            )
    generator = np.random.default_rng(seed)
    untrained = np.flatnonzero(~sides.trained) + 1
    test = sides.test[~np.isin(labels[sides.test], untrained)]
    return _draw(scene, sides.candidates, counts, generator), test, tuple(notes)


def _polygons_of(scene: Scene) -> Units:
    if scene.polygons is None:
        raise refusal("split-without-polygons", "split", scene=scene.name)
    return scene.polygons


def _draw(
    scene: Samples, pixels: Pixels, counts: tuple[int, ...], generator: np.random.Generator
) -> Pixels:
    labels = scene.labels.ravel()[pixels]
    samples = [
        generator.permutation(pixels[labels == label])[:count]
        for label, count in enumerate(counts, start=1)
    ]
    return np.sort(np.concatenate(samples))
