"""Spatially disjoint splits: whole blocks train or test, with a guard band between them.

A patch contains neighbours of its pixel. In a random split training patches therefore contain test
pixels, which flatters every model of patches. Here no training patch contains a test pixel.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hytas.data.labels.maps import LabelMap
from hytas.data.scene import Scene
from hytas.types import Mask, Pixels

Units = npt.NDArray[np.integer]

DRAWS = 20
"""Random deals of the blocks to try until every class is on both sides."""
PARTS = 5
"""Parts that folds deal blocks to."""
FOLDS = 3
"""Of these, how many are held out in turn; each costs a training."""
LEAST_TRAIN = 0.5
"""Least share of train pixels in a fold."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Flat indices of possible training pixels and of test pixels, and the classes of both."""

    candidates: Pixels
    test: Pixels
    trained: Mask
    tested: Mask

    @property
    def score(self) -> int:
        """Return 3 for each class on both sides, 2 for each that is only trained, else 0."""
        return int((self.trained * (2 + self.tested)).sum())


def split_blocks(
    labels: LabelMap, blocks: int | Units, guard: int, parts: int, part: int, seed: int, draws: int
) -> Sides:
    """Deal blocks of labelled pixels to parts: one part tests, the others train.

    Args:
        labels: (H, W), 0 unlabelled, classes 1..C.
        blocks: their side; or the polygons (H, W) that label the pixels and take their place.
        guard: a pixel trains only if no test pixel lies within this many rows and columns.
        parts: number of parts; they get similar shares of each class.
        seed: of the blocks' origin and the order of the deal.
        draws: number of deals to choose from; 1 for folds, which would overlap otherwise.

    Returns:
        The two sides, from the deal with most classes on both.
    """
    generator = np.random.default_rng(seed)
    best, index = None, blocks
    if isinstance(blocks, np.ndarray):
        index = np.unique(blocks, return_inverse=True)[1].reshape(labels.shape)
    for _ in range(draws):
        units = index if isinstance(index, np.ndarray) else _blocks(labels.shape, index, generator)
        sides = _sides(labels, _deal(labels, units, parts, generator) == part, guard)
        if best is None or sides.score > best.score:
            best = sides
        if best.score == 3 * int(labels.max()):
            break
    assert best is not None  # at least one draw is made
    return best


def _blocks(shape: tuple[int, ...], side: int, generator: np.random.Generator) -> Units:
    """Return the number (H, W) of the block of every pixel; the first one begins at random."""
    (height, width), (top, left) = shape, generator.integers(0, side, size=2)
    rows, columns = (np.arange(height) + top) // side, (np.arange(width) + left) // side
    index: Units = rows[:, None] * (int(columns[-1]) + 1) + columns[None, :]
    return index


def within_reach(mask: Mask, reach: int) -> Mask:
    """Return (H, W), True within `reach` rows and columns of a True pixel."""
    from scipy.ndimage import maximum_filter

    near_mask: Mask = maximum_filter(mask, 2 * reach + 1, mode="constant")
    return near_mask


def _deal(
    labels: LabelMap, index: Units, parts: int, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the part (H, W) of every pixel; all parts get similar shares of each class.

    The deal is greedy, as in stratified group k-fold. Units (blocks or polygons) with the rarest
    classes come first. A unit goes to the part that has least of the unit's classes.
    """
    blocks = int(index.max()) + 1
    classes = int(labels.max())
    counts = np.zeros((blocks, classes + 1))
    np.add.at(counts, (index.ravel(), labels.ravel()), 1)
    shares = counts[:, 1:] / np.maximum(counts[:, 1:].sum(axis=0), 1)  # a class may have no pixel
    order = generator.permutation(blocks)
    order = order[np.argsort(-shares[order].max(axis=1), kind="stable")]
    sums = np.zeros((parts, classes))
    dealt = np.zeros(blocks, dtype=np.int64)
    for number in order:
        # Share that a part already has of this block's classes, weighted by their pixels here.
        load = sums @ shares[number]
        lightest = np.flatnonzero(load <= load.min() + 1e-12)
        dealt[number] = generator.choice(lightest)
        sums[dealt[number]] += shares[number]
    parts_of_pixels: npt.NDArray[np.int64] = dealt[index]
    return parts_of_pixels


def _sides(labels: LabelMap, testing: Mask, guard: int) -> Sides:
    test = testing & (labels > 0)
    candidates = ~testing & (labels > 0) & ~within_reach(test, guard)
    trained, tested = (
        np.bincount(labels[side], minlength=int(labels.max()) + 1)[1:] > 0
        for side in (candidates, test)
    )
    return Sides(np.flatnonzero(candidates), np.flatnonzero(test), trained, tested)


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
