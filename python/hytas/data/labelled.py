"""What splits ask of labelled samples: the pixels of a scene, or images."""

from typing import Protocol

from hytas.data.labels import LabelMap


class Labelled(Protocol):
    """Labelled samples, numbered from 0 in the order of `labels`.

    Attributes of a scene or a set of images; see there.
    """

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> LabelMap: ...
    @property
    def train(self) -> LabelMap | None: ...
    @property
    def test(self) -> LabelMap | None: ...
    @property
    def class_names(self) -> tuple[str, ...]: ...
    @property
    def class_ids(self) -> tuple[int, ...]: ...
    @property
    def classes(self) -> int: ...
    @property
    def width(self) -> int: ...
