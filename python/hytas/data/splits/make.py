"""Split a scene, a table or images into samples that train, validate and test."""

from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.findings import note
from hytas.data.images.image_set import ImageSet
from hytas.data.patches import check_patch_size
from hytas.data.scene import Scene
from hytas.data.spectra.table import Spectra
from hytas.data.splits.blocks import DRAWS, split_blocks, within_reach
from hytas.data.splits.kinds import at_random, by_blocks, class_totals, from_maps, one_sided
from hytas.data.splits.settings import SplitSettings
from hytas.data.splits.split import AT_ONE_END, GROUPS, Split, group_folds
from hytas.data.splits.validation import take_validation
from hytas.errors import InputError
from hytas.types import Pixels

DEFAULT_TRAIN_PER_CLASS = 50
USUAL_FRACTION = 0.8
"""Share of each class that trains and validates, in a table or a set of images, by default."""
OF_TABLES, OF_IMAGES = ("auto", "random", "folds", GROUPS), ("auto", "fixed", "random")
"""Kinds of split that a table, and that images have."""


def check_seed(seed: int, seeds: int = 1) -> None:
    """Refuse seeds that some generators do not accept.

    Args:
        seeds: how many of them, from `seed` on.

    Raises:
        InputError: not in 0 to 2^32 - 1, the range of scikit-learn.
    """
    if not 0 <= seed < 2**32:
        raise InputError("seed", seed, f"must be 0 to {2**32 - 1}")
    if seed + seeds > 2**32:
        rule = f"from `seed` {seed} on, the last one must be at most {2**32 - 1}"
        raise InputError("seeds", seeds, rule)


def make_split(
    scene: Scene,
    settings: SplitSettings | None = None,
    *,
    seed: int = 0,
    patch_size: int = 7,
    **changed: Any,
) -> Split:
    """Split the labelled pixels of a scene.

    Args:
        settings: of the split; None means the default, "auto".
        patch_size: side of the patches, for the guard band and the overlap.
        changed: fields of the settings to change, such as `kind="blocks"` or `train_per_class=30`.

    Raises:
        InputError: a setting is out of its range, the kind is "fixed" without maps, a class has no
            training pixel, or there is no test pixel.
    """
    check_seed(seed)
    wanted = replace(settings or SplitSettings(), **changed)
    if isinstance(scene, Spectra):
        return split_spectra(scene, wanted, seed)
    for part in scene.parts:
        check_patch_size(patch_size, part.height, part.width)
    test_only, scene = scene.test_only, scene.without_test_only()
    if wanted.kind == GROUPS:
        raise InputError("split", GROUPS, "is for tables of spectra with groups")
    settings, notes = _usual(scene, wanted, patch_size, seed)
    notes = (*notes, *_idle(settings))
    counts = _counts(scene, settings)
    generator = np.random.default_rng(seed)
    if settings.kind == "fixed":
        chosen, test, notes_of_kind = from_maps(scene, counts, generator)
    elif settings.kind == "random":
        usual = (settings.train_per_class, settings.train_fraction) == (None, None)
        published = usual and scene.train_counts is not None
        chosen, test, notes_of_kind = at_random(scene, counts, published, generator)
    else:
        chosen, test, notes_of_kind = by_blocks(scene, counts, patch_size, settings, seed)
    overlap = overlap_fraction(scene.labels.shape, chosen, test, patch_size)
    at_one_end = settings.kind in AT_ONE_END
    taken = take_validation(scene, chosen, settings.validation_fraction, at_one_end, generator)
    notes = (
        *notes,
        *notes_of_kind,
        *_shortfalls(scene, chosen, counts, settings),
        *_not_chosen_on(scene, *taken),
    )
    return Split(*taken, test, settings.kind, seed, patch_size, overlap, notes, test_only)


def _usual(
    scene: Scene, settings: SplitSettings, patch_size: int, seed: int
) -> tuple[SplitSettings, tuple[str, ...]]:
    if settings.kind != "auto":
        return settings, ()
    if scene.train is not None:
        return replace(settings, kind="fixed"), ()
    if scene.train_counts is not None:
        return replace(settings, kind="random"), ()
    if scene.polygons is not None:
        guard = patch_size // 2
        sides = split_blocks(scene.labels, scene.polygons, guard, 2, 0, seed, DRAWS)
        if (sides.trained & sides.tested).sum() >= scene.least_classes:
            return replace(settings, kind="polygons"), ()
    most, chosen, block = 0, 0, settings.block
    for size in (block, block // 2, block // 4):
        if size < 1:
            break
        sides = split_blocks(scene.labels, size, patch_size // 2, 2, 0, seed, DRAWS)
        both = int((sides.trained & sides.tested).sum())
        if both > most:
            most, chosen = both, size
    if most < scene.least_classes:
        return replace(settings, kind="random"), (str(note("split-changed", case="no-blocks")),)
    blocks = replace(settings, kind="blocks", block=chosen)
    if chosen == block:
        return blocks, ()
    changed = note("split-changed", case="smaller-blocks", size=chosen, asked=block)
    return blocks, (str(changed),)


def _idle(settings: SplitSettings) -> tuple[str, ...]:
    used, facts = {"block": ("blocks", "folds"), "folds": ("folds",)}, {"kind": settings.kind}
    return tuple(
        str(note("not-used", case="split", name=name, value=getattr(settings, name), **facts))
        for name, kinds in used.items()
        if settings.kind not in kinds and getattr(settings, name) != getattr(SplitSettings, name)
    )


def _counts(scene: Scene, settings: SplitSettings) -> tuple[int, ...]:
    """Return the wanted number of pixels of each class; () means all of a training map."""
    per_class, fraction = settings.train_per_class, settings.train_fraction
    if settings.kind == "fixed" and per_class is None and fraction is None:
        return ()
    if scene.continuous is not None and per_class is None:  # no class is to be balanced
        fraction = fraction or USUAL_FRACTION
    if fraction is not None:
        drawn_from = scene.train if settings.kind == "fixed" else None
        totals = class_totals(scene, scene.labels if drawn_from is None else drawn_from)
        return tuple(max(1, round(fraction * total)) for total in totals)
    if per_class is None and scene.train_counts is not None:
        return scene.train_counts
    return (per_class or DEFAULT_TRAIN_PER_CLASS,) * scene.classes


def _shortfalls(
    scene: Scene, chosen: Pixels, counts: tuple[int, ...], settings: SplitSettings
) -> tuple[str, ...]:
    if not counts or scene.continuous is not None:
        return ()
    case = "asked"
    if (settings.train_per_class, settings.train_fraction) == (None, None):
        case = "usual" if scene.train_counts is None else "published"
    totals = class_totals(scene, scene.labels.ravel()[chosen])
    few = [
        f"{name} ({got}/{wanted})"
        for name, got, wanted in zip(scene.class_names, totals, counts, strict=True)
        if 0 < got < wanted  # another note names classes that are not trained at all
    ]
    facts: dict[str, Any] = {"classes": few, "usual": DEFAULT_TRAIN_PER_CLASS}
    return (str(note("training-pixels-few", case=case, **facts)),) if few else ()


def _not_chosen_on(scene: Scene, train: Pixels, validation: Pixels) -> tuple[str, ...]:
    trained, validated = (
        class_totals(scene, scene.labels.ravel()[part]) for part in (train, validation)
    )
    missing = [
        name
        for name, count, held_out in zip(scene.class_names, trained, validated, strict=True)
        if count and not held_out
    ]
    if not missing or not validation.size:
        return ()
    return (str(note("validation-lacks-classes", classes=missing)),)


def overlap_fraction(shape: tuple[int, ...], train: Pixels, test: Pixels, patch_size: int) -> float:
    """Return the fraction of test pixels that lie inside the patch of a training pixel."""
    if test.size == 0:
        return 0.0
    mask = np.zeros(shape, dtype=np.bool_)
    mask.ravel()[train] = True
    return float(within_reach(mask, patch_size // 2).ravel()[test].mean())


def split_spectra(table: Spectra, settings: SplitSettings, seed: int) -> Split:
    """Split the rows of a table; no group lies on two sides.

    With groups, one of `folds` parts of the groups tests. Without them, 80 % of each class train,
    or as many as the settings say.
    """
    grouped, share = table.polygons is not None, settings.validation_fraction
    kind = GROUPS if grouped else "random"
    if settings.kind == "fixed" and table.train is not None and table.test is not None:
        chosen, test = np.flatnonzero(table.train), np.flatnonzero(table.test)
        return Split(*_validation(table, chosen, share, seed), test, kind, seed, 0, 0.0)
    _check_kind_of_table(settings.kind, grouped)
    labels = table.labels.ravel()
    chosen, test, of_folds = _sides_of_table(table, settings, seed)
    both = np.intersect1d(labels[chosen], labels[test])
    if len(both) < table.least_classes:
        rule = "leaves fewer than 2 classes both to train and to test on"
        hint = "use other `folds`, or more groups of each class"
        raise InputError("split", settings.kind, rule, hint)
    training, tested = (class_totals(table, labels[one]) for one in (chosen, test))
    notes = of_folds + one_sided(table, training, tested, "spectra")
    test = test[np.isin(labels[test], labels[chosen])]
    return Split(*_validation(table, chosen, share, seed), test, kind, seed, 0, 0.0, notes)


def _check_kind_of_table(kind: str, grouped: bool) -> None:
    if kind not in OF_TABLES:
        rule = "is for scenes; the rows of a table have no place"
        raise InputError("split", kind, rule, f"use {', '.join(OF_TABLES)}")
    if grouped and kind == "random":
        rule = "would put spectra of one group on both sides"
        raise InputError("split", "random", rule, f"use {GROUPS}, or leave out `group_column`")
    if kind == GROUPS and not grouped:
        raise InputError("split", GROUPS, "needs groups", "name their column with `group_column`")


def _sides_of_table(
    table: Spectra, settings: SplitSettings, seed: int
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """Return the rows to train and validate on, those to test on, and notes."""
    notes: tuple[str, ...] = ()
    labels, rows = table.labels.ravel(), np.flatnonzero(table.labels)
    grouped, in_folds = table.polygons is not None, settings.kind == "folds"
    candidates, test, fraction = rows, rows[:0], settings.train_fraction or USUAL_FRACTION
    if grouped or in_folds:
        parts = group_folds(table, rows, settings.folds, seed)
        if not parts or settings.fold >= len(parts):
            rule = f"must be at most {len(parts)}, the groups that hold the classes"
            raise InputError("folds", settings.folds, rule)
        if len(parts) < settings.folds:
            facts: dict[str, Any] = {"folds": len(parts), "asked": settings.folds}
            notes = (str(note("split-changed", case="fewer-folds", **facts)),)
        candidates, test = parts[settings.fold]
        fraction = settings.train_fraction or 1.0
    generator = np.random.default_rng(seed)
    kept = []
    for label in range(1, table.classes + 1):
        own = generator.permutation(candidates[labels[candidates] == label])
        count = settings.train_per_class or max(1, round(fraction * len(own)))
        kept.append(own[: count if grouped or len(own) < 2 else min(count, len(own) - 1)])
    chosen = np.sort(np.concatenate(kept))
    return chosen, test if grouped or in_folds else np.setdiff1d(candidates, chosen), notes


def _validation(table: Spectra, chosen: Pixels, share: float, seed: int) -> tuple[Pixels, Pixels]:
    if table.polygons is None or share == 0:
        return take_validation(table, chosen, share, False, np.random.default_rng([seed, 1]))
    parts = group_folds(table, chosen, max(2, round(1 / share)), seed + 1)
    return parts[0] if parts else (chosen, chosen[:0])


def make_image_split(images: ImageSet, settings: SplitSettings, *, seed: int = 0) -> Split:
    """Split images: by their own parts (fixed), or at random, stratified by class.

    Args:
        settings: "auto" is "fixed" for images with parts of their own, else "random". A random
            split trains on 80 % of each class unless the settings say how many.

    Raises:
        InputError: the kind is for scenes only, or no class has two images.
    """
    check_seed(seed)
    if settings.kind not in OF_IMAGES:
        hint = f"images are split by {', '.join(OF_IMAGES)}"
        raise InputError("split", settings.kind, "is for scenes", hint)
    kind = settings.kind
    if kind == "auto":
        kind = "random" if images.train is None else "fixed"
    generator = np.random.default_rng(seed)
    if kind == "fixed":
        part = images.labels if images.train is None else images.train
        is_sized = (settings.train_per_class, settings.train_fraction) != (None, None)
        counts = _counts_of_images(class_totals(images, part), settings, 1.0, 0) if is_sized else ()
        chosen, test, notes = from_maps(images, counts, generator)
    else:
        counts = _counts_of_images(class_totals(images, images.labels), settings, USUAL_FRACTION, 1)
        chosen, test, notes = at_random(
            images, counts, True, generator, argument="data", samples="images"
        )
    taken = take_validation(images, chosen, settings.validation_fraction, False, generator)
    return Split(*taken, test, kind, seed, 0, 0.0, notes)


def _counts_of_images(
    totals: list[int], settings: SplitSettings, usual: float, least_left: int
) -> tuple[int, ...]:
    """Images of each class to train on; `least_left` are left to test on, if there are two."""
    share = usual if settings.train_fraction is None else settings.train_fraction
    wanted = settings.train_per_class
    return tuple(
        max(1, min(round(share * total) if wanted is None else wanted, total - least_left))
        for total in totals
    )
