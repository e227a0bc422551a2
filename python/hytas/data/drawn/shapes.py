"""Polygons and points of a file, as the file has them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.limits import listed, shown
from hytas.errors import InputError

Points = npt.NDArray[np.float64]
Colour = tuple[int, int, int]

MOST_TEXT = 2**26
"""Bytes of a file of shapes that is text; a polygon of a field takes kilobytes."""
MOST_FILE = 2**28
"""Bytes of one that is read as a whole, though it is no text."""
MOST_SHAPES = 1_000_000
MOST_VERTICES = 5_000_000
CLASS_FIELDS = ("class", "label", "class_name", "classname", "class_id")
"""Names of the field of classes that need no --class-field, in lower case."""
COLOUR_FIELDS = ("color", "colour", "fill")


@dataclass(frozen=True)
class Shape:
    """One feature of a file.

    Attributes:
        number: of the feature in its file, from 1.
        fields: what the file says of it.
        polygons: each of rings (n, 2); a point is inside if it is inside an odd number of rings.
        points: (n, 2).
    """

    number: int
    fields: Mapping[str, Any]
    polygons: tuple[tuple[Points, ...], ...] = ()
    points: Points = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True)
class Drawing:
    """The shapes of a file.

    Attributes:
        format: the file's, for people to read.
        shapes: in the file's order.
        crs: the coordinate system of (x, y): "EPSG:4326" or well-known text; None if unknown.
        in_pixels: whether coordinates are (column, row) of the scene, pixel centres at .5.
        size: height and width of the scene that the file was drawn for, or None.
    """

    format: str
    shapes: tuple[Shape, ...]
    crs: str | None = None
    in_pixels: bool = False
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class Reading:
    """How the user wants a drawing read.

    Attributes:
        class_field: the field with the class of each shape; None finds it.
        crs: the coordinate system of the shapes, where the file does not say it.
        layer: of a file of several.
    """

    class_field: str | None = None
    crs: str | None = None
    layer: str | None = None


def ring(coordinates: Any, number: int) -> Points:
    """Return a list of positions as (n, 2); further coordinates, such as heights, are left out.

    Raises:
        InputError: positions that are no finite numbers.
    """
    try:
        points = np.array([position[:2] for position in coordinates], np.float64).reshape(-1, 2)
    except (TypeError, ValueError, IndexError, KeyError):
        points = np.full((1, 2), np.nan)
    if not np.isfinite(points).all():
        raise InputError(f"shape {number}: its coordinates must be finite numbers")
    return points


def check_amount(shapes: Iterable[Shape]) -> Iterator[Shape]:
    """Yield the shapes, as far as they are not too many.

    Raises:
        InputError: they are.
    """
    vertices = 0
    for count, shape in enumerate(shapes, start=1):
        vertices += len(shape.points) + sum(len(r) for rings in shape.polygons for r in rings)
        if count > MOST_SHAPES or vertices > MOST_VERTICES:
            raise InputError(
                f"more than {MOST_SHAPES} shapes or {MOST_VERTICES} vertices: take those of the "
                "scene alone"
            )
        yield shape


def find_field(shapes: Sequence[Shape], wanted: str | None) -> str:
    """Return the name of the field that holds the classes.

    Raises:
        InputError: there is no such field, or several may be it.
    """
    names = list(dict.fromkeys(name for shape in shapes for name in shape.fields))
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"class field: no field {wanted!r}; {_holds(names)}")
        return wanted
    usual = [name for name in names if name.lower() in CLASS_FIELDS]
    found = usual or [name for name in names if name.lower() not in COLOUR_FIELDS]
    if len(found) != 1:
        raise InputError(f"{_holds(names)}: name the one of classes with --class-field")
    return found[0]


def _holds(names: Sequence[str]) -> str:
    if not names:
        return "there is no field beside the places"
    return f"the fields are {listed((shown(name) for name in names), len(names))}"


def colour_of(value: Any) -> Colour | None:
    """Return red, green and blue of a text such as "#1f77b4", or of three numbers, or None."""
    if isinstance(value, str):
        text = value.strip().removeprefix("#")
        if len(text) in (6, 8) and all(sign in "0123456789abcdefABCDEF" for sign in text):
            number = int(text[:6], 16)
            return number >> 16, number >> 8 & 255, number & 255
    if isinstance(value, tuple) and len(value) == 3:
        return value
    return None
