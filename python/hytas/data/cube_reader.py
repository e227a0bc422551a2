"""Read a cube of any size by windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hytas.data.bands import finite
from hytas.data.contents import Array, Contents, Variable, reading
from hytas.data.find import find_cube, load
from hytas.data.geo import Geo
from hytas.data.readers import open_file
from hytas.errors import InputError


class CubeReader(Protocol):
    """A cube on disk that is read by windows."""

    @property
    def name(self) -> str:
        """Return the file's name, without its suffix."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, bands."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the values that `read` returns, in native byte order."""

    @property
    def wavelengths(self) -> npt.NDArray[np.float64] | None:
        """Return the band centres in nm, (B,), or None."""

    @property
    def nodata(self) -> float | None:
        """Return the no-data value, or None."""

    @property
    def geo(self) -> Geo | None:
        """Return coordinate system and transform, or None."""

    def read(self, row0: int, row1: int, col0: int, col1: int) -> Array:
        """Return the pixels (row1 - row0, col1 - col0, B) of a window inside the scene."""


@dataclass(eq=False)
class FileCube:
    """A cube in a file. Formats without windows (MATLAB v5, .npz) are read once, completely."""

    contents: Contents
    variable: Variable
    band_axis: int
    _whole: Array | None = field(default=None, repr=False)
    _dtype: np.dtype[Any] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Return the file's name, without its suffix."""
        return self.contents.path.stem

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, bands."""
        height, width = (n for i, n in enumerate(self.variable.shape) if i != self.band_axis)
        return height, width, self.variable.shape[self.band_axis]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the values that `read` returns, in native byte order."""
        if self._dtype is None:
            self._dtype = self.read(0, 1, 0, 1).dtype
        return self._dtype

    @property
    def wavelengths(self) -> npt.NDArray[np.float64] | None:
        """Return the band centres in nm, (B,), or None."""
        values = self.contents.meta.get("wavelengths")
        return values if values is not None and values.size == self.shape[2] else None

    @property
    def nodata(self) -> float | None:
        """Return the no-data value, or None."""
        return self.variable.nodata

    @property
    def geo(self) -> Geo | None:
        """Return coordinate system and transform, or None."""
        return self.variable.geo

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return the other facts of the file."""
        return self.contents.meta

    def read(self, row0: int, row1: int, col0: int, col1: int) -> Array:
        """Return the pixels (row1 - row0, col1 - col0, B) of a window.

        Raises:
            InputError: the window is empty or leaves the scene, or the file is broken.
            OSError: the file cannot be read.
        """
        height, width, _ = self.shape
        if not (0 <= row0 < row1 <= height and 0 <= col0 < col1 <= width):
            raise InputError(
                f"window: rows {row0} to {row1}, columns {col0} to {col1} must lie inside the "
                f"scene of {height} x {width} pixels"
            )
        rows, columns = slice(row0, row1), slice(col0, col1)
        if self.variable.window is not None and self.band_axis == 2:
            with reading("scene", self.contents.path, f"{self.contents.format} file"):
                self.variable.check_size()
                pixels = self.variable.window(rows, columns)
            return np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder("="))
        if self._whole is None:
            whole = load(self.variable, self.contents, "scene")
            self._whole = np.moveaxis(whole, self.band_axis, 2)
        return np.ascontiguousarray(self._whole[rows, columns])

    def __getitem__(self, rows: slice) -> Array:
        """Return full rows, so that code for arrays also works with a cube on disk."""
        height, width, bands = self.shape
        start, stop, step = rows.indices(height)
        if step != 1 or stop <= start:
            return np.empty((0, width, bands), self.dtype)
        return self.read(start, stop, 0, width)


def open_cube(path: str | Path, cube_key: str | None = None, bands: int | None = None) -> FileCube:
    """Open a cube to read it by windows.

    Args:
        path: the file.
        cube_key: the cube's name in the file; not needed if there is one cube.
        bands: the expected number of bands. If exactly one axis of the array has this length, and
            it is not the last one, it is the band axis.

    Raises:
        InputError: the file is missing or broken, holds no cube, or several cubes without a key.
    """
    contents = open_file(path, "scene")
    variable = find_cube(contents, cube_key, "scene")
    axis = band_axis(variable.shape, bands)
    size = variable.shape[axis]
    if size < 2 or 0 in variable.shape:
        shape = " x ".join(map(str, variable.shape))
        raise InputError(f"scene: the cube is {shape}: pixels with at least 2 bands are needed")
    return FileCube(contents, variable, axis)


def band_axis(shape: tuple[int, ...], bands: int | None) -> int:
    """Return the axis of the bands: the last, unless only another has the expected length."""
    fitting = [axis for axis, size in enumerate(shape) if size == bands]
    return fitting[0] if len(fitting) == 1 else 2


def valid_pixels(
    pixels: Array, nodata: float | None = None, bands: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.bool_]:
    """Return (H, W), False where a band is not finite in float32, or every band is `nodata`.

    Args:
        pixels: (H, W, B).
        nodata: the no-data value, or None.
        bands: indices of the bands to look at; None means all.
    """
    valid = np.ones(pixels.shape[:2], dtype=np.bool_)
    if nodata is None and pixels.dtype.kind != "f":
        return valid
    whole = bands is None or len(bands) == pixels.shape[2]  # a selection of bands is a copy
    for row in range(pixels.shape[0]):
        line = pixels[row] if whole else pixels[row][:, bands]
        valid[row] = finite(line).all(axis=1)
        if nodata is not None:
            valid[row] &= ~(line == nodata).all(axis=1)
    return valid
