"""Splitting a scene: by its own maps, at random, or by blocks."""

import numpy as np

from hytas.data.blocks import DRAWS, near, split_blocks
from hytas.data.labels import LabelMap
from hytas.data.patches import check_patch_size
from hytas.data.scene import Scene
from hytas.data.split import AT_ONE_END, Split
from hytas.data.validation import Pixels, take_validation
from hytas.errors import InputError

KINDS = ("auto", "fixed", "random", "blocks", "folds")
MOST_BLOCK = 2**31 - 1  # pixels of a side: beyond any scene
DEFAULT_TRAIN_PER_CLASS = 50


def check_seed(seed: int) -> None:
    """Refuse seeds that not every generator takes.

    Raises:
        InputError: not 0 to 2^32 - 1, the largest of scikit-learn.
    """
    if not 0 <= seed < 2**32:
        raise InputError(f"seed: {seed} must be 0 to {2**32 - 1}")


def make_split(
    scene: Scene,
    *,
    kind: str = "auto",
    train_per_class: int | None = None,
    train_fraction: float | None = None,
    validation_fraction: float = 0.2,
    seed: int = 0,
    patch_size: int = 7,
    block: int = 16,
    folds: int = 5,
    fold: int = 0,
) -> Split:
    """Split the labelled pixels of a scene.

    Args:
        scene: to split.
        kind: "fixed" takes the scene's own maps, or draws the training pixels asked for from its
            training map; "random" draws pixels of each class, at most half of it (all but one, if
            need be, for published counts), and tests on the rest; "blocks" deals square blocks to
            two sides and leaves a guard band, so that no training patch contains a test pixel;
            "folds" does so with `folds` parts, of which number `fold` tests; "auto" is "fixed"
            where the scene has maps, "random" for a scene known by name, whose published split
            that is, and else "blocks": half or a quarter as large where blocks of the size asked
            for leave a class on one side only and smaller ones do not, and "random" where no size
            parts the scene.
        train_per_class: pixels a class, validation pixels included; None is what was published for
            a named scene, else 50.
        train_fraction: pixels a class, as a fraction of its labelled pixels (of "fixed", of those
            in the training map); instead of the above.
        validation_fraction: of the training pixels of each class, at least one where it has 3 or
            more; 0 takes none. Of blocks and folds they are those at one end of the class, so
            that what is chosen on them is chosen for ground that was not trained on, too.
        seed: of every draw.
        patch_size: side of the patches that will be cut, for the guard band and the overlap.
        block: side of the blocks, in pixels.
        folds, fold: how many parts, and which tests.

    Raises:
        InputError: an unknown kind, "fixed" without maps, a number out of its range, a class
            without a pixel to train on, or no pixel to test on.
    """
    check_patch_size(patch_size, scene.height, scene.width)
    check_seed(seed)
    deal = (block, folds, fold)
    check_split_settings(kind, train_per_class, train_fraction, validation_fraction, deal)
    kind, block, notes = _usual(scene, kind, patch_size, block, seed)
    counts = _counts(scene, kind, train_per_class, train_fraction)
    generator = np.random.default_rng(seed)
    if kind == "fixed":
        chosen, test, found = _fixed(scene, counts, generator)
    elif kind == "random":
        usual = (train_per_class, train_fraction) == (None, None)
        published = usual and scene.train_counts is not None
        chosen, test, found = _random(scene, counts, published, generator)
    else:
        deal, draws = ((block, 2, 0), DRAWS) if kind == "blocks" else ((block, folds, fold), 1)
        chosen, test, found = _blocks(scene, counts, patch_size, deal, seed, draws)
    overlap = overlap_fraction(scene.labels.shape, chosen, test, patch_size)
    taken = take_validation(scene, chosen, validation_fraction, kind in AT_ONE_END, generator)
    notes = (*notes, *found, *_shortfalls(scene, chosen, counts), *_not_chosen_on(scene, *taken))
    return Split(*taken, test, kind, seed, patch_size, overlap, notes)


def _usual(
    scene: Scene, kind: str, patch_size: int, block: int, seed: int
) -> tuple[str, int, tuple[str, ...]]:
    """The kind of split, what "auto" is for a scene included, its block size, and a note on it."""
    if kind != "auto":
        return kind, block, ()
    if scene.train is not None:
        return "fixed", block, ()
    if scene.train_counts is not None:
        return "random", block, ()
    most, chosen = 0, 0
    for size in (block, block // 2, block // 4):
        if size < 1:
            break
        sides = split_blocks(scene.labels, size, patch_size // 2, 2, 0, seed, DRAWS)
        both = int((sides.trained & sides.tested).sum())
        if both > most:
            most, chosen = both, size
    if most < 2:
        return (
            "random",
            block,
            ("no blocks part this scene into training and test pixels: they are drawn at random",),
        )
    if chosen == block:
        return "blocks", chosen, ()
    return "blocks", chosen, (f"blocks of {chosen} pixels: those of {block} part fewer classes",)


def check_split_settings(
    kind: str,
    train_per_class: int | None,
    train_fraction: float | None,
    validation_fraction: float,
    deal: tuple[int, int, int],
) -> None:
    """Refuse what `make_split` could do with no scene.

    Args:
        deal: block, folds and fold; the others are named as there.

    Raises:
        InputError: an unknown kind, a number out of its range, or two that exclude each other.
    """
    if kind not in KINDS:
        raise InputError(f"split: {kind!r} is not one of {', '.join(KINDS)}")
    if train_per_class is not None and train_per_class < 1:
        raise InputError(f"train per class: {train_per_class} must be at least 1")
    if train_fraction is not None and not 0 < train_fraction < 1:
        raise InputError(f"train fraction: {train_fraction} must be in (0, 1)")
    if train_fraction is not None and train_per_class is not None:
        raise InputError(
            f"train fraction: {train_fraction} and {train_per_class} per class exclude each other"
        )
    if not 0 <= validation_fraction < 1:
        raise InputError(f"validation fraction: {validation_fraction} must be in [0, 1)")
    block, folds, fold = deal
    if block < 1:
        raise InputError(f"block: {block} must be at least 1")
    if block > MOST_BLOCK:
        raise InputError(f"block: {block} must be at most {MOST_BLOCK}")
    if folds < 2:
        raise InputError(f"folds: {folds} must be at least 2")
    if fold != 0 and kind != "folds":
        raise InputError(f"fold {fold}: is for the split folds, not {kind}")
    if not 0 <= fold < folds:
        raise InputError(f"fold: {fold} must be 0 to {folds - 1}")


def _counts(
    scene: Scene, kind: str, train_per_class: int | None, train_fraction: float | None
) -> tuple[int, ...]:
    """Return how many pixels of each class are asked for; () is all of a training map."""
    if kind == "fixed" and train_per_class is None and train_fraction is None:
        return ()
    if train_fraction is not None:
        drawn_from = scene.train if kind == "fixed" else None
        totals = _class_totals(scene, scene.labels if drawn_from is None else drawn_from)
        return tuple(max(1, round(train_fraction * total)) for total in totals)
    if train_per_class is None and scene.train_counts is not None:
        return scene.train_counts
    return (train_per_class or DEFAULT_TRAIN_PER_CLASS,) * scene.classes


def _class_totals(scene: Scene, labels: LabelMap) -> list[int]:
    """The pixels of each class among `labels`, of any shape."""
    totals: list[int] = np.bincount(labels.ravel(), minlength=scene.classes + 1)[1:].tolist()
    return totals


def _shortfalls(scene: Scene, chosen: Pixels, counts: tuple[int, ...]) -> tuple[str, ...]:
    """A remark on the classes that train on fewer pixels than asked for, where there are any."""
    if not counts:
        return ()
    found = _class_totals(scene, scene.labels.ravel()[chosen])
    few = [
        f"{name} {got} of {wanted}"
        for name, got, wanted in zip(scene.class_names, found, counts, strict=True)
        if 0 < got < wanted  # a class that is not trained at all has a remark of its own
    ]
    return (f"fewer training pixels than asked for: {', '.join(few)}",) if few else ()


def _not_chosen_on(scene: Scene, train: Pixels, validation: Pixels) -> tuple[str, ...]:
    """A remark on the classes that are trained but not validated, if others are."""
    trained, validated = (
        _class_totals(scene, scene.labels.ravel()[part]) for part in (train, validation)
    )
    missing = [
        name
        for name, count, held_out in zip(scene.class_names, trained, validated, strict=True)
        if count and not held_out
    ]
    if not missing or not validation.size:
        return ()
    return (f"fewer than 3 training pixels, so none to validate on: {', '.join(missing)}",)


def overlap_fraction(shape: tuple[int, ...], train: Pixels, test: Pixels, patch_size: int) -> float:
    """Return the fraction of test pixels that lie inside the patch of a training pixel."""
    if test.size == 0:
        return 0.0
    mask = np.zeros(shape, dtype=np.bool_)
    mask.ravel()[train] = True
    return float(near(mask, patch_size // 2).ravel()[test].mean())


def _fixed(
    scene: Scene, counts: tuple[int, ...], generator: np.random.Generator
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """The pixels of the scene's maps; of the training map only so many, where that is asked for."""
    if scene.train is None or scene.test is None:
        raise InputError(
            f"split: 'fixed' needs a training and a test map, {scene.name} has one label map"
        )
    trained, tested = (_class_totals(scene, part) for part in (scene.train, scene.test))
    if 0 in trained:
        raise InputError(
            f"labels: class {scene.class_ids[trained.index(0)]} has no pixel to train on: "
            "every class needs at least one"
        )
    if not any(tested):
        raise InputError(f"labels: the test map of {scene.name} holds no pixel to test on")
    notes = tuple(
        f"{name} is in the training map only: it is not tested"
        for name, count in zip(scene.class_names, tested, strict=True)
        if count == 0
    )
    chosen, test = np.flatnonzero(scene.train), np.flatnonzero(scene.test)
    if not counts:
        return chosen, test, notes
    chosen = _draw(scene, chosen, counts, generator)
    return chosen, test, (f"{len(chosen)} pixels drawn from the training map", *notes)


def _random(
    scene: Scene, counts: tuple[int, ...], published: bool, generator: np.random.Generator
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """Pixels drawn of each class, and the rest; a class's only pixel trains."""
    totals = _class_totals(scene, scene.labels)
    if max(totals) < 2:
        raise InputError(
            f"labels: every class of {scene.name} has one labelled pixel: at least one class needs "
            "2, one to train on and one to test on"
        )
    most = tuple(
        max(1, min(count, total - 1 if published else total // 2))
        for count, total in zip(counts, totals, strict=True)
    )
    notes = tuple(
        f"{name} has one labelled pixel, which trains: it is not tested"
        for name, total in zip(scene.class_names, totals, strict=True)
        if total < 2
    )
    pixels = np.flatnonzero(scene.labels)
    chosen = _draw(scene, pixels, most, generator)
    return chosen, np.setdiff1d(pixels, chosen), notes


def _blocks(
    scene: Scene,
    counts: tuple[int, ...],
    patch_size: int,
    deal: tuple[int, int, int],
    seed: int,
    draws: int,
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    block, parts, part = deal
    pixels = int((scene.labels > 0).sum())
    if parts > pixels:
        raise InputError(f"folds: {parts} must be at most {pixels}, the labelled pixels")
    guard = patch_size // 2
    sides = split_blocks(scene.labels, block, guard, parts, part, seed, draws)
    if (sides.trained & sides.tested).sum() < 2:
        dealt = f"folds: {parts} of blocks of {block}" if draws == 1 else f"block: {block}"
        raise InputError(
            f"{dealt} leaves fewer than 2 classes of {scene.name} both to train and to test on, "
            f"with a guard band of {guard}: take {'fewer, or ' if parts > 2 else ''}another size"
        )
    labels = scene.labels.ravel()
    notes = []
    totals = np.bincount(labels)
    for label, name in enumerate(scene.class_names, start=1):
        total, count = totals[label], int((labels[sides.test] == label).sum())
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


def _draw(
    scene: Scene, pixels: Pixels, counts: tuple[int, ...], generator: np.random.Generator
) -> Pixels:
    """Draw up to `counts` of the given pixels of each class."""
    labels = scene.labels.ravel()[pixels]
    drawn = [
        generator.permutation(pixels[labels == label])[:count]
        for label, count in enumerate(counts, start=1)
    ]
    return np.sort(np.concatenate(drawn))
