"""Folds of training pixels with a guard band, as between training and test pixels."""

import numpy as np

from hytas.data.scene import Scene
from hytas.data.splits.blocks import Units, split_blocks
from hytas.types import Pixels

PARTS = 5  # parts among which blocks are distributed
FOLDS = 3  # parts that are held out in turn; each costs a training
LEAST_TRAIN = 0.5  # least share of train pixels in a fold


def guarded_folds(
    scene: Scene,
    pixels: Pixels,
    block: int,
    guard: int,
    seed: int,
    enough: int,
    by_polygons: bool = False,
) -> list[tuple[Pixels, Pixels]]:
    """Return pairs of train and held-out pixels, in blocks with a guard band.

    If blocks of this size do not separate the pixels, smaller ones are tried, down to a quarter.
    If a fold would hold out all pixels of a class, it holds out none of them.

    Args:
        pixels: flat indices of all pixels of the folds.
        guard: rows and columns between held-out and train pixels.
        enough: least number of held-out pixels in all pairs; with fewer the list is empty.
        by_polygons: whether to try the polygons that label the scene before blocks.
    """
    labels = np.zeros_like(scene.labels)
    labels.ravel()[pixels] = scene.labels.ravel()[pixels]
    tried: list[int | Units] = [size for size in (block, block // 2, block // 4) if size >= 1]
    if by_polygons:
        assert scene.polygons is not None  # the split was one by polygons
        tried.insert(0, scene.polygons)
    for blocks in tried:
        sides = [split_blocks(labels, blocks, guard, PARTS, part, seed, 1) for part in range(FOLDS)]
        pairs = [
            (side.candidates, side.test[side.trained[labels.ravel()[side.test] - 1]])
            for side in sides
        ]
        enough_train = all(len(train) >= LEAST_TRAIN * len(pixels) for train, _ in pairs)
        if enough_train and sum(len(held_out) for _, held_out in pairs) >= enough:
            return pairs
    return []
