"""The pixels of a scene or a label map, and where they lie on the earth."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hytas.errors import library

if TYPE_CHECKING:
    from hytas.data.location import Location

Transform = tuple[float, float, float, float, float, float]
Coordinates = npt.NDArray[np.float64]

SAME_PIXELS = 0.01
"""Grids whose corners differ by less than this part of a pixel are the same."""

METRES_OF_DEGREE = 111_320.0
"""Of a meridian."""

WGS_84 = "EPSG:4326"
"""System of latitude and longitude."""
LOCAL = ("LOCAL_CS[", "ENGCRS[", "ENGINEERINGCRS[")
"""Beginnings of the well-known text of a local system."""


@dataclass(frozen=True)
class Grid:
    """The pixels of a raster, and where they lie.

    Attributes:
        transform: (a, b, c, d, e, f) in the order of the package affine: the upper left corner of
            the pixel in row `row` and column `col` lies at x = a col + b row + c and
            y = d col + e row + f. None where nothing says it.
        crs: coordinate system as well-known text, or None.
        location: latitude and longitude of each pixel, for a scene in sensor geometry; or None.
        left_out: lines behind the last one that labels of the whole capture have, too.
    """

    transform: Transform | None
    crs: str | None
    height: int
    width: int
    location: "Location | None" = None
    left_out: int = 0

    @cached_property
    def epsg(self) -> int | None:
        """Return the EPSG code of the coordinate system, if it has one."""
        system = self.system
        return None if system is None else epsg_of(system)

    @cached_property
    def system(self) -> Any:
        """Return the coordinate system as rasterio's CRS; None where it is not known or unusable.

        Raises:
            InputError: rasterio is not installed.
        """
        return None if self.crs is None else crs_of(self.crs)

    @cached_property
    def affine(self) -> Any:
        """Return the transform as `affine.Affine`, which rasterio takes."""
        assert self.transform is not None  # checked by the caller
        return library("affine", "grid", "a place on the earth").Affine(*self.transform)

    @property
    def place_crs(self) -> str | None:
        """Return the system of coordinates: `crs`, or that of latitude and longitude.

        None for a local system, such as ENVI's "Arbitrary", which has no place on the earth.
        """
        if self.crs is not None and self.crs.startswith(LOCAL):
            return None
        return WGS_84 if self.transform is None and self.location is not None else self.crs

    @property
    def is_placed(self) -> bool:
        """Whether the pixels have a transform, and an area."""
        if self.transform is None or not all(map(math.isfinite, self.transform)):
            return False
        area = self.affine.determinant
        return area != 0 and math.isfinite(area)

    @property
    def is_rotated(self) -> bool:
        """Whether rows or columns are not parallel to the axes of the coordinate system."""
        return self.transform is not None and (self.transform[1] != 0 or self.transform[3] != 0)

    @property
    def is_south_up(self) -> bool:
        """Whether y grows with the row, as in a raster whose first row is the southernmost."""
        return self.transform is not None and not self.is_rotated and self.transform[4] > 0

    @property
    def pixel_size(self) -> tuple[float, float] | None:
        """Return width and height of a pixel, in units of the coordinate system."""
        if self.transform is None:
            return None
        a, b, _, d, e, _ = self.transform
        return math.hypot(a, d), math.hypot(b, e)

    @property
    def pixel_metres(self) -> float | None:
        """Return the side of a pixel in metres, of an oblong pixel the mean; None if not known."""
        if not self.is_placed or self.crs is None or (system := self.system) is None:
            return None
        assert self.pixel_size is not None
        width, height = self.pixel_size
        if system.is_geographic:  # degrees of a meridian
            return height * METRES_OF_DEGREE
        if not system.is_projected:  # a local system, whose unit PROJ does not know
            return None
        return math.sqrt(width * height) * float(system.linear_units_factor[1])

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Return the least x and y and the largest x and y of the corners, or of the location."""
        if self.transform is not None:
            x, y = self.coordinates(*self._corners)
        elif self.location is not None:
            x, y = self.location.read()
        else:
            return None
        return float(np.nanmin(x)), float(np.nanmin(y)), float(np.nanmax(x)), float(np.nanmax(y))

    def coordinates(
        self, columns: Sequence[float] | Coordinates, rows: Sequence[float] | Coordinates
    ) -> tuple[Coordinates, Coordinates]:
        """Return x and y of places in pixels; (0, 0) is the upper left corner of the first."""
        transform = library("rasterio.transform", "grid", "a place on the earth")
        x, y = transform.xy(self.affine, rows, columns, offset="ul")
        return np.asarray(x), np.asarray(y)

    def pixels(
        self, x: Sequence[float] | Coordinates, y: Sequence[float] | Coordinates
    ) -> tuple[Coordinates, Coordinates]:
        """Return columns and rows, with fractions, of coordinates: the inverse of `coordinates`."""
        transform = library("rasterio.transform", "grid", "a place on the earth")
        rows, columns = transform.rowcol(self.affine, x, y, op=lambda places: places)
        return np.asarray(columns), np.asarray(rows)

    def is_same_system(self, other: "Grid") -> bool:
        """Whether coordinates mean the same in both; a grid that names no system fits any."""
        own, others = self.place_crs, other.place_crs
        if own is None or others is None or own == others:
            return True
        return bool(crs_of(own) == crs_of(others))

    def is_same(self, other: "Grid") -> bool:
        """Whether both have the same pixels: size, place, and coordinate system."""
        if (self.height, self.width) != (other.height, other.width):
            return False
        if self.transform is None or other.transform is None:
            return self.transform is other.transform
        if not self.is_same_system(other):
            return False
        if not self.is_placed or not other.is_placed:
            return self.transform == other.transform
        corners = self.pixels(*other.coordinates(*self._corners))
        return bool(np.abs(np.stack(corners) - np.array(self._corners)).max() < SAME_PIXELS)

    def overlaps(self, other: "Grid") -> bool:
        """Whether the rectangles around two placed grids overlap, in any systems."""
        assert self.bounds is not None  # checked by the caller
        assert other.bounds is not None
        left, bottom, right, top = self.bounds
        box = other.bounds
        if not self.is_same_system(other):
            warp = library("rasterio.warp", "grid", "another coordinate system")
            box = (np.nan,) * 4
            with gdal(), suppress(Exception):  # rasterio has no base class for the errors of PROJ
                box = warp.transform_bounds(other.system, self.system, *other.bounds)
        return bool(box[0] < right and box[2] > left and box[1] < top and box[3] > bottom)

    @property
    def _corners(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (0, self.width, 0, self.width), (0, 0, self.height, self.height)


def gdal(**options: Any) -> Any:
    """Return a context in which GDAL lists no folder and uses no network.

    Messages of GDAL and PROJ go to the logger of rasterio in it, not to standard error.
    """
    rasterio = library("rasterio", "grid", "a place on the earth")
    safe = {
        "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
        "GDAL_PAM_ENABLED": "NO",
        "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}",
        "PROJ_NETWORK": "OFF",
    }
    return rasterio.Env(**{**safe, **options})


def crs_of(text: str) -> Any:
    """Return rasterio's CRS of well-known text or "EPSG:..."; None for any other text."""
    crs = library("rasterio.crs", "grid", "a coordinate system")
    with gdal():
        try:
            return crs.CRS.from_user_input(text)
        except ValueError:  # rasterio's CRSError is a ValueError
            return None


def in_system(
    x: Coordinates, y: Coordinates, source: Any, target: Any
) -> tuple[Coordinates, Coordinates]:
    """Return coordinates (n,) of one CRS of rasterio in another; NaN where it has no such place."""
    warp = library("rasterio.warp", "grid", "another coordinate system")
    finite = np.isfinite(x) & np.isfinite(y)
    moved = np.full((2, len(x)), np.nan)
    with gdal(), suppress(Exception):  # rasterio has no base class for the errors of PROJ
        moved[:, finite] = warp.transform(source, target, x[finite].tolist(), y[finite].tolist())
    moved[~np.isfinite(moved)] = np.nan
    return moved[0], moved[1]


def epsg_of(system: Any) -> int | None:
    """Return the EPSG code of a CRS of rasterio, if PROJ is sure of it."""
    with gdal():
        try:
            code = system.to_epsg(confidence_threshold=70)
        except ValueError:
            return None
    return None if code is None else int(code)


def wkt_of_epsg(code: int) -> str | None:
    """Return the well-known text of an EPSG code, or None if PROJ does not know it."""
    system = crs_of(f"EPSG:{code}")
    return None if system is None else str(system.to_wkt())
