"""Cross-validation over blocks of a cube, for the tools of scikit-learn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.findings import refusal
from hytas.data.labels.maps import LabelMap
from hytas.data.splits.blocks import split_blocks
from hytas.errors import InputError
from hytas.types import Pixels


@dataclass(frozen=True, eq=False)
class CubePixels:
    """Labelled pixels that scikit-learn can index, together with their whole cube.

    Attributes:
        cube: (H, W, bands).
        pixels: flat indices (n,).
    """

    cube: npt.NDArray[Any]
    pixels: Pixels

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> tuple[int, int]:
        """Pixels and bands."""
        return len(self.pixels), self.cube.shape[2]

    def __getitem__(self, chosen: Any) -> "CubePixels":
        if isinstance(chosen, tuple):  # scikit-learn writes [rows, ...]
            chosen = chosen[0]
        return CubePixels(self.cube, np.atleast_1d(self.pixels[chosen]))

    def label_map(self, targets: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return (H, W) labels: `targets` (n,) at these pixels and 0 elsewhere."""
        values = np.asarray(targets)
        if values.shape != self.pixels.shape:
            rule = f"there must be one for each of {len(self)} pixels"
            raise InputError("labels_of_shape", values.shape, rule)
        labels = np.zeros(self.cube.shape[:2], values.dtype)
        labels.ravel()[self.pixels] = values
        return labels


class BlockSplit:
    """Splitter over blocks of a cube, for `cross_val_score` and `GridSearchCV` of scikit-learn.

    A cube cannot be cut into rows like a table, because each pixel needs its neighbours. So the
    samples are pixels that keep their cube::

        pixels, targets = BlockSplit.samples(cube, labels)
        cross_val_score(HSIClassifier(), pixels, targets, cv=BlockSplit(folds=3))

    No patch around a training pixel contains a test pixel.

    Args:
        folds: number of parts that blocks are dealt to; each part tests once.
        patch_size: side of the classifier's patch, or larger; an odd number.

    Raises:
        InputError: a number is out of its range.
    """

    def __init__(
        self, folds: int = 5, *, block: int = 16, patch_size: int = 7, seed: int = 0
    ) -> None:
        for name, value, least in (
            ("folds", folds, 2),
            ("block", block, 1),
            ("patch_size", patch_size, 1),
            ("seed", seed, 0),
        ):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(name, value, f"must be a whole number of {least} or more")
        if patch_size % 2 == 0:
            raise InputError("patch_size", patch_size, "must be odd")
        self.folds, self.block, self.patch_size, self.seed = folds, block, patch_size, seed

    @staticmethod
    def samples(cube: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[CubePixels, npt.NDArray[Any]]:
        """Return the labelled pixels of a cube (H, W, bands) and their labels (n,).

        Raises:
            InputError: the labels do not have the cube's (H, W), or all are 0.
        """
        cube, labels = np.asarray(cube), np.asarray(labels)
        if cube.ndim != 3 or labels.shape != cube.shape[:2]:
            raise InputError(
                f"labels of shape {labels.shape}, cube of shape {cube.shape}",
                rule="must be (H, W) and (H, W, bands)",
            )
        pixels = np.flatnonzero(labels)
        if not pixels.size:
            raise InputError("labels", rule="no pixel is labelled: all values are 0")
        return CubePixels(cube, pixels), labels.ravel()[pixels]

    def get_n_splits(self, x: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.folds

    def split(self, x: Any, y: Any, groups: Any = None) -> Iterator[tuple[Pixels, Pixels]]:
        """Yield the positions of training and test pixels in `x`, for each fold.

        Test pixels whose class has no training pixel are left out.

        Raises:
            InputError: `x` is not from `BlockSplit.samples`, or a fold has too few pixels.
        """
        if not isinstance(x, CubePixels):
            raise refusal("cube-in-rows", "BlockSplit")
        _, classes = np.unique(np.asarray(y), return_inverse=True)
        labels: LabelMap = x.label_map(classes + 1)
        place = np.full(labels.size, -1, np.int64)
        place[x.pixels] = np.arange(len(x))
        guard = self.patch_size // 2
        for part in range(self.folds):
            sides = split_blocks(labels, self.block, guard, self.folds, part, self.seed, 1)
            test = sides.test[sides.trained[labels.ravel()[sides.test] - 1]]
            if sides.trained.sum() < 2 or not test.size:
                facts = {"fold": part, "key": "folds"}
                raise refusal("split-of-few-classes", "BlockSplit", case="fold", **facts)
            yield place[sides.candidates], place[test]
