"""A small scene with a place on the earth, and files of shapes upon it."""

import json
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

LEFT, TOP, SIDE = 600000.0, 5400000.0, 10.0
"""Upper left corner of the scene in UTM zone 32 north, and the side of a pixel, metres."""
HEIGHT, WIDTH = 30, 40


def scene(folder: Path, name: str = "scene") -> Path:
    """An ENVI scene of 5 bands; returns its header."""
    cube = np.random.default_rng(5).integers(10, 900, (HEIGHT, WIDTH, 5)).astype("<i2")
    cube.tofile(folder / f"{name}.img")
    (folder / f"{name}.hdr").write_text(
        f"ENVI\nsamples = {WIDTH}\nlines = {HEIGHT}\nbands = 5\ndata type = 2\ninterleave = bip\n"
        f"map info = {{UTM, 1, 1, {LEFT}, {TOP}, {SIDE}, {SIDE}, 32, North, WGS-84}}\n"
    )
    return folder / f"{name}.hdr"


def utm(corners: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Coordinates of corners (column, row), as a closed ring."""
    ring = [[LEFT + SIDE * column, TOP - SIDE * row] for column, row in corners]
    return [*ring, ring[0]]


def box(left: float, top: float, right: float, bottom: float) -> list[list[float]]:
    """The ring of a rectangle of columns and rows."""
    return utm([(left, top), (right, top), (right, bottom), (left, bottom)])


def geojson(
    path: Path, features: Sequence[tuple[dict[str, Any], dict[str, Any]]], epsg: int | None = 32632
) -> Path:
    """A file of (geometry, properties); its coordinates are degrees where `epsg` is None."""
    values: dict[str, Any] = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "geometry": geometry, "properties": properties}
            for geometry, properties in features
        ],
    }
    if epsg is not None:
        name = f"urn:ogc:def:crs:EPSG::{epsg}"
        values["crs"] = {"type": "name", "properties": {"name": name}}
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


def polygon(*rings: list[list[float]]) -> dict[str, Any]:
    """A geometry of GeoJSON."""
    return {"type": "Polygon", "coordinates": list(rings)}


FIELDS = (
    (polygon(box(2, 3, 12, 9), box(5, 5, 7, 7)), {"crop": "wheat", "color": "#ffcc00"}),
    (polygon(box(20, 3, 30, 9)), {"crop": "maize", "color": "#00aa00"}),
    (polygon(box(2, 15, 12, 21)), {"crop": "maize", "color": "#00aa00"}),
    (polygon(box(20, 15, 30, 21)), {"crop": "wheat", "color": "#ffcc00"}),
)


def fields_map() -> np.ndarray:
    """What FIELDS label: 1 maize, 2 wheat, (H, W)."""
    labels = np.zeros((HEIGHT, WIDTH), np.int32)
    labels[3:9, 2:12], labels[5:7, 5:7], labels[3:9, 20:30] = 2, 0, 1
    labels[15:21, 2:12], labels[15:21, 20:30] = 1, 2
    return labels


def wkb(geometry: dict[str, Any], order: str = "<", z: bool = False) -> bytes:
    """The well-known binary of a geometry of GeoJSON."""
    kinds = {"Point": 1, "Polygon": 3, "MultiPoint": 4, "MultiPolygon": 6}
    kind = kinds[geometry["type"]]
    head = (b"\x01" if order == "<" else b"\0") + struct.pack(order + "I", kind + 1000 * z)

    def positions(points: Sequence[Sequence[float]]) -> bytes:
        return b"".join(struct.pack(f"{order}{2 + z}d", *p, *((7.0,) * z)) for p in points)

    inside = geometry["coordinates"]
    if kind == 1:
        return head + positions([inside])
    if kind == 3:
        rings = [struct.pack(order + "I", len(ring)) + positions(ring) for ring in inside]
        return head + struct.pack(order + "I", len(rings)) + b"".join(rings)
    single = geometry["type"].removeprefix("Multi")
    parts = [wkb({"type": single, "coordinates": part}, order, z) for part in inside]
    return head + struct.pack(order + "I", len(parts)) + b"".join(parts)


def geopackage(
    path: Path,
    features: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    layers: Sequence[str] = ("fields",),
    envelope: bool = True,
    **form: Any,
) -> Path:
    """A GeoPackage of layers that all hold the features, in UTM zone 32 north."""
    names = list(features[0][1])
    file = sqlite3.connect(path)
    file.execute("PRAGMA application_id = 1196444487")
    file.executescript(
        "CREATE TABLE gpkg_spatial_ref_sys (srs_name, srs_id INTEGER PRIMARY KEY, organization,"
        " organization_coordsys_id INTEGER, definition, description);"
        "CREATE TABLE gpkg_contents (table_name PRIMARY KEY, data_type, identifier, srs_id);"
        "CREATE TABLE gpkg_geometry_columns (table_name, column_name, geometry_type_name,"
        " srs_id, z, m);"
        "INSERT INTO gpkg_spatial_ref_sys VALUES ('UTM', 32632, 'EPSG', 32632, 'PROJCS', '');"
    )
    for layer in layers:
        columns = ", ".join(f'"{name}"' for name in names)
        table = '"' + layer.replace('"', '""') + '"'
        file.execute(f"CREATE TABLE {table} (fid INTEGER PRIMARY KEY, geom BLOB, {columns})")
        file.execute("INSERT INTO gpkg_contents VALUES (?, 'features', ?, 32632)", (layer, layer))
        file.execute(
            "INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', 'GEOMETRY', 32632, 0, 0)",
            (layer,),
        )
        for geometry, properties in features:
            head = b"GP\0" + bytes([1 | (2 if envelope else 0)]) + struct.pack("<i", 32632)
            head += struct.pack("<4d", 0, 1, 0, 1) if envelope else b""
            marks = ", ".join("?" * (len(names) + 1))
            file.execute(
                f"INSERT INTO {table} (geom, {columns}) VALUES ({marks})",
                (head + wkb(geometry, **form), *properties.values()),
            )
    file.commit()
    file.close()
    return path


def roi(path: Path, regions: Sequence[tuple[str, str, Sequence[tuple[int, int]]]]) -> Path:
    """ENVI regions of interest: name, colour and pixels (column, row), from 0 here."""
    lines = ["; ENVI Output of ROIs (4.7) [Tue Jun 03 10:11:12 2014]"]
    lines += [f"; Number of ROIs: {len(regions)}", f"; File Dimension: {WIDTH} x {HEIGHT}", ";"]
    for name, colour, pixels in regions:
        lines += [f"; ROI name: {name}", f"; ROI rgb value: {{{colour}}}"]
        lines += [f"; ROI npts: {len(pixels)}", ";"]
    lines.append(";    ID     X     Y     B1")
    for _, _, pixels in regions:
        for number, (column, row) in enumerate(pixels, start=1):
            lines.append(f"{number:6} {column + 1:5} {row + 1:5}   123")
        lines.append("")
    path.write_text("\n".join(lines))
    return path
