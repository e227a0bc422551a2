"""The table of drawings: one file a format, one line of registration here."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hytas.data.contents import reading as guarded
from hytas.data.drawn import envi_roi, geojson, geopackage, points_csv, shapefile
from hytas.data.drawn.shapes import MOST_FILE, MOST_TEXT, Drawing, Reading
from hytas.errors import InputError


class DrawnFormat(NamedTuple):
    """A format: its name, whether a file is of it (first kilobyte, path), its reader, and how many
    bytes this reads at most."""

    name: str
    matches: Callable[[bytes, Path], bool]
    read: Callable[[Path, Reading], Drawing]
    most: int | None = MOST_TEXT


DRAWN_FORMATS = (
    DrawnFormat("ENVI ROI", envi_roi.matches, envi_roi.read),
    DrawnFormat("GeoPackage", geopackage.matches, geopackage.read, None),
    DrawnFormat("Shapefile", shapefile.matches, shapefile.read, MOST_FILE),
    DrawnFormat("GeoJSON", geojson.matches, geojson.read),
    DrawnFormat("CSV", points_csv.matches, points_csv.read),
)


def format_of(path: Path) -> DrawnFormat | None:
    """Return the format of a file of shapes; None of any other file, or of none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(1024)
    return next((each for each in DRAWN_FORMATS if each.matches(head, path)), None)


def read_drawing(path: Path, reading: Reading, argument: str) -> Drawing:
    """Read the shapes of a file.

    Raises:
        InputError: the file is too large, broken, or holds no shapes.
    """
    entry = format_of(path)
    assert entry is not None  # who asks has looked
    if entry.most is not None and path.stat().st_size > entry.most:
        raise InputError(
            f"{argument}: {path} has more than {entry.most} bytes: take the shapes of the scene "
            "alone, or a GeoPackage"
        )
    with guarded(argument, path, f"{entry.name} file"):
        drawing = entry.read(path, reading)
        if not drawing.shapes:
            raise InputError(f"{path} holds no shapes")
    return drawing
