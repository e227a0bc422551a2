"""Polygons and points of a file, with their fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, refusal

Points = npt.NDArray[np.float64]
Geometries = npt.NDArray[np.object_]
PARTS = NONE, POINT, POLYGON = -1, 0, 3
"""Numbers of types of geometries in shapely; those of several parts are larger."""

CLASS_FIELDS = ("class", "label", "class_name", "classname", "class_id")
"""Names of the field of classes that need no `class_field`, in lower case."""
COLOUR_FIELDS = ("color", "colour", "fill")


@dataclass(frozen=True, eq=False)
class Shapes:
    """The shapes of a file, as the file has them.

    Attributes:
        format: the file's, for people to read.
        geometries: (n,) polygons and points of shapely; None for a shape without a place.
        fields: n values of each field.
        crs: the coordinate system of (x, y), as "EPSG:4326" or well-known text; "" for that of the
            scene; None if unknown.
        in_pixels: whether coordinates are (column, row) of the scene, pixel centres at .5.
        texts: names of fields of texts, read or not.
        size: height and width of the scene that the shapes were drawn on, or None.
    """

    format: str
    geometries: Geometries
    fields: Mapping[str, Sequence[Any]]
    crs: str | None = None
    in_pixels: bool = False
    size: tuple[int, int] | None = None
    findings: tuple[Finding, ...] = ()
    texts: tuple[str, ...] = ()


def parts_of(geometries: Geometries) -> tuple[Geometries, npt.NDArray[np.int64]]:
    """Return the parts of geometries that have some, and the index of the geometry of each."""
    import shapely

    parts, index = geometries, np.arange(len(geometries))
    while (shapely.get_type_id(parts) > POLYGON).any():  # parts may have parts
        parts, inner = shapely.get_parts(parts, return_index=True)
        index = index[inner]
    return parts, index


def plain_value(value: Any) -> Any:
    """Return a number, a text or None; NaN, which libraries write for no number, is None."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return str(value)


def find_field(
    fields: Mapping[str, Sequence[Any]], wanted: str | None, argument: str = "class_field"
) -> str:
    """Return the name of the field that holds the classes, or values, which `argument` names."""
    names = list(fields)
    if wanted is not None:
        same = [name for name in names if name == wanted]
        same = same or [name for name in names if name.lower() == wanted.lower()]
        if len(same) != 1:
            raise refusal("missing", argument, wanted, "field", names=names)
        return same[0]
    usual = [name for name in names if name.lower() in CLASS_FIELDS]
    candidates = usual or [name for name in names if name.lower() not in COLOUR_FIELDS]
    if len(candidates) != 1:  # a field without any value is not the one
        candidates = [name for name in candidates if {*fields[name]} - {None}]
    if len(candidates) != 1:
        raise refusal("several", "labels", case="fields", names=names, key=argument)
    return candidates[0]
