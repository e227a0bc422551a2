"""Where the pixels of a cube lie, if its array does not say it."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hytas.data.findings import Finding, note
from hytas.data.grid import Grid, Transform, crs_of
from hytas.data.interpret.axes import COLUMN, ROW, role_of
from hytas.data.location import Location
from hytas.data.record import Contents, Variable, numbers_of, text_of, turned

_CODES = ("proj:code", "proj:epsg", "proj:wkt2", "proj:projjson", "epsg", "crs")
"""Attributes of STAC, EOPF, GeoZarr, stackstac and xarray that name a coordinate system."""
_STAC_ITEM = "stac_discovery"
"""Attribute of EOPF products, a STAC item, whose properties are attributes of the product."""
_TRANSFORMS = ("proj:transform", "spatial:transform")
_LATITUDE = re.compile(r"(lat|lats|latitude|latitudes)$", re.IGNORECASE)
_LONGITUDE = re.compile(r"(lon|lons|long|longitude|longitudes)$", re.IGNORECASE)


class PlacedCube(NamedTuple):
    """A cube of a file.

    Attributes:
        order: its axes of height, width and bands.
    """

    contents: Contents
    variable: Variable
    order: tuple[int, int, int]

    @property
    def size(self) -> tuple[int, int]:
        return self.variable.shape[self.order[0]], self.variable.shape[self.order[1]]

    def attribute(self, *names: str) -> tuple[str, Any] | None:
        """Return an attribute of the array, of its group or of the file, or a single value."""
        group = self.variable.name.rpartition("/")[0]
        for name in names:
            for where, key in (
                (self.variable.attributes, name),
                (self.contents.attributes, f"{group}/{name}"),
                (self.contents.attributes, name),
                (_properties(self.contents), name),
            ):
                if key in where:
                    return name, where[key]
            single = self.contents.find(name)
            if single is not None and single.shape == () and single.kind in ("number", "text"):
                return name, single.values()
        return None

    def coordinates(self, standard: str, unit: str, name: re.Pattern[str]) -> list[Variable]:
        """Return the arrays of latitudes or longitudes of each pixel."""
        there = (*self.contents.variables, *self.contents.further)
        return [
            each
            for each in map(_upright, there)
            if each.shape == self.size
            and each.kind == "number"
            and (
                text_of(each.attributes, "standard_name") == standard
                or str(each.attributes.get("units", "")).startswith(unit)
                or name.search(each.name.replace(".", "/").rsplit("/", 1)[-1])
            )
        ]


_Place = tuple[Grid, Finding]


def _properties(contents: Contents) -> Mapping[str, Any]:
    try:
        properties = json.loads(text_of(contents.attributes, _STAC_ITEM) or "")["properties"]
    except (ValueError, TypeError, LookupError):
        return {}
    return properties if isinstance(properties, dict) else {}


def _upright(variable: Variable) -> Variable:
    """Return an array (rows, columns), if its names say that it is (columns, rows)."""
    return turned(variable) if [*map(role_of, variable.dims)] == [COLUMN, ROW] else variable


def _by_attributes(own: PlacedCube) -> _Place | None:
    """Return the grid with the system and the transform that attributes name."""
    found = own.attribute(*_CODES)
    system = None if found is None else crs_of(_text(found[1]))
    if found is None or system is None:
        return None
    before = own.variable.grid
    transform = None if before is None else before.transform
    if transform is None and (named := own.attribute(*_TRANSFORMS)) is not None:
        transform = _transform(named[1])
    if transform is None or (before is not None and before.crs is not None):
        return None
    grid = Grid(transform, system.to_wkt(), *own.size)
    return grid, note("place-found", names=[found[0]])


def _by_latitudes(own: PlacedCube) -> _Place | None:
    """Return the location of each pixel by arrays of latitudes and longitudes."""
    north = own.coordinates("latitude", "degrees_north", _LATITUDE)
    east = own.coordinates("longitude", "degrees_east", _LONGITUDE)
    before = own.variable.grid
    is_known = before is not None and (before.crs or before.location) is not None
    if len(north) != 1 or len(east) != 1 or is_known:
        return None
    grid = Grid(None, None, *own.size, Location(north[0], east[0]))
    return grid, note("place-found", names=[north[0].name, east[0].name])


def with_place(
    contents: Contents, variable: Variable, order: tuple[int, int, int]
) -> tuple[Variable, tuple[Finding, ...]]:
    """Return a cube with its place, if attributes or latitudes give one, and a finding on it."""
    own = PlacedCube(contents, variable, order)
    placed = _by_attributes(own) or _by_latitudes(own)
    if placed is None:
        return variable, ()
    return replace(variable, grid=placed[0]), (placed[1],)


def _text(value: Any) -> str:
    """Return the name of a system; a number is an EPSG code."""
    text = str(np.asarray(value).ravel()[0]) if np.size(value) else ""
    return f"EPSG:{int(float(text))}" if re.fullmatch(r"\d+(\.0*)?", text) else text


def _transform(value: Any) -> Transform | None:
    """Return the first six numbers of an affine transform, in the order of STAC."""
    numbers = numbers_of({"": value}, "")
    if numbers is None or numbers.size not in (6, 9):
        return None
    a, b, c, d, e, f = map(float, numbers[:6])
    return a, b, c, d, e, f
