"""CSV of points or polygons: a header, then a position, or a shape as WKT, and a class a line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import refusal
from hytas.data.labels.options import LabelOptions
from hytas.data.labels.shapes import Shapes, plain_value
from hytas.data.read.columns import read_frame

# The columns of a position: first across, then down; and their system, which is None for pixels.
_POSITIONS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("column", "row"), None),
    (("col", "row"), None),
    (("sample", "line"), None),
    *(((x, y), "EPSG:4326") for x, y in (("lon", "lat"), ("longitude", "latitude"))),
    *(((x, y), "EPSG:4326") for x, y in (("long", "lat"), ("lng", "lat"))),
    (("x", "y"), ""),
    (("easting", "northing"), ""),
    *(((name,), "") for name in ("wkt", "wkt_geom", "geometry", "geom", "the_geom")),
)


def read(path: Path, options: LabelOptions) -> Shapes:
    """Read the points or polygons of a file.

    Columns `row` and `column` count pixels from 0. `lon` and `lat` are degrees on WGS 84. `x` and
    `y`, and well-known text, are coordinates of the scene, or of the system that the user names.
    """
    import pandas
    import shapely

    frame = read_frame(path, "labels")
    if (position := _position(frame.columns)) is None:
        raise refusal("points-without-positions", "labels", str(path), columns=list(frame.columns))
    names, crs = position
    shape_columns = [name for (name, *more), _ in _POSITIONS if not more]
    unused = {name for name in frame.columns if name.lower() in shape_columns} - {
        options.class_field
    }
    others = [name for name in frame.columns if name not in (*names, *unused)]
    fields = {name: [plain_value(one) for one in frame[name].tolist()] for name in others}
    if len(names) == 1:
        texts = [one if isinstance(one, str) else "" for one in frame[names[0]]]
        geometries = shapely.from_wkt(texts, on_invalid="ignore")
        wrong = np.array([one is None for one in geometries])
    else:
        numbers = [pandas.to_numeric(frame[name], errors="coerce") for name in names]
        places = np.stack([one.to_numpy(np.float64) for one in numbers], axis=1)
        wrong = ~np.isfinite(places).all(axis=1)
        geometries = shapely.points(places + (0.5 if crs is None else 0.0))
    if wrong.any():
        row = int(wrong.argmax())
        values = [str(frame[name].iloc[row]) for name in names]
        raise refusal("position-wrong", "labels", str(path), row=row + 1, values=values)
    return Shapes("CSV", geometries, fields, crs, crs is None)


def position_columns(columns: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns of a position: across and down, or WKT; None without."""
    position = _position(columns)
    return None if position is None else position[0]


def _position(columns: Sequence[Any]) -> tuple[tuple[str, ...], str | None] | None:
    lower = {str(name).lower(): str(name) for name in columns}
    for names, crs in _POSITIONS:
        if all(name in lower for name in names):
            return tuple(lower[name] for name in names), crs
    return None
