"""Labelled samples: the pixels of a scene, or a set of images."""

import numpy as np

from hytas.data.labels.maps import LabelMap
from hytas.data.palette import Palette, palette
from hytas.types import Pixels


class Samples:
    """Labelled samples, numbered from 0 in the order of `labels`; see `Scene` and `ImageSet`."""

    name: str
    labels: LabelMap
    train: LabelMap | None
    test: LabelMap | None
    class_names: tuple[str, ...]
    class_ids: tuple[int, ...]
    class_colours: tuple[tuple[int, int, int], ...] | None

    @property
    def width(self) -> int:
        """Return the number of columns; 1 for samples that have no neighbours."""
        return 1

    @property
    def classes(self) -> int:
        """Return the number of classes, without unlabelled."""
        return len(self.class_ids)

    @property
    def palette(self) -> Palette:
        """Return colours of the classes, (C, 3) RGB: from the label file, or chosen by hytas."""
        if self.class_colours is not None:
            return np.array(self.class_colours, np.uint8)
        return palette(self.classes)

    def targets(self, numbers: Pixels) -> Pixels:
        """Return class indices (n,), 0-based, of the samples of these numbers; unlabelled: -1."""
        return self.labels.ravel()[numbers].astype(np.int64) - 1

    def class_counts(self) -> dict[str, int]:
        """Return the number of labelled samples of each class."""
        counts = np.bincount(self.labels.ravel(), minlength=self.classes + 1)[1:]
        return {name: int(count) for name, count in zip(self.class_names, counts, strict=True)}
