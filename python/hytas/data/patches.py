"""Patches around pixels, mirrored at the border of their scene, and samples of spectra."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.record import Rows
from hytas.errors import InputError
from hytas.types import Array, Mask

MOST_ROWS = 16
MOST_PIXELS = 4096


@dataclass(frozen=True)
class Part:
    """A scene inside a joined one, at the left border.

    Attributes:
        top: its first row in the joined scene.
        trains: whether its pixels may train; if not, they are tested on, and reported separately.
    """

    name: str
    top: int
    height: int
    width: int
    trains: bool
    cube_digest: str

    @property
    def window(self) -> tuple[slice, slice]:
        """Return the rows and the columns of the scene in the joined one."""
        return slice(self.top, self.top + self.height), slice(0, self.width)

    def pixels(self, width: int) -> npt.NDArray[np.int64]:
        """Return flat indices of its pixels in the joined scene of `width` columns, ascending."""
        rows = np.arange(self.top, self.top + self.height)
        return (rows[:, None] * width + np.arange(self.width)).ravel()


def mask_of(parts: Sequence[Part], shape: tuple[int, ...]) -> Mask:
    """Return (H, W), True in the pixels of the parts."""
    mask = np.zeros(shape, np.bool_)
    for part in parts:
        mask[part.window] = True
    return mask


def check_patch_side(patch_size: int) -> None:
    """Refuse a patch that has no centre pixel."""
    if patch_size < 1 or patch_size % 2 == 0:
        raise InputError("patch_size", patch_size, "must be odd and at least 1")


def check_patch_size(patch_size: int, height: int, width: int) -> None:
    """Refuse a patch that has no centre pixel or does not fit the scene.

    Raises:
        InputError: the side is even, zero or negative, or longer than the scene's shorter side.
    """
    check_patch_side(patch_size)
    if patch_size > min(height, width):
        rule = f"is larger than the scene of {height} x {width} pixels"
        raise InputError("patch_size", patch_size, rule)


@dataclass(frozen=True, eq=False)
class PatchReader:
    """Cut patches out of a cube; mirrored indices replace padding, so the cube is not copied.

    Attributes:
        cube: (H, W, B), may be a memory map.
        patch_size: P, odd.
        parts: of a joined scene. A patch ends at the border of its part; () means one scene.

    Raises:
        InputError: a patch size that does not fit the cube, or a part of it.
    """

    cube: Array
    patch_size: int
    parts: Sequence[Part] = ()

    def __post_init__(self) -> None:
        check_patch_size(self.patch_size, *self.cube.shape[:2])
        for part in self.parts:
            check_patch_size(self.patch_size, part.height, part.width)

    def __call__(self, pixels: npt.ArrayLike) -> Array:
        """Return the patches (N, P, P, B) around flat pixel indices (N,), in the cube's type."""
        height, width = self.cube.shape[:2]
        flat = np.asarray(pixels, dtype=np.int64)
        if flat.size and (flat.min() < 0 or flat.max() >= height * width):
            rule = f"must be 0 to {height * width - 1}"
            raise InputError("pixels", f"{flat.min()} to {flat.max()}", rule)
        row, column = np.divmod(flat, width)
        top, height, width = self._borders(row)
        reach = np.arange(self.patch_size) - self.patch_size // 2
        rows = top + mirror((row[:, None] - top) + reach, height)
        columns = mirror(column[:, None] + reach, width)
        return np.asarray(self.cube[rows[:, :, None], columns[:, None, :]])

    def _borders(self, rows: npt.NDArray[np.int64]) -> tuple[Any, Any, Any]:
        """Return the first row, the height and the width of the scene of each row, (N, 1)."""
        if not self.parts:
            return 0, *self.cube.shape[:2]
        sizes = np.array([(part.top, part.height, part.width) for part in self.parts])
        borders = sizes[np.searchsorted(sizes[:, 0], rows, side="right") - 1]
        return borders[:, :1], borders[:, 1:2], borders[:, 2:]


def mirror(index: npt.NDArray[np.int64], size: Any) -> npt.NDArray[np.int64]:
    """Mirror indices outside 0..`size` - 1 back inside, as 'reflect' of numpy.pad does.

    `size` is a number, or an array that fits `index`.

    An index may be up to `size` - 1 beyond either end. The end itself is not repeated.
    """
    return np.asarray((size - 1) - np.abs((size - 1) - np.abs(index)))


def sample_spectra(cube: Rows) -> npt.NDArray[Any]:
    """Return raw spectra (n, B) of a few rows of a cube, with the first and the last row."""
    height, width, _ = cube.shape
    rows = np.unique(np.linspace(0, height - 1, MOST_ROWS).astype(int))
    each = max(1, MOST_PIXELS // len(rows))
    columns = np.unique(np.linspace(0, width - 1, min(width, each)).astype(int))
    return np.concatenate([np.asarray(cube[row : row + 1])[0][columns] for row in rows])
