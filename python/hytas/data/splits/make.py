"""Split a scene into pixels that train, validate and test."""

from dataclasses import replace
from typing import Any

import numpy as np

from hytas.data.patches import check_patch_size
from hytas.data.scene import Scene
from hytas.data.spectra.table import Spectra
from hytas.data.splits.blocks import DRAWS, split_blocks, within_reach
from hytas.data.splits.groups import USUAL_FRACTION, split_spectra
from hytas.data.splits.kinds import at_random, by_blocks, class_totals, from_maps
from hytas.data.splits.settings import SplitSettings
from hytas.data.splits.split import AT_ONE_END, GROUPS, Split
from hytas.data.splits.validation import take_validation
from hytas.errors import InputError
from hytas.types import Pixels

DEFAULT_TRAIN_PER_CLASS = 50


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
        note = (
            "no blocks separate training and test pixels in this scene: pixels are drawn at random"
        )
        return replace(settings, kind="random"), (note,)
    blocks = replace(settings, kind="blocks", block=chosen)
    if chosen == block:
        return blocks, ()
    return blocks, (f"blocks of {chosen} pixels: blocks of {block} separate fewer classes",)


def _idle(settings: SplitSettings) -> tuple[str, ...]:
    used = {"block": ("blocks", "folds"), "folds": ("folds",)}
    return tuple(
        f"{name} {getattr(settings, name)} is not used: the split is {settings.kind}"
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
    wish = "asked for"
    if (settings.train_per_class, settings.train_fraction) == (None, None):
        wish = f"the usual {DEFAULT_TRAIN_PER_CLASS}" if scene.train_counts is None else "published"
    totals = class_totals(scene, scene.labels.ravel()[chosen])
    few = [
        f"{name} {got} of {wanted}"
        for name, got, wanted in zip(scene.class_names, totals, counts, strict=True)
        if 0 < got < wanted  # another note names classes that are not trained at all
    ]
    return (f"fewer training pixels than {wish}: {', '.join(few)}",) if few else ()


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
    return (f"fewer than 3 training pixels, so none for validation: {', '.join(missing)}",)


def overlap_fraction(shape: tuple[int, ...], train: Pixels, test: Pixels, patch_size: int) -> float:
    """Return the fraction of test pixels that lie inside the patch of a training pixel."""
    if test.size == 0:
        return 0.0
    mask = np.zeros(shape, dtype=np.bool_)
    mask.ravel()[train] = True
    return float(within_reach(mask, patch_size // 2).ravel()[test].mean())
