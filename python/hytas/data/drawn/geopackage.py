"""GeoPackage (OGC 12-128r18): a SQLite file, read with Python's own library and without GDAL."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from hytas.data.drawn.shapes import MOST_FILE, Drawing, Reading, Shape, check_amount
from hytas.data.drawn.wkb import geometry_of
from hytas.data.limits import listed, shown
from hytas.errors import InputError

MOST_SECONDS = 60.0
_ENVELOPES = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}
_LAYERS = """
    SELECT c.table_name, g.column_name, s.organization, s.organization_coordsys_id, s.definition
    FROM gpkg_contents c JOIN gpkg_geometry_columns g ON g.table_name = c.table_name
    LEFT JOIN gpkg_spatial_ref_sys s ON s.srs_id = g.srs_id
    WHERE c.data_type = 'features' ORDER BY c.table_name LIMIT 1000
"""


def matches(head: bytes, path: Path) -> bool:
    """Tell the magic of SQLite, under the suffix of a GeoPackage."""
    return head.startswith(b"SQLite format 3\0") and path.suffix.lower() == ".gpkg"


def read(path: Path, reading: Reading) -> Drawing:
    """Read the features of a layer.

    Raises:
        InputError: no layer of features, several and none named, or a damaged file.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise InputError(f"{path}: {log.name} holds changes of it: close it in other programs")
    end = time.monotonic() + MOST_SECONDS
    address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as file:
            # A view may compute for ever, and a function in it may do anything.
            file.execute("PRAGMA trusted_schema = OFF")
            file.set_progress_handler(lambda: time.monotonic() > end, 100_000)
            file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_FILE)
            table, column, crs = _layer(file, path, reading.layer)
            shapes = tuple(check_amount(_shapes(file, table, column)))
    except sqlite3.Error as error:
        raise InputError(f"{path} is not a readable GeoPackage ({error})") from None
    return Drawing("GeoPackage", shapes, crs)


def _layer(file: sqlite3.Connection, path: Path, wanted: str | None) -> tuple[str, str, str | None]:
    layers = file.execute(_LAYERS).fetchall()
    names = [str(layer[0]) for layer in layers]
    if wanted is not None:
        layers = [layer for layer in layers if layer[0] == wanted]
    if len(layers) != 1:
        held = listed((shown(name) for name in names), len(names))
        why = "name one with --labels-key" if wanted is None else f"no layer {wanted!r}"
        raise InputError(f"{path} holds the layers {held}: {why}")
    table, column, organization, code, definition = layers[0]
    if str(organization).upper() == "EPSG":
        return str(table), str(column), f"EPSG:{int(code)}"
    known = isinstance(definition, str) and definition.lower() != "undefined"
    return str(table), str(column), definition if known else None


def _shapes(file: sqlite3.Connection, table: str, column: str) -> Iterator[Shape]:
    quoted = '"' + table.replace('"', '""') + '"'
    rows = file.execute(f"SELECT * FROM {quoted}")
    names = [str(described[0]) for described in rows.description]
    keys = {name for _, name, *_, key in file.execute(f"PRAGMA table_info({quoted})") if key}
    if column not in names:
        raise InputError(f"layer {shown(table)} has no column {shown(column)}")
    at = names.index(column)
    for number, row in enumerate(rows, start=1):
        kept = {n: v for n, v in zip(names, row, strict=True) if n != column and n not in keys}
        yield _shape(row[at], number, kept)


def _shape(data: Any, number: int, fields: dict[str, Any]) -> Shape:
    if data is None:
        return Shape(number, fields)
    if not isinstance(data, bytes) or data[:2] != b"GP" or len(data) < 8:
        raise InputError(f"shape {number}: its geometry is none of a GeoPackage")
    envelope = _ENVELOPES.get(data[3] >> 1 & 7)
    if envelope is None:
        raise InputError(f"shape {number}: its geometry is none of a GeoPackage")
    if data[3] >> 4 & 1:  # empty
        return Shape(number, fields)
    polygons, points = geometry_of(data, 8 + envelope, number)
    joined = np.concatenate(points) if points else np.empty((0, 2))
    return Shape(number, fields, tuple(polygons), joined)
