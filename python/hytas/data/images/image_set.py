"""A set of labelled images of one size."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hytas.data.findings import refusal
from hytas.data.labels.maps import LabelMap
from hytas.data.samples import Read, Samples
from hytas.errors import InputError
from hytas.types import Array, Floats, Mask

MOST_FITTED = 2**22
"""Values of training images, at most, that their scaling is fitted on."""


@dataclass(frozen=True, eq=False)
class ImageSet(Samples):
    """Labelled images; where a scene has pixels, it has images, numbered from 0.

    Attributes:
        labels: (N,) int32, classes 1..C; the union of `train` and `test`.
        train, test: (N,) int32, the fixed split of the folder or file, or None.
        fingerprint: sha256 of images, labels, split and class names, in hex.
        files: of the images, or numbers, for messages and tables.
    """

    name: str
    read: Read
    labels: LabelMap
    train: LabelMap | None
    test: LabelMap | None
    class_names: tuple[str, ...]
    class_ids: tuple[int, ...]
    side: int
    channels: int
    dtype: np.dtype[Any]
    sources: tuple[str, ...]
    fingerprint: str
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()
    class_colours: tuple[tuple[int, int, int], ...] | None = None
    wavelengths: Floats | None = None

    kind: ClassVar[str] = "pixel values"
    least_bands: ClassVar[int] = 1
    fwhm: ClassVar[None] = None
    pixel_metres: ClassVar[None] = None

    @property
    def bands(self) -> int:
        """Return the number of channels."""
        return self.channels

    def reader(self, side: int) -> Read:
        """Return what reads raw images (n, side, side, channels) by number.

        Raises:
            InputError: the images have another side.
        """
        if side != self.side:
            rule = f"a reader of {side} x {side} pixels does not fit"
            raise InputError(f"images of {self.side} x {self.side} pixels", rule=rule)
        return self.read

    def side_of(self, patch_size: int) -> int:
        return self.side

    def values(self, numbers: npt.NDArray[np.int64], seed: int) -> Array:
        most = max(1, MOST_FITTED // (self.side**2 * self.channels))
        chosen = np.random.default_rng(seed).permutation(numbers)[:most]
        return self.read(np.sort(chosen)).reshape(-1, self.channels)

    def describe(self, used: int) -> str:
        """Return one line about the set; `used` channels enter the network."""
        return (
            f"images {self.name}: {len(self.labels)} of {self.side} x {self.side} pixels, "
            f"{self.channels} channels ({used} used), {self.classes} classes, {self.dtype}"
        )


@dataclass(frozen=True, eq=False)
class InMemory:
    """Images (N, side, side, channels) that are in memory."""

    images: Array

    def __call__(self, numbers: npt.NDArray[np.int64]) -> Array:
        """Return the images of these numbers (n,)."""
        return self.images[numbers]


def image_set(
    read: Read,
    labels: LabelMap,
    parts: Mask | None,
    class_names: Sequence[str],
    example: Array,
    digest: str,
    *,
    source: str,
    files: Sequence[str],
) -> ImageSet:
    """Check facts of a set and return it.

    Args:
        parts: (N,) whether an image is of the fixed test set; None where there is no fixed split.
        example: one image (side, side, channels).
    """
    if len(class_names) < 2:
        raise refusal("classes-few", "data", source, classes=class_names)
    height, width, channels = example.shape
    if height != width:
        size = f"{height} x {width}"
        raise refusal(
            "images-unlike", "data", source, "no-square", size=size, side=min(height, width)
        )
    facts = [digest, tuple(class_names), labels.tolist(), None if parts is None else parts.tolist()]
    return ImageSet(
        name=Path(source).name.removesuffix(".npz"),
        read=read,
        labels=labels.astype(np.int32),
        train=None if parts is None else np.where(parts, 0, labels).astype(np.int32),
        test=None if parts is None else np.where(parts, labels, 0).astype(np.int32),
        class_names=tuple(class_names),
        class_ids=tuple(range(1, len(class_names) + 1)),
        side=height,
        channels=channels,
        dtype=example.dtype,
        sources=(source,),
        fingerprint=hashlib.sha256(repr(facts).encode()).hexdigest(),
        files=tuple(files),
    )
