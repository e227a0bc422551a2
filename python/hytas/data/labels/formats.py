"""Vector labels: a line for each format, and the readers of texts."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas.data.findings import refusal
from hytas.data.labels import ogr
from hytas.data.labels.shapes import Shapes, plain_value
from hytas.data.options import SceneOptions
from hytas.data.palette import Colour
from hytas.data.read.columns import TEXT_SUFFIXES, read_frame
from hytas.data.record import reading

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


class VectorFormat(NamedTuple):
    """A format of vector labels.

    Attributes:
        matches: whether a file is of it (first kilobyte, path).
    """

    name: str
    matches: Callable[[bytes, Path], bool]
    read: Callable[[Path, SceneOptions], Shapes]


def read_points(path: Path, options: SceneOptions) -> Shapes:
    """Read a CSV file: in each line a position, or a shape as well-known text, and a class.

    Columns `row` and `column` count pixels from 0. `lon` and `lat` are degrees on WGS 84. `x` and
    `y`, and well-known text, are coordinates of the scene, or of the system that the user names.
    """
    import pandas
    import shapely

    frame = read_frame(path, "labels")
    if (position := _position(frame.columns)) is None:
        raise refusal("missing", "labels", str(path), "position", names=list(frame.columns))
    names, crs = position
    of_shapes = {name for (name, *more), _ in _POSITIONS if not more}
    fields = {
        name: [plain_value(one) for one in frame[name].tolist()]
        for name in frame.columns
        if name not in names and (name.lower() not in of_shapes or name == options.class_field)
    }
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
        facts = {"row": row + 1, "text": ", ".join(values)}
        raise refusal("value-wrong", "labels", str(path), "position", **facts)
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


def read_regions(path: Path, options: SceneOptions) -> Shapes:
    """Read regions of interest that ENVI wrote as text: their pixels, which it counts from 1."""
    import shapely

    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    notes = [line[1:].strip() for line in lines if line.startswith(";")]
    heads = [line.split() for line in notes if ":" not in line]
    columns = next((head for head in reversed(heads) if {"X", "Y"} <= {*head}), None)
    if columns is None:
        raise refusal("missing", "labels", str(path), "columns-of-region", names=heads[-1:])
    regions: list[dict[str, str]] = []
    size = None
    for name, _, value in (line.partition(":") for line in notes):
        if name.strip().lower() == "roi name":
            regions.append({})
        if regions:
            regions[-1][name.strip().lower()] = value.strip()
        elif match := re.fullmatch(r"File Dimension: *(\d{1,9}) x (\d{1,9})", f"{name}:{value}"):
            size = int(match[2]), int(match[1])
    rows = [line.split() for line in lines if line.strip() and not line.startswith(";")]
    at, start, places = (columns.index("X"), columns.index("Y")), 0, []
    for region in regions:
        count = int(region.get("roi npts", "0"))
        own = [[float(row[i]) - 0.5 for i in at] for row in rows[start : start + count]]
        if len(own) < count:
            raise refusal("empty", "", case="region", count=count, name=region["roi name"])
        places.append(shapely.multipoints(np.reshape(own, (-1, 2))))
        start += count
    names: list[Any] = [region["roi name"] for region in regions]
    fields = {"ROI name": names, "color": [_levels(one.get("roi rgb value")) for one in regions]}
    return Shapes("ENVI ROI", np.array(places, object), fields, None, True, size)


def _levels(text: str | None) -> Colour | None:
    match = re.fullmatch(r"\{\s*(\d{1,3}),\s*(\d{1,3}),\s*(\d{1,3})\s*\}", text or "")
    if match is None or max(map(int, match.groups())) > 255:
        return None
    return int(match[1]), int(match[2]), int(match[3])


def _named(*suffixes: str, magic: bytes = b"") -> Callable[[bytes, Path], bool]:
    return lambda head, path: path.name.lower().endswith(suffixes) and head.startswith(magic)


_GEOJSON = partial(ogr.read_ogr_shapes, "GeoJSON", open_options={"DATE_AS_STRING": "YES"})
_GEOPACKAGE, _FLATGEOBUF, _KML = (
    partial(ogr.read_ogr_shapes, name) for name in ("GeoPackage", "FlatGeobuf", "KML")
)
FORMATS = (
    VectorFormat("ENVI ROI", _named("", magic=b"; ENVI Output of ROIs"), read_regions),
    VectorFormat("CSV", _named(*TEXT_SUFFIXES), read_points),
    VectorFormat("GeoPackage", _named(".gpkg", magic=b"SQLite format 3\0"), _GEOPACKAGE),
    VectorFormat("Shapefile", _named(".shp", magic=b"\x00\x00\x27\x0a"), ogr.read_shapefile),
    VectorFormat("GeoJSON", _named(".geojson", ".json"), _GEOJSON),
    VectorFormat("FlatGeobuf", _named(".fgb", magic=b"fgb"), _FLATGEOBUF),
    VectorFormat("KML", _named(".kml"), _KML),
)
NAMES = ", ".join(entry.name for entry in FORMATS)


def format_of(path: Path) -> VectorFormat | None:
    """Return the format of a file of polygons or points; None for any other file, or none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(1024)
    return next((entry for entry in FORMATS if entry.matches(head, path)), None)


def are_shapes(labels: Any) -> bool:
    """Return whether labels are a file of polygons or points."""
    return isinstance(labels, str | Path) and format_of(Path(labels)) is not None


def files_of(path: Path) -> tuple[Path, ...]:
    """Return a file of shapes, and its sidecar files."""
    is_shapefile = path.suffix.lower() == ".shp"
    return path, *(ogr.parts_of_shapefile(path).values() if is_shapefile else ())


def read_shapes(path: Path, options: SceneOptions) -> Shapes:
    """Read the shapes of a file."""
    entry = format_of(path)
    assert entry is not None  # checked by the caller
    with reading("labels", path, f"{entry.name} file"):
        shapes = entry.read(path, options)
        if not len(shapes.geometries) and options.least_classes:
            raise refusal("empty", "labels", case="shapes")
    return shapes
