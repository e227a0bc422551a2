"""GeoJSON (RFC 7946): longitudes and latitudes, unless the older member `crs` says otherwise."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.drawn.shapes import Drawing, Points, Reading, Shape, check_amount, ring
from hytas.data.limits import shown
from hytas.errors import InputError
from hytas.files import parse_json

SUFFIXES = (".geojson", ".json")


def matches(head: bytes, path: Path) -> bool:
    """Tell a file by its name."""
    return path.suffix.lower() in SUFFIXES


def read(path: Path, reading: Reading) -> Drawing:
    """Read the features of a file.

    Raises:
        InputError: not GeoJSON, or a geometry that is neither polygon nor point.
    """
    values = parse_json(path.read_bytes(), path)
    if not isinstance(values, dict) or values.get("type") not in ("FeatureCollection", "Feature"):
        raise InputError(f"{path} is not GeoJSON: a FeatureCollection needed")
    features = values.get("features") if values["type"] == "FeatureCollection" else [values]
    if not isinstance(features, list):
        raise InputError(f"{path}: its features must be a list")
    return Drawing("GeoJSON", tuple(check_amount(_shapes(features))), _crs(values))


def _shapes(features: list[Any]) -> Iterator[Shape]:
    for number, feature in enumerate(features, start=1):
        if not isinstance(feature, dict):
            raise InputError(f"shape {number}: a Feature needed")
        fields = feature.get("properties")
        polygons: list[tuple[Points, ...]] = []
        points: list[Points] = []
        _add(feature.get("geometry"), number, polygons, points)
        yield Shape(
            number,
            fields if isinstance(fields, dict) else {},
            tuple(polygons),
            np.concatenate(points) if points else np.empty((0, 2)),
        )


def _add(
    geometry: Any, number: int, polygons: list[tuple[Points, ...]], points: list[Points]
) -> None:
    if geometry is None:  # a feature without a place is allowed
        return
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    coordinates = geometry.get("coordinates", []) if isinstance(geometry, dict) else []
    try:
        if kind == "Polygon":
            polygons.append(tuple(ring(each, number) for each in coordinates))
        elif kind == "MultiPolygon":
            polygons += [tuple(ring(each, number) for each in rings) for rings in coordinates]
        elif kind == "Point":
            points.append(ring([coordinates], number))
        elif kind == "MultiPoint":
            points.append(ring(coordinates, number))
        elif kind == "GeometryCollection":
            for each in geometry.get("geometries", []):
                _add(each, number, polygons, points)
        else:
            raise InputError(f"shape {number} is a {shown(str(kind))}: polygon or point needed")
    except TypeError:
        raise InputError(f"shape {number}: its coordinates must be lists of numbers") from None


def _crs(values: dict[str, Any]) -> str:
    crs = values.get("crs")
    properties = crs.get("properties") if isinstance(crs, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if name is None:
        return "EPSG:4326"
    code = re.search(r"EPSG:+(?:[\d.]*:)?(\d{1,9})$", str(name))
    if code:
        return f"EPSG:{code[1]}"
    if "CRS84" in str(name):
        return "EPSG:4326"
    raise InputError(f"crs {shown(str(name))}: an EPSG code needed, or CRS84")
