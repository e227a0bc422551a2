"""CSV of points: a header, then a position and a class a line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.drawn.shapes import Drawing, Reading, Shape, check_amount
from hytas.data.limits import listed, shown
from hytas.errors import InputError
from hytas.files import read_csv

# The columns of a position: first across, then down; and whether they are pixels.
_PIXELS = (("column", "row"), ("col", "row"), ("sample", "line"))
_DEGREES = (("lon", "lat"), ("longitude", "latitude"))
_MAP = (("x", "y"), ("easting", "northing"))


def matches(head: bytes, path: Path) -> bool:
    """Tell a file by its name."""
    return path.suffix.lower() in (".csv", ".tsv")


def read(path: Path, reading: Reading) -> Drawing:
    """Read the points of a file.

    Columns `row` and `column` count pixels from 0. `lon` and `lat` are degrees on WGS 84. `x` and
    `y` are coordinates of the scene, or of the system that the user names.

    Raises:
        InputError: no position in the header, or one that is no number.
    """
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    first = text.lstrip().partition("\n")[0]
    delimiter = max("\t;,", key=first.count)
    columns, rows = read_csv(path, text, delimiter=delimiter)
    lower = {name.lower(): name for name in columns}
    for pairs, crs in ((_PIXELS, None), (_DEGREES, "EPSG:4326"), (_MAP, "")):
        for pair in pairs:
            if set(pair) <= set(lower):
                names = lower[pair[0]], lower[pair[1]]
                pixels = pairs is _PIXELS
                shapes = tuple(check_amount(_shapes(rows, names, 0.5 if pixels else 0.0)))
                return Drawing("CSV", shapes, crs, pixels)
    held = listed((shown(name) for name in columns), len(columns))
    raise InputError(
        f"{path} has no positions: columns x and y, lon and lat, or row and column needed; it has "
        f"{held}"
    )


def _shapes(
    rows: Sequence[tuple[int, dict[Any, Any]]], names: tuple[str, str], shift: float
) -> Iterator[Shape]:
    for number, (line, row) in enumerate(rows, start=1):
        try:
            place = [float(row[name]) + shift for name in names]
        except (TypeError, ValueError):
            place = [float("nan")]
        if not np.isfinite(place).all():
            raise InputError(
                f"line {line}: {names[0]} {row[names[0]]!r}, {names[1]} {row[names[1]]!r} must be "
                "finite numbers"
            )
        fields = {n: _value(v) for n, v in row.items() if n is not None and n not in names}
        yield Shape(number, fields, points=np.array([place]))


def _value(text: Any) -> Any:
    """A class as a whole number, if it is one."""
    stripped = text.strip() if isinstance(text, str) else None
    digits = stripped and stripped.removeprefix("-")
    if digits and digits.isascii() and digits.isdigit() and len(digits) < 16:
        return int(stripped or "")
    return stripped
