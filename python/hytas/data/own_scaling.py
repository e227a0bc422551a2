"""Scale a scene by its own pixels, so that a model travels to scenes of other light."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from hytas.data.mapped import MappedCube, absent
from hytas.data.record import Array, Rows


@dataclass(frozen=True, eq=False)
class OwnScaling:
    """Zero mean and unit deviation of each band over the pixels of one scene. No label is read.

    Attributes:
        mean, deviation: (B,) float64. A band that does not vary has deviation 1.
        nodata: the no-data value of the scene, or None.
    """

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    nodata: float | None = None

    @classmethod
    def fit(cls, cube: Rows, nodata: float | None = None, rows: int = 64) -> Self:
        """Fit on all values of a cube (H, W, B) that are finite and not `nodata`."""
        height, _, bands = cube.shape
        # Sums around a first guess of the mean keep their digits.
        guess = _mean(cube[0:1], nodata)
        count, total, squares = (np.zeros(bands) for _ in range(3))
        for top in range(0, height, rows):
            for line in cube[top : min(top + rows, height)]:
                missing = absent(line, nodata)
                values = np.where(missing, 0.0, line - guess)
                count += (~missing).sum(axis=0)
                total += values.sum(axis=0)
                squares += (values**2).sum(axis=0)
        known = np.maximum(count, 1)
        shift = total / known
        deviation = np.sqrt(np.maximum(squares / known - shift**2, 0.0))
        varies = deviation > np.finfo(np.float32).eps * np.abs(guess + shift)
        return cls(guess + shift, np.where(varies, deviation, 1.0), nodata)

    def __call__(self, values: Array) -> npt.NDArray[np.float32]:
        """Return scaled values (..., B); NaN where there is no data."""
        scaled = (values - self.mean) / self.deviation
        return np.where(absent(values, self.nodata), np.nan, scaled).astype(np.float32)

    def of(self, cube: Rows) -> MappedCube:
        """Return the cube with scaled values."""
        return MappedCube(cube, self, cube.shape[2])


def _mean(values: Array, nodata: float | None) -> npt.NDArray[np.float64]:
    missing = absent(values, nodata)
    known = np.maximum((~missing).sum(axis=(0, 1)), 1)
    return np.asarray(np.where(missing, 0.0, values).sum(axis=(0, 1)) / known)
