"""The table of vector labels: one line for each format."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hytas.data.labels import envi_roi, ogr, points_csv
from hytas.data.labels.options import LabelOptions
from hytas.data.labels.shapes import Shapes
from hytas.data.read.columns import TEXT_SUFFIXES
from hytas.data.record import reading
from hytas.errors import InputError


class VectorFormat(NamedTuple):
    """A format of vector labels.

    Attributes:
        matches: whether a file is of it (first kilobyte, path).
    """

    name: str
    matches: Callable[[bytes, Path], bool]
    read: Callable[[Path, LabelOptions], Shapes]


def _named(*suffixes: str, magic: bytes = b"") -> Callable[[bytes, Path], bool]:
    return lambda head, path: path.name.lower().endswith(suffixes) and head.startswith(magic)


_GEOJSON = partial(ogr.read_ogr_shapes, "GeoJSON", open_options={"DATE_AS_STRING": "YES"})
FORMATS = (
    VectorFormat("ENVI ROI", envi_roi.matches, envi_roi.read),
    VectorFormat("CSV", _named(*TEXT_SUFFIXES), points_csv.read),
    VectorFormat("GeoPackage", _named(".gpkg", magic=b"SQLite format 3\0"), ogr.read_geopackage),
    VectorFormat("Shapefile", _named(".shp", magic=b"\x00\x00\x27\x0a"), ogr.read_shapefile),
    VectorFormat("GeoJSON", _named(".geojson", ".json"), _GEOJSON),
    VectorFormat(
        "FlatGeobuf", _named(".fgb", magic=b"fgb"), partial(ogr.read_ogr_shapes, "FlatGeobuf")
    ),
    VectorFormat("KML", _named(".kml"), partial(ogr.read_ogr_shapes, "KML")),
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


def read_shapes(path: Path, options: LabelOptions) -> Shapes:
    """Read the shapes of a file."""
    entry = format_of(path)
    assert entry is not None  # checked by the caller
    with reading("labels", path, f"{entry.name} file"):
        shapes = entry.read(path, options)
        if not len(shapes.geometries) and options.least_classes:
            raise InputError("labels", rule="holds no shapes")
    return shapes
