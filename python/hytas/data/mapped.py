"""A cube whose pixels are changed as they are read, row by row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.record import Array, Rows

Change = Callable[[Array], npt.NDArray[np.float32]]
"""Raw values of a row (W, B) -> its changed values (W, b)."""


@dataclass(frozen=True, eq=False)
class MappedCube:
    """A cube (H, W, b) float32 of changed rows. Only the rows that are asked for are read.

    Each row is changed by itself, so values do not depend on how many rows are read at a time.

    Attributes:
        cube: (H, W, B).
        change: of a row.
        bands: b.
    """

    cube: Rows
    change: Change
    bands: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, bands."""
        return int(self.cube.shape[0]), int(self.cube.shape[1]), self.bands

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return float32."""
        return np.dtype(np.float32)

    def __getitem__(self, rows: slice) -> npt.NDArray[np.float32]:
        """Return the changed rows."""
        read = self.cube[rows]
        result = np.empty((*read.shape[:2], self.bands), np.float32)
        for place, line in enumerate(read):
            result[place] = self.change(line)
        return result

    def whole(self, rows: int = 64) -> npt.NDArray[np.float32]:
        """Return all rows; `rows` are read at a time."""
        result = np.empty(self.shape, np.float32)
        for top in range(0, self.shape[0], rows):
            part = slice(top, min(top + rows, self.shape[0]))
            result[part] = self[part]
        return result


def absent(values: Array, nodata: float | None) -> npt.NDArray[np.bool_]:
    """Return True where values are `nodata` or not finite."""
    missing = ~np.isfinite(values)
    return missing if nodata is None else missing | (values == nodata)
