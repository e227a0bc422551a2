"""CSV of points: a header, then a position and a class a line."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.labels.options import LabelOptions
from hytas.data.labels.shapes import Points, Shapes, check_amount
from hytas.data.limits import listed
from hytas.errors import InputError
from hytas.files import read_csv

# The columns of a position: first across, then down; and whether they are pixels.
_PIXELS = (("column", "row"), ("col", "row"), ("sample", "line"))
_DEGREES = (("lon", "lat"), ("longitude", "latitude"))
_MAP = (("x", "y"), ("easting", "northing"))


def read(path: Path, options: LabelOptions) -> Shapes:
    """Read the points of a file.

    Columns `row` and `column` count pixels from 0. `lon` and `lat` are degrees on WGS 84. `x` and
    `y` are coordinates of the scene, or of the system that the user names.
    """
    import shapely

    text = path.read_text(encoding="utf-8-sig", errors="replace")
    first = text.lstrip().partition("\n")[0]
    delimiter = max("\t;,", key=first.count)
    columns, rows = read_csv(path, text, delimiter=delimiter)
    check_amount(len(rows))
    lower = {name.lower(): name for name in columns}
    for pairs, crs in ((_PIXELS, None), (_DEGREES, "EPSG:4326"), (_MAP, "")):
        for pair in pairs:
            if set(pair) <= set(lower):
                names = lower[pair[0]], lower[pair[1]]
                pixels = pairs is _PIXELS
                places = _places(rows, names) + (0.5 if pixels else 0.0)
                others = [name for name in columns if name not in names]
                fields = {name: [_value(row.get(name)) for _, row in rows] for name in others}
                return Shapes("CSV", shapely.points(places), fields, crs, pixels)
    column_names = listed(columns)
    rule = "has no positions: columns x and y, lon and lat, or row and column needed"
    raise InputError("labels", str(path), rule, f"it has {column_names}")


def _places(rows: Sequence[tuple[int, dict[Any, Any]]], names: tuple[str, str]) -> Points:
    places = np.full((len(rows), 2), np.nan)
    for place, (line, row) in zip(places, rows, strict=True):
        with suppress(TypeError, ValueError):  # the place is then not finite
            place[:] = [float(row[name]) for name in names]
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
