"""The training, validation and test pixels of a scene."""

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from hytas.data.record import reading
from hytas.data.samples import Samples
from hytas.data.scene import Scene
from hytas.data.splits.blocks import guarded_folds
from hytas.data.splits.validation import MOST_FOLDS, further_folds
from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.types import Pixels

AT_ONE_END = ("blocks", "folds", "polygons")
"""Kinds whose validation pixels lie on one side of each class's area. They resemble the training
pixels less than a random draw, although there is no guard band."""
GROUPS = "groups"
"""Kind of a split whose groups of samples lie on one side each."""
FOLDS_STREAM = 5  # joins the seed, so that folds are another draw than the split


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of labelled pixels, as flat indices (row * width + column), ascending.

    Attributes:
        validation: pixels taken from the training pixels, to choose models on.
        test: pixels for the final report; nothing else uses them.
        kind: "fixed" (the file's own), "random", "blocks", "folds", "polygons" or "groups".
        patch_size: side of the patches for `overlap`; 0 for images and tables, which do not
            overlap.
        overlap: fraction of test pixels inside the patch of a training or validation pixel.
        notes: one-line remarks on classes that are not trained, not validated or not tested, or
            have fewer training pixels than the settings say.
        test_only: labelled pixels of scenes that are only tested on, which are reported separately.
    """

    train: Pixels
    validation: Pixels
    test: Pixels
    kind: str
    seed: int
    patch_size: int
    overlap: float
    notes: tuple[str, ...] = ()
    test_only: Pixels = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def reported(self) -> Pixels:
        """Return all pixels that are tested, also of test-only scenes, ascending."""
        return np.union1d(self.test, self.test_only)

    @property
    def spatially_disjoint(self) -> bool:
        """Whether the split is spatially disjoint: a guard band separates the test pixels."""
        return self.kind in (*AT_ONE_END, GROUPS)

    @property
    def train_and_validation(self) -> Pixels:
        """Return training and validation pixels together, ascending."""
        return np.union1d(self.train, self.validation)

    def folds(self, scene: Samples, enough: int) -> list[tuple[Pixels, Pixels]]:
        """Return pairs of training and validation pixels; the first pair is this split's.

        Args:
            enough: number of validation pixels in all pairs that is enough. There are at most five
                pairs, and fewer if pixels are few.
        """
        pair = self.train, self.validation
        generator = np.random.default_rng([self.seed, FOLDS_STREAM])
        return [pair, *further_folds(scene, *pair, enough, self.spatially_disjoint, generator)]

    def folds_like_test(
        self, scene: Samples, block: int, enough: int
    ) -> list[tuple[Pixels, Pixels]]:
        """Return pairs of training and held-out pixels; these resemble the test pixels.

        In a split by blocks the second parts are whole blocks beyond a guard band, if there are
        any. Pixels next to training pixels would be classified far better than test pixels.
        Otherwise the pairs are those of `folds`. Without validation pixels there is no pair.

        Args:
            enough: least number of held-out pixels in all pairs.
        """
        if not self.validation.size:
            return []
        if self.kind == GROUPS:
            assert isinstance(scene, Scene)
            return self._folds_of_groups(scene, enough)
        if self.spatially_disjoint:
            assert isinstance(scene, Scene)  # images have no places
            guard = self.patch_size // 2
            polygons = self.kind == "polygons"
            pairs = guarded_folds(
                scene, self.train_and_validation, block, guard, self.seed, enough, polygons
            )
            if pairs:
                return pairs
        return self.folds(scene, enough)

    def _folds_of_groups(self, scene: Scene, enough: int) -> list[tuple[Pixels, Pixels]]:
        """Return this split's pair, and pairs that hold out other groups of the training rows."""
        pairs, labels = [(self.train, self.validation)], scene.labels.ravel()
        for _, held_out in group_folds(scene, self.train, MOST_FOLDS - 1, self.seed + 2):
            if sum(len(pixels) for _, pixels in pairs) >= enough:
                break
            train = np.setdiff1d(self.train_and_validation, held_out)
            held_out = held_out[np.isin(labels[held_out], labels[train])]
            if held_out.size:  # else its groups are the only ones of their classes
                pairs.append((train, held_out))
        return pairs

    def all_folds_like_test(
        self, scene: Samples, block: int, enough: int, many: int
    ) -> list[tuple[Pixels, Pixels]]:
        """Return the pairs of `folds_like_test`, and more of their kind if these hold out few.

        Args:
            many: held-out pixels in all pairs. There are at most five pairs. Those beyond a guard
                band are always the same.
        """
        pairs = self.folds_like_test(scene, block, enough)
        own = pairs and np.array_equal(pairs[0][1], self.validation)
        return self.folds_like_test(scene, block, max(many, enough)) if own else pairs

    def describe(self) -> str:
        """Return one line with the counts and the overlap; it says if figures are optimistic."""
        # Each fold holds out others, so their number would be wrong for most of them.
        counts = f"{self.train_and_validation.size} training"
        counts += " (validation included)" if self.validation.size else ""
        if not self.patch_size:
            groups = "; no group lies on two sides" if self.kind == GROUPS else ""
            return f"{self.kind} split: {counts}, {self.test.size} test samples{groups}"
        line = f"{self.kind} split: {counts}, {self.test.size} test pixels"
        if self.test_only.size:
            line += f", {self.test_only.size} in scenes that are only tested on"
        optimistic = "optimistic: " if self.overlap > 0 else ""
        return (
            f"{line}; {optimistic}{self.overlap:.0%} of the test pixels lie inside the "
            f"{self.patch_size} x {self.patch_size} patch of a training pixel"
        )

    def save(self, path: str | Path) -> None:
        """Write a .npz file, completely or not at all."""
        values: dict[str, Any] = {
            "train": self.train,
            "validation": self.validation,
            "test": self.test,
            "kind": np.array(self.kind),
            "seed": np.array(self.seed, dtype=np.int64),
            "patch_size": np.array(self.patch_size, dtype=np.int64),
            "overlap": np.array(self.overlap, dtype=np.float64),
            "notes": np.array(json.dumps(self.notes)),
        }
        if self.test_only.size:  # so that a split without them gives the bytes that it always gave
            values["apart"] = self.test_only
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **values)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote.

        Raises:
            InputError: the file is missing, broken, or not a split.
        """
        path = Path(path)
        if not path.exists():
            raise InputError("split", rule=f"no such file: {path}")
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
                test_only=(file["apart"] if "apart" in file else np.empty(0)).astype(np.int64),
            )


def group_folds(scene: Scene, pixels: Pixels, parts: int, seed: int) -> list[tuple[Pixels, Pixels]]:
    """Return pairs of train and held-out pixels, with whole groups and all classes in each part.

    Args:
        scene: whose `polygons` are the groups; without them every pixel is one.
        pixels: flat indices of labelled pixels.
        parts: fewer if there are fewer groups.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    labels = scene.labels.ravel()[pixels]
    groups = pixels if scene.polygons is None else scene.polygons.ravel()[pixels]
    parts = min(parts, len(np.unique(groups)), int(np.bincount(labels).max()))
    if parts < 2:
        return []
    folds = StratifiedGroupKFold(parts, shuffle=True, random_state=seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes with fewer samples than parts
        dealt = list(folds.split(pixels, labels, groups))
    return [(pixels[train], pixels[held_out]) for train, held_out in dealt]
