"""A small scene with a place on the earth, and files of shapes upon it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import pyogrio.raw
import shapely
from shapely.geometry import shape

# The time of day in a GeoPackage: two that are written alike are then the same.
pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": "2026-01-01T00:00:00.000Z"})

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


Features = Sequence[tuple[dict[str, Any] | None, dict[str, Any]]]


def vector_file(
    path: Path,
    features: Features,
    layers: Sequence[str] = ("fields",),
    *,
    epsg: int | None = 32632,
    z: bool = False,
) -> Path:
    """A file of any format of OGR, by its suffix; each layer holds the features."""
    geometries = [None if geometry is None else shape(geometry) for geometry, _ in features]
    if z:
        geometries = [shapely.force_3d(geometry, 7.0) for geometry in geometries]
    names = list(features[0][1])
    for number, layer in enumerate(layers):
        pyogrio.raw.write(
            path,
            np.array([None if each is None else each.wkb for each in geometries], object),
            [_column([properties[name] for _, properties in features]) for name in names],
            names,
            driver="LIBKML" if path.suffix == ".kml" else None,
            layer=layer if path.suffix == ".gpkg" else None,
            geometry_type=geometries[0].geom_type + " Z" * z,
            crs=None if epsg is None else f"EPSG:{epsg}",
            append=number > 0,
            **({} if path.suffix in (".shp", ".kml") else {"SPATIAL_INDEX": "NO"}),
        )
    return path


def _column(values: list[Any]) -> np.ndarray:
    return np.array(values, np.int64 if isinstance(values[0], int) else object)


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
