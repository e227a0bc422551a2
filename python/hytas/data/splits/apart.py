"""Folds of training pixels as far apart as training and test pixels of a split by blocks."""

import numpy as np

from hytas.data.labels import LabelMap
from hytas.data.scene import Scene
from hytas.data.splits.blocks import Sides, split_blocks, split_polygons
from hytas.data.splits.validation import Pixels

PARTS = 5  # that the blocks are dealt to
FOLDS = 3  # of these parts that are held out in turn; each costs a training
LEAST_LEFT = 0.5  # of the pixels that a fold must leave to learn from


def folds_apart(
    scene: Scene,
    pixels: Pixels,
    block: int,
    guard: int,
    seed: int,
    enough: int,
    by_polygons: bool = False,
) -> list[tuple[Pixels, Pixels]]:
    """Return pairs of pixels to learn from and pixels held out, of whole blocks, `guard` apart.

    Blocks become smaller, down to a quarter, where those of the size given do not part the pixels.
    Pixels of a class that a fold leaves nothing of to learn from are not held out in it.

    Args:
        scene: of the pixels.
        pixels: flat indices, all that may be learnt from.
        block: side of the blocks.
        guard: rows and columns that must lie between.
        seed: of the deal.
        enough: held-out pixels of all pairs together; with fewer there is no pair.
        by_polygons: whether to try the polygons that label the scene before blocks.
    """
    labels = np.zeros_like(scene.labels)
    labels.ravel()[pixels] = scene.labels.ravel()[pixels]
    sizes = [size for size in dict.fromkeys((block, block // 2, block // 4)) if size >= 1]
    for size in (None, *sizes) if by_polygons else sizes:
        sides = [_side(scene, labels, size, guard, part, seed) for part in range(FOLDS)]
        pairs = [
            (side.candidates, side.test[side.trained[labels.ravel()[side.test] - 1]])
            for side in sides
        ]
        whole = all(len(learnt) >= LEAST_LEFT * len(pixels) for learnt, _ in pairs)
        if whole and sum(len(held_out) for _, held_out in pairs) >= enough:
            return pairs
    return []


def _side(
    scene: Scene, labels: LabelMap, size: int | None, guard: int, part: int, seed: int
) -> Sides:
    """One part of the blocks of a size, or of the polygons of the scene, without a size."""
    if size is None:
        assert scene.polygons is not None  # the split was one by polygons
        return split_polygons(labels, scene.polygons, guard, PARTS, part, seed, 1)
    return split_blocks(labels, size, guard, PARTS, part, seed, 1)
