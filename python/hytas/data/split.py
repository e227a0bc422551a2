"""Which labelled pixels train, validate and test."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from hytas.data.patches import check_patch_size
from hytas.data.scene import Scene
from hytas.errors import InputError
from hytas.files import atomic_write

KINDS = ("auto", "fixed", "random")

Pixels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of labelled pixels, as flat indices (row * width + column), ascending.

    Attributes:
        train: pixels to fit on.
        validation: taken from the training pixels, to choose on.
        test: pixels to report on, never looked at before.
        kind: "fixed" (the file's own) or "random".
        seed: of the draw.
        patch_size: for which `overlap` was counted.
        overlap: fraction of test pixels inside the patch of a training or validation pixel.
    """

    train: Pixels
    validation: Pixels
    test: Pixels
    kind: str
    seed: int
    patch_size: int
    overlap: float

    def describe(self) -> str:
        """Return one line to print; it says so when the test figures will be optimistic."""
        counts = f"{self.train.size} training, {self.validation.size} validation"
        line = f"{self.kind} split: {counts}, {self.test.size} test pixels"
        if self.overlap > 0:
            line += (
                f"; optimistic: {self.overlap:.0%} of the test pixels lie inside the "
                f"{self.patch_size} x {self.patch_size} patch of a training pixel"
            )
        return line

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
            )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            InputError: the file is missing, broken, or not a split.
        """
        try:
            with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                return cls(
                    train=file["train"].astype(np.int64),
                    validation=file["validation"].astype(np.int64),
                    test=file["test"].astype(np.int64),
                    kind=str(file["kind"]),
                    seed=int(file["seed"]),
                    patch_size=int(file["patch_size"]),
                    overlap=float(file["overlap"]),
                )
        except FileNotFoundError:
            raise InputError(f"split: no such file: {path}") from None
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"split: {path} is truncated, or not a split ({error})") from error


def make_split(
    scene: Scene,
    *,
    kind: str = "auto",
    train_per_class: int = 50,
    validation_fraction: float = 0.2,
    seed: int = 0,
    patch_size: int = 7,
) -> Split:
    """Split the labelled pixels of a scene.

    Args:
        scene: to split.
        kind: "fixed" takes the scene's own maps; "random" draws min(train_per_class, half of the
            class) pixels of each class to train on and tests on the rest; "auto" is "fixed" where
            the scene has maps, else "random".
        train_per_class: pixels a class, validation pixels included.
        validation_fraction: of the training pixels of each class, at least one where it has 3 or
            more; 0 takes none.
        seed: of both draws.
        patch_size: side of the patches that will be cut, to count the overlap.

    Raises:
        InputError: an unknown kind, "fixed" without maps, a number out of its range, or a class
            without a pixel to train on and one to test on.
    """
    check_patch_size(patch_size, scene.height, scene.width)
    if kind not in KINDS:
        raise InputError(f"split: {kind!r} is not one of {', '.join(KINDS)}")
    if train_per_class < 1:
        raise InputError(f"train per class: {train_per_class} must be at least 1")
    if not 0 <= validation_fraction < 1:
        raise InputError(f"validation fraction: {validation_fraction} must be in [0, 1)")
    if seed < 0:
        raise InputError(f"seed: {seed} must be 0 or more")
    if kind == "auto":
        kind = "random" if scene.train is None else "fixed"
    generator = np.random.default_rng(seed)
    if kind == "fixed":
        chosen, test = _fixed(scene)
    else:
        chosen, test = _random(scene, train_per_class, generator)
    overlap = overlap_fraction(scene.labels.shape, chosen, test, patch_size)
    train, validation = _take_validation(scene, chosen, validation_fraction, generator)
    return Split(train, validation, test, kind, seed, patch_size, overlap)


def overlap_fraction(shape: tuple[int, ...], train: Pixels, test: Pixels, patch_size: int) -> float:
    """Return the fraction of test pixels that lie inside the patch of a training pixel."""
    if test.size == 0:
        return 0.0
    height, width = shape
    reach = patch_size // 2
    seen = np.zeros((height + patch_size, width + patch_size), dtype=np.int64)
    rows, columns = np.divmod(train, width)
    # Corners of each patch in a difference array, whose double sum counts the patches on a pixel.
    for row, column, sign in ((0, 0, 1), (1, 0, -1), (0, 1, -1), (1, 1, 1)):
        np.add.at(seen, (rows + row * patch_size, columns + column * patch_size), sign)
    covered = seen.cumsum(axis=0).cumsum(axis=1)[reach : reach + height, reach : reach + width]
    return float(np.mean(covered.ravel()[test] > 0))


def _fixed(scene: Scene) -> tuple[Pixels, Pixels]:
    if scene.train is None or scene.test is None:
        raise InputError(
            f"split: 'fixed' needs a training and a test map, {scene.name} has one label map"
        )
    for label in range(1, scene.classes + 1):
        counts = [int((part == label).sum()) for part in (scene.train, scene.test)]
        if 0 in counts:
            where = "train" if counts[0] == 0 else "test"
            raise InputError(
                f"labels: class {scene.class_ids[label - 1]} has no pixel to {where} on: "
                "every class needs at least one to train on and one to test on"
            )
    return np.flatnonzero(scene.train), np.flatnonzero(scene.test)


def _random(
    scene: Scene, train_per_class: int, generator: np.random.Generator
) -> tuple[Pixels, Pixels]:
    flat = scene.labels.ravel()
    chosen, rest = [], []
    for label, name in enumerate(scene.class_ids, start=1):
        pixels = np.flatnonzero(flat == label)
        if pixels.size < 2:
            raise InputError(
                f"labels: class {name} has {pixels.size} labelled pixel: at least 2 needed, "
                "one to train on and one to test on"
            )
        shuffled = generator.permutation(pixels)
        count = min(train_per_class, pixels.size // 2)
        chosen.append(shuffled[:count])
        rest.append(shuffled[count:])
    return np.sort(np.concatenate(chosen)), np.sort(np.concatenate(rest))


def _take_validation(
    scene: Scene, chosen: Pixels, fraction: float, generator: np.random.Generator
) -> tuple[Pixels, Pixels]:
    """Part the training pixels class by class; a class of fewer than 3 keeps them all."""
    labels = scene.labels.ravel()[chosen]
    taken = []
    for label in range(1, scene.classes + 1):
        pixels = chosen[labels == label]
        count = 0
        if fraction > 0 and pixels.size >= 3:
            count = min(max(1, round(fraction * pixels.size)), pixels.size - 1)
        taken.append(generator.permutation(pixels)[:count])
    validation = np.sort(np.concatenate(taken))
    return np.setdiff1d(chosen, validation), validation
