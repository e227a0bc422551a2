"""Cubes whose pixels are changed as they are read: scaled by themselves, or resampled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hytas.data.record import Rows
from hytas.errors import InputError
from hytas.types import Array, Floats, Mask

_Change = Callable[[Array], npt.NDArray[np.float32]]
"""Raw values of a row (W, B) -> its changed values (W, b)."""
SAME_NM = 1.0
"""Centres of bands that differ by less are those of the same band."""
LEAST_WEIGHT = 0.5
"""A resampled value needs bands with data of at least this weight, of 1."""


@dataclass(frozen=True, eq=False)
class MappedCube:
    """A cube (H, W, b) float32 of changed rows. Rows are read on demand.

    Each row is changed by itself, so values do not depend on how many rows are read at a time.

    Attributes:
        cube: (H, W, B).
    """

    cube: Rows
    change: _Change
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


def absent(values: Array, nodata: float | None) -> Mask:
    """Return True where values are `nodata` or not finite."""
    missing = ~np.isfinite(values)
    return missing if nodata is None else missing | (values == nodata)


@dataclass(frozen=True, eq=False)
class OwnScaling:
    """Zero mean and unit deviation of each band over the pixels of one scene. No label is read.

    Attributes:
        mean, deviation: (B,) float64. A band that does not vary has deviation 1.
    """

    mean: Floats
    deviation: Floats
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
        valid = np.maximum(count, 1)
        shift = total / valid
        deviation = np.sqrt(np.maximum(squares / valid - shift**2, 0.0))
        varies = deviation > np.finfo(np.float32).eps * np.abs(guess + shift)
        return cls(guess + shift, np.where(varies, deviation, 1.0), nodata)

    def __call__(self, values: Array) -> npt.NDArray[np.float32]:
        """Return scaled values (..., B); NaN where there is no data."""
        scaled = (values - self.mean) / self.deviation
        return np.where(absent(values, self.nodata), np.nan, scaled).astype(np.float32)

    def of(self, cube: Rows) -> MappedCube:
        """Return the cube with scaled values."""
        return MappedCube(cube, self, cube.shape[2])


def _mean(values: Array, nodata: float | None) -> Floats:
    missing = absent(values, nodata)
    valid = np.maximum((~missing).sum(axis=(0, 1)), 1)
    return np.asarray(np.where(missing, 0.0, values).sum(axis=(0, 1)) / valid)


@dataclass(frozen=True, eq=False)
class Resampling:
    """Weights of a scene's bands for each wanted band.

    Attributes:
        weights: (b, B); each row sums to 1, or is 0 where no band of the scene lies near.
    """

    weights: Floats
    nodata: float | None = None

    @classmethod
    def between(
        cls,
        own: Floats,
        wanted: Floats,
        fwhm: Floats | None = None,
        *,
        bad_bands: tuple[int, ...] = (),
        nodata: float | None = None,
    ) -> Self:
        """Return the resampling from the centres `own` (B,) to `wanted` (b,), in nm.

        With the widths of the wanted bands, their spectral response is a Gaussian of that width,
        and bands of the scene count by response and spacing. Without widths, or where the scene's
        bands are farther from each other, values are interpolated between two neighbours.

        Args:
            fwhm: (b,) full widths of the wanted bands at half maximum, in nm; or None.
            bad_bands: indices of the scene's bands that are not used.

        Raises:
            InputError: fewer than 2 wanted bands lie within the scene's wavelengths.
        """
        good = np.setdiff1d(np.arange(len(own)), bad_bands)
        order = good[np.argsort(own[good], kind="stable")]
        centres = own[order]
        weights = np.zeros((len(wanted), len(own)))
        spacing = np.gradient(centres) if len(centres) > 1 else np.ones(len(centres))
        for band, centre in enumerate(wanted):
            if not len(centres) or not centres[0] - SAME_NM <= centre <= centres[-1] + SAME_NM:
                continue
            width = None if fwhm is None else float(fwhm[band])
            weights[band, order] = _weights(centres, spacing, float(centre), width)
        if (weights.sum(axis=1) > 0).sum() < 2:
            raise InputError(
                "resample",
                rule=f"wavelengths {own.min():g} to {own.max():g} nm hold fewer than 2 of the "
                f"wanted bands, {wanted.min():g} to {wanted.max():g} nm",
            )
        return cls(weights, nodata)

    @property
    def lacking(self) -> npt.NDArray[np.int64]:
        """Return indices of the wanted bands that the scene does not measure."""
        return np.flatnonzero(self.weights.sum(axis=1) == 0)

    def __call__(self, values: Array) -> npt.NDArray[np.float32]:
        """Return values (N, b) of spectra (N, B); NaN where there is no data."""
        missing = absent(values, self.nodata)
        weight = (~missing).astype(np.float64) @ self.weights.T
        total = np.where(missing, 0.0, values) @ self.weights.T
        few = weight < LEAST_WEIGHT
        return np.where(few, np.nan, total / np.where(few, 1.0, weight)).astype(np.float32)


def _weights(centres: Floats, spacing: Floats, centre: float, width: float | None) -> Floats:
    """Return the weights (n,) of ascending bands for a band at `centre`."""
    nearest = int(np.abs(centres - centre).argmin())
    if width is not None and width >= spacing[nearest] > 0:
        response = np.exp(-4.0 * np.log(2.0) * ((centres - centre) / width) ** 2)
        weights = np.where(np.abs(centres - centre) <= 1.5 * width, response, 0.0) * spacing
        return np.asarray(weights / weights.sum())
    weights = np.zeros(len(centres))
    above = int(np.clip(np.searchsorted(centres, centre), 1, max(len(centres) - 1, 1)))
    if len(centres) == 1:
        weights[0] = 1.0
        return weights
    low, high = centres[above - 1], centres[above]
    share = 0.0 if high == low else float(np.clip((centre - low) / (high - low), 0.0, 1.0))
    weights[above - 1], weights[above] = 1.0 - share, share
    return weights
