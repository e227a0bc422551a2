"""Labelled samples: the pixels of a scene, or a set of images."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from hytas.data.labels.maps import LabelMap
from hytas.data.palette import Palette, palette
from hytas.data.patches import Part
from hytas.data.targets import Targets
from hytas.types import Array, Floats, Pixels

Read = Callable[[Pixels], Array]
"""Numbers of samples (n,) -> their raw values (n, side, side, bands)."""


class Samples(ABC):
    """Labelled samples, numbered from 0 in the order of `labels`; see `Scene` and `ImageSet`.

    What stands here holds for samples that are not parts of a map.
    """

    name: str
    labels: LabelMap
    train: LabelMap | None
    test: LabelMap | None
    class_names: tuple[str, ...]
    class_ids: tuple[int, ...]
    class_colours: tuple[tuple[int, int, int], ...] | None
    wavelengths: Floats | None
    nodata: float | None = None

    has_map: ClassVar[bool] = False
    """Whether labelled samples are pixels of a map, which can be drawn and smoothed."""
    kind: ClassVar[str] = "spectra"
    """What the reference methods read of a sample."""
    bad_bands: tuple[int, ...] = ()
    joined: tuple[Part, ...] = ()
    continuous: Targets | None = None
    """Values of its samples, which are then not of classes."""
    least_bands: ClassVar[int] = 2
    """Bands that a network needs."""

    @property
    def groups(self) -> LabelMap | None:
        """Return the group of each sample, which no fold may divide; None without groups."""
        return None

    @abstractmethod
    def reader(self, side: int) -> Read:
        """Return what reads raw patches, or whole images, by number."""

    @abstractmethod
    def side_of(self, patch_size: int) -> int:
        """Return the side of what a network reads, if patches of a scene have `patch_size`."""

    @abstractmethod
    def values(self, numbers: Pixels, seed: int) -> Array:
        """Return raw values (n, bands) of samples; of many, a part that the seed draws may do."""

    @property
    def width(self) -> int:
        """Return the number of columns; 1 for samples that have no neighbours."""
        return 1

    @property
    def classes(self) -> int:
        """Return the number of classes, without unlabelled."""
        return len(self.class_ids)

    @property
    def told(self) -> str:
        """Return what is told of its samples: "6 classes", or the names of targets."""
        if self.continuous is None:
            return f"{self.classes} classes"
        return f"targets {', '.join(self.continuous.names)}"

    @property
    def least_classes(self) -> int:
        """Return how many kinds of labels a split needs on both sides."""
        return 2 if self.continuous is None else 1

    @property
    def palette(self) -> Palette:
        """Return colours of the classes, (C, 3) RGB: from the label file, or chosen by hytas."""
        if self.class_colours is not None:
            return np.array(self.class_colours, np.uint8)
        return palette(self.classes)

    def targets(self, numbers: Pixels) -> Array:
        """Return class indices (n,), 0-based, of the samples of these numbers; unlabelled: -1.

        Of samples with continuous targets these (n, T).
        """
        if self.continuous is not None:
            return self.continuous.of(numbers)
        return self.labels.ravel()[numbers].astype(np.int64) - 1

    def class_counts(self) -> dict[str, int]:
        """Return the number of labelled samples of each class."""
        counts = np.bincount(self.labels.ravel(), minlength=self.classes + 1)[1:]
        return {name: int(count) for name, count in zip(self.class_names, counts, strict=True)}
