"""A few spectra of a cube of any size."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

MOST_ROWS = 16
MOST_PIXELS = 4096


class _Rows(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice, /) -> npt.NDArray[Any]: ...


def sample_spectra(cube: _Rows) -> npt.NDArray[Any]:
    """Return raw spectra (n, B) of a few rows of a cube, with the first and the last row."""
    height, width, _ = cube.shape
    rows = np.unique(np.linspace(0, height - 1, MOST_ROWS).astype(int))
    each = max(1, MOST_PIXELS // len(rows))
    columns = np.unique(np.linspace(0, width - 1, min(width, each)).astype(int))
    return np.concatenate([np.asarray(cube[row : row + 1])[0][columns] for row in rows])
