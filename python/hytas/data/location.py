"""The location on the earth of pixels in sensor geometry."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hytas.data.grid import Grid
from hytas.data.record import Contents, Rows, Variable
from hytas.types import Array

Degrees = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lookup:
    """A geographic lookup table: for each pixel of a map grid, the pixel of the scene.

    Attributes:
        rows, columns: (h, w) numbers from 1; 0 where the scene has no pixel. A negative number
            marks a pixel that is repeated to fill a gap.
    """

    rows: Variable
    columns: Variable
    grid: Grid


@dataclass(frozen=True)
class Location:
    """Latitude and longitude of each pixel's centre, (H, W) degrees on WGS 84.

    Attributes:
        latitude, longitude: not yet read.
        lookup: the table to a map grid, or None.
    """

    latitude: Variable
    longitude: Variable
    lookup: Lookup | None = None

    @classmethod
    def of(
        cls, contents: Contents, latitude: str, longitude: str, size: tuple[int, ...]
    ) -> Self | None:
        """Return the location from two variables of a file, if they fit the size of a cube."""
        north, east = contents.find(latitude), contents.find(longitude)
        if north is None or east is None or not north.shape == east.shape == size:
            return None
        return cls(north, east)

    def read(self) -> tuple[Degrees, Degrees]:
        """Return longitudes and latitudes (H, W), NaN where the product has none.

        Raises:
            InputError: arrays that take far more memory than bytes of the file.
        """
        longitude, latitude = (
            np.asarray(each.values(), np.float64) for each in (self.longitude, self.latitude)
        )
        outside = ~((np.abs(longitude) <= 360) & (np.abs(latitude) <= 90))
        return np.where(outside, np.nan, longitude), np.where(outside, np.nan, latitude)


@dataclass(frozen=True)
class Orthorectified:
    """A map in sensor geometry, read by rows of the grid of a lookup table; 0 outside the scene.

    Attributes:
        values: (H, W).
    """

    values: Rows
    lookup: Lookup

    @property
    def shape(self) -> tuple[int, ...]:
        """Height and width of the grid."""
        return self.lookup.rows.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of the map."""
        return self.values.dtype

    def __getitem__(self, rows: slice) -> Array:
        """Return rows (h, w) of the grid."""
        start, stop, _ = rows.indices(self.shape[0])
        window = slice(start, stop), slice(0, self.shape[1])
        numbers = (each.part(window) for each in (self.lookup.rows, self.lookup.columns))
        line, column = (np.abs(each.astype(np.int64)) for each in numbers)
        height, width = self.values.shape[:2]
        inside = (line > 0) & (line <= height) & (column > 0) & (column <= width)
        result = np.zeros(line.shape, self.dtype)
        if inside.any():
            top = int(line[inside].min()) - 1
            block = self.values[top : int(line[inside].max())]
            result[inside] = block[line[inside] - 1 - top, column[inside] - 1]
        return result
