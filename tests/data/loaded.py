"""A cube with all that its file says of it, and the label maps of a raster, read at once."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from hytas.data import FileCube, Grid, empty_pixels, open_cube, open_file, valid_pixels
from hytas.data.labels.options import LabelOptions, parse_unlabelled
from hytas.data.labels.read import of_rasters


class LoadedCube(NamedTuple):
    """Pixels (H, W, B), which of them are valid (H, W), and the facts of the file."""

    cube: np.ndarray
    valid: np.ndarray
    opened: FileCube

    @property
    def wavelengths(self) -> np.ndarray | None:
        return self.opened.wavelengths

    @property
    def fwhm(self) -> np.ndarray | None:
        return self.opened.fwhm

    @property
    def nodata(self) -> float | None:
        return self.opened.nodata

    @property
    def bad_bands(self) -> tuple[int, ...]:
        return self.opened.bad_bands

    @property
    def grid(self) -> Grid:
        return self.opened.grid

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.opened.notes, *empty_pixels(self.opened))


def load_cube(path: Path | list[Path], *args: str | int, **how: str | int) -> LoadedCube:
    """Read a whole cube; arguments are those of `open_cube`."""
    opened = open_cube(path, *args, **how)
    cube = opened.whole()
    return LoadedCube(cube, valid_pixels(cube, opened.nodata), opened)


def load_maps(
    path: Path,
    shape: tuple[int, ...] | None = None,
    unlabelled: int | str | None = None,
    zero_is_a_class: bool = False,
) -> list[tuple[str, np.ndarray]]:
    """Read the label map, or the training and the test map, of a raster, with the file's ids."""
    options = LabelOptions(None, parse_unlabelled(unlabelled), zero_is_a_class)
    return list(of_rasters([open_file(path, "labels")], options, shape, None).maps)
