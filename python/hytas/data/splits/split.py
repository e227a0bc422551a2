"""Which labelled pixels train, validate and test."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from hytas.data.contents import reading
from hytas.data.scene import Scene
from hytas.data.splits.apart import folds_apart
from hytas.data.splits.validation import Pixels, further_folds
from hytas.errors import InputError
from hytas.files import atomic_write

AT_ONE_END = ("blocks", "folds", "polygons")
"""Kinds whose validation pixels are taken from one side of each class's area: less like those
trained on than a random draw would be, although no guard band parts them."""
FOLDS_STREAM = 5  # beside the seed: another draw than the split's


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of labelled pixels, as flat indices (row * width + column), ascending.

    Attributes:
        train: pixels to fit on.
        validation: taken from the training pixels, to choose on.
        test: pixels to report on, never looked at before.
        kind: "fixed" (the file's own), "random", "blocks", "folds" or "polygons".
        seed: of the draw.
        patch_size: for which `overlap` was counted.
        overlap: fraction of test pixels inside the patch of a training or validation pixel.
        notes: one-line remarks, naming the classes that are not trained, not validated or not
            tested, and those with fewer training pixels than asked for.
    """

    train: Pixels
    validation: Pixels
    test: Pixels
    kind: str
    seed: int
    patch_size: int
    overlap: float
    notes: tuple[str, ...] = ()

    @property
    def learnable(self) -> Pixels:
        """Training and validation pixels together, ascending."""
        return np.union1d(self.train, self.validation)

    def folds(self, scene: Scene, enough: int) -> list[tuple[Pixels, Pixels]]:
        """Pairs of training and validation pixels: this one, then pairs of the same pixels.

        Args:
            scene: that was split.
            enough: validation pixels of all pairs together, at which there are enough; there are
                never more than five pairs, nor than there are pixels for.
        """
        pair = self.train, self.validation
        generator = np.random.default_rng([self.seed, FOLDS_STREAM])
        return [pair, *further_folds(scene, *pair, enough, self.kind in AT_ONE_END, generator)]

    def folds_like_test(self, scene: Scene, block: int, enough: int) -> list[tuple[Pixels, Pixels]]:
        """Pairs of `learnable` pixels whose second parts lie as the test pixels lie.

        Of a split by blocks these are whole blocks beyond a guard band, where there are any: what
        lies beside the pixels that are learnt is classified far better than what is tested. Else
        they are those of `folds`. There is no pair without validation pixels.

        Args:
            scene: that was split.
            block: side of the blocks.
            enough: held-out pixels of all pairs together.
        """
        if not self.validation.size:
            return []
        if self.kind in AT_ONE_END:
            guard = self.patch_size // 2
            polygons = self.kind == "polygons"
            pairs = folds_apart(scene, self.learnable, block, guard, self.seed, enough, polygons)
            if pairs:
                return pairs
        return self.folds(scene, enough)

    def describe(self) -> str:
        """Return one line to print, with the overlap, and whether figures will be optimistic."""
        counts = f"{self.train.size} training, {self.validation.size} validation"
        line = f"{self.kind} split: {counts}, {self.test.size} test pixels"
        optimistic = "optimistic: " if self.overlap > 0 else ""
        return (
            f"{line}; {optimistic}{self.overlap:.0%} of the test pixels lie inside the "
            f"{self.patch_size} x {self.patch_size} patch of a training pixel"
        )

    def save(self, path: str | Path) -> None:
        """Write a .npz file, whole or not at all."""
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file,
                train=self.train,
                validation=self.validation,
                test=self.test,
                kind=np.array(self.kind),
                seed=np.array(self.seed, dtype=np.int64),
                patch_size=np.array(self.patch_size, dtype=np.int64),
                overlap=np.array(self.overlap, dtype=np.float64),
                notes=np.array(json.dumps(self.notes)),
            )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            InputError: the file is missing, broken, or not a split.
        """
        path = Path(path)
        if not path.exists():
            raise InputError(f"split: no such file: {path}")
        with (
            reading("split", path, "split"),
            path.open("rb") as stream,
            np.load(stream, allow_pickle=False) as file,
        ):
            return cls(
                train=file["train"].astype(np.int64),
                validation=file["validation"].astype(np.int64),
                test=file["test"].astype(np.int64),
                kind=str(file["kind"]),
                seed=int(file["seed"]),
                patch_size=int(file["patch_size"]),
                overlap=float(file["overlap"]),
                notes=tuple(json.loads(str(file["notes"]))),
            )
