"""The options of a scene or a table, as `load_scene` takes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hytas.data.labels.options import LabelOptions
from hytas.data.no_data import check_nodata
from hytas.errors import InputError
from hytas.types import Array

OF_TABLES = ("label_column", "group_column", "target_column", "band_columns")
OF_SHAPES = ("class_field", "value_field", "labels_crs")
OF_SCENES = ("axes", "labels_key", *OF_SHAPES, "zero_is_a_class", "data_dir")


@dataclass(frozen=True)
class SceneOptions:
    """Arguments of `load_scene`."""

    labels: LabelOptions = field(default_factory=LabelOptions)
    cube_key: str | None = None
    axes: str | None = None
    bands: str | None = None
    nodata: float | None = None
    data_dir: str | Path | None = None
    label_column: str | None = None
    group_column: str | None = None
    target_column: Sequence[str] = ()
    units: Sequence[str] = ()
    fractions: bool = False
    band_columns: str | None = None

    def refuse(self, names: Iterable[str], rule: str) -> None:
        """Refuse options that are given, but mean nothing for the data."""
        of_labels = {
            "labels_key": self.labels.key,
            "class_field": self.labels.class_field,
            "value_field": self.labels.value_fields,
            "labels_crs": self.labels.crs,
            "unlabelled": self.labels.unlabelled.given,
            "zero_is_a_class": self.labels.zero_is_a_class or None,
        }
        for name in names:
            value: Any = of_labels[name] if name in of_labels else getattr(self, name)
            if value not in (None, ()):
                raise InputError(name, value, rule)

    def nodata_of(self, own: float | None, cube: Array) -> float | None:
        """Return the no-data value of a cube: the user's, or `own`, which the file names."""
        return own if self.nodata is None else check_nodata(self.nodata, cube.dtype)
