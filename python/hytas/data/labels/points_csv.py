"""CSV of points or polygons: a header, then a position, or a shape as WKT, and a class a line."""

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import note, warning
from hytas.data.labels.options import LabelOptions
from hytas.data.labels.shapes import Geometries, Points, Shapes, check_amount
from hytas.data.limits import listed, printable
from hytas.errors import InputError
from hytas.files import PACKED, open_text, read_csv, read_utf8

TEXT_SUFFIXES = tuple(kind + packed for packed in ("", *PACKED) for kind in (".csv", ".tsv"))
MOST_HEADER = 2**16
"""Characters of a header that are read."""

_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+")

# The columns of a position: first across, then down; and whether they are pixels.
_PIXELS = (("column", "row"), ("col", "row"), ("sample", "line"))
_DEGREES = (("lon", "lat"), ("longitude", "latitude"), ("long", "lat"), ("lng", "lat"))
_MAP = (("x", "y"), ("easting", "northing"))
_SHAPES = ("wkt", "wkt_geom", "geometry", "geom", "the_geom")
"""Names of a column of well-known text, as GDAL, QGIS, GeoPandas and PostGIS give them."""


def read(path: Path, options: LabelOptions) -> Shapes:
    """Read the points or polygons of a file.

    Columns `row` and `column` count pixels from 0. `lon` and `lat` are degrees on WGS 84. `x` and
    `y`, and well-known text, are coordinates of the scene, or of the system that the user names.
    """
    import shapely

    text = read_utf8(path, "labels")
    delimiter = _delimiter(_first_line(text))
    columns, rows = read_csv(path, text, len(text), delimiter=delimiter)  # polygons may be long
    check_amount(len(rows))
    if (position := _position(columns)) is None:
        rule = "has no positions: columns x and y, lon and lat, row and column, or WKT needed"
        is_matrix = all(name.replace(".", "", 1).isdecimal() for name in columns)
        hint = f"it has {listed(columns)}"
        if columns and is_matrix:
            hint = "if it is a map, a number for each pixel, save it with numpy.save"
        raise InputError("labels", str(path), rule, hint)
    names, crs = position
    unused = [name for name in columns if name.lower() in _SHAPES and name != options.class_field]
    others = [name for name in columns if name not in (*names, *unused)]
    fields = {name: [_value(row.get(name)) for _, row in rows] for name in others}
    if len(names) == 1:
        return Shapes("CSV", _shapes(rows, names[0]), fields, crs)
    pixels = crs is None
    places = _places(rows, names) + (0.5 if pixels else 0.0)
    has_commas = any("," in row[name] for _, row in rows for name in names)
    findings = [warning("positions-with-commas")] if has_commas else []
    findings += [note("positions-not-used", name=name, used=list(names)) for name in unused]
    return Shapes("CSV", shapely.points(places), fields, crs, pixels, findings=tuple(findings))


def position_columns(path: Path) -> tuple[str, ...] | None:
    """Return the columns of a position in a CSV file: across and down, or WKT; None without."""
    with open_text(path, "replace") as file:
        first = _first_line(file.read(MOST_HEADER))
    columns = [name.strip() for name in next(csv.reader([first], delimiter=_delimiter(first)), ())]
    position = _position(columns)
    return None if position is None else position[0]


def _first_line(text: str) -> str:
    return text.lstrip().partition("\n")[0].rstrip("\r")


def _delimiter(first: str) -> str:
    return max("\t;,", key=first.count)


def _position(columns: Sequence[str]) -> tuple[tuple[str, ...], str | None] | None:
    """Return the columns of a position, and its coordinate system, which is None for pixels."""
    lower = {name.lower(): name for name in columns}
    of_shapes = [(name,) for name in _SHAPES]
    kinds = ((_PIXELS, None), (_DEGREES, "EPSG:4326"), (_MAP, ""), (of_shapes, ""))
    for positions, crs in kinds:
        for names in positions:
            if all(name in lower for name in names):
                return tuple(lower[name] for name in names), crs
    return None


def _shapes(rows: Sequence[tuple[int, dict[Any, Any]]], name: str) -> Geometries:
    """Return the shapes of a column of well-known text."""
    import shapely

    shapes: Geometries = shapely.from_wkt([row[name] for _, row in rows], on_invalid="ignore")
    for (line, row), shape in zip(rows, shapes, strict=True):
        if shape is None:
            rule = f"line {line}: {name} {printable(row[name] or '')!r} must be well-known text"
            raise InputError(rule=rule, hint="such as POINT (3 5) or POLYGON ((...))")
    return shapes


def _places(rows: Sequence[tuple[int, dict[Any, Any]]], names: Sequence[str]) -> Points:
    """Return positions (n, 2); a comma may stand for the decimal point, as in spreadsheets."""
    texts = [str(row[name]).strip() for _, row in rows for name in names]
    with_comma = [text for text in texts if "," in text]
    if with_comma and all(_THOUSANDS.fullmatch(text) for text in with_comma):
        rule = f"has the position {with_comma[0]!r}, which is a decimal or a thousand"
        raise InputError(rule=rule, hint="write it with a decimal point, or without the comma")
    decimal = "." if any("." in text for text in texts) else ","
    places = np.full((len(rows), 2), np.nan)
    for place, (line, row) in zip(places, rows, strict=True):
        with suppress(AttributeError, ValueError):  # the place is then not finite
            place[:] = [float(row[name].replace(decimal, ".")) for name in names]
        if not np.isfinite(place).all():
            raise InputError(
                rule=f"line {line}: {names[0]} {row[names[0]]!r}, {names[1]} {row[names[1]]!r} "
                "must be finite numbers"
            )
    return places


def _value(text: Any) -> Any:
    stripped = text.strip() if isinstance(text, str) else None
    digits = stripped and stripped.removeprefix("-")
    if digits and digits.isascii() and digits.isdigit() and len(digits) < 16:
        return int(stripped or "")
    return stripped
