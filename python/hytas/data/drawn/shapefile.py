"""ESRI Shapefile, by pyshp (extra `geo`): .shp with its .dbf, and .prj for the coordinates."""

import io
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.drawn.shapes import MOST_FILE, Drawing, Reading, Shape, check_amount, ring
from hytas.errors import InputError

_POLYGONS, _POINTS, _NULL = (5, 15, 25), (1, 8, 11, 18, 21, 28), 0
_MOST_TEXT = 2**16


def matches(head: bytes, path: Path) -> bool:
    """Tell the file code of the main file."""
    return head[:4] == b"\x00\x00\x27\x0a" and path.suffix.lower() == ".shp"


def read(path: Path, reading: Reading) -> Drawing:
    """Read the features of a file and of the table beside it.

    Raises:
        InputError: pyshp or the table is missing, or a geometry is neither polygon nor point.
    """
    try:
        shapefile = import_module("shapefile")
    except ImportError:
        raise InputError(
            f"{path}: a Shapefile needs the package pyshp: pip install 'hytas[geo]'"
        ) from None
    table = _beside(path, ".dbf")
    if table is None:
        raise InputError(f"{path} has no table of classes beside it: looked for {path.stem}.dbf")
    if table.stat().st_size > MOST_FILE:
        raise InputError(f"{table} has more than {MOST_FILE} bytes")
    encoding = (_text(path, ".cpg") or "utf-8").strip()
    # From memory: a length in a damaged file then cannot ask for more than there is.
    main, fields = io.BytesIO(path.read_bytes()), io.BytesIO(table.read_bytes())
    try:
        with shapefile.Reader(
            shp=main, dbf=fields, encoding=encoding, encodingErrors="replace"
        ) as file:
            shapes = tuple(check_amount(_shapes(file)))
    except LookupError:
        raise InputError(f"{path.stem}.cpg: no such encoding: {encoding[:40]!r}") from None
    return Drawing("Shapefile", shapes, _text(path, ".prj"))


def _shapes(file: Any) -> Iterator[Shape]:
    for number, each in enumerate(file.iterShapeRecords(), start=1):
        fields = each.record.as_dict()
        kind, points = int(each.shape.shapeType), each.shape.points
        if kind in _POLYGONS:
            ends = [*each.shape.parts, len(points)]
            rings = [ring(points[a:b], number) for a, b in pairwise(ends)]
            yield Shape(number, fields, (tuple(rings),))
        elif kind in _POINTS:
            yield Shape(number, fields, points=ring(points, number))
        elif kind == _NULL:
            yield Shape(number, fields, points=np.empty((0, 2)))
        else:
            name = str(each.shape.shapeTypeName).lower()
            raise InputError(f"shape {number} is a {name}: polygon or point needed")


def _beside(path: Path, suffix: str) -> Path | None:
    candidates = (path.with_suffix(suffix), path.with_suffix(suffix.upper()))
    return next((file for file in candidates if file.is_file()), None)


def _text(path: Path, suffix: str) -> str | None:
    file = _beside(path, suffix)
    if file is None or file.stat().st_size > _MOST_TEXT:
        return None
    return file.read_text(encoding="utf-8", errors="replace").strip() or None
