"""The spectra of a scene, reduced until a page can hold them, with what that costs."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

CODE_BYTES = 400_000
"""Of all codes: one byte for each component and pixel."""
MOST_COMPONENTS, LEAST_COMPONENTS = 32, 6
MOST_BANDS = 256
_SAMPLE = 20_000
_OUTLIERS = (0.05, 99.95)
"""Percentiles of a band beyond which values are cut: a hot pixel would coarsen all others."""


@dataclass(frozen=True, eq=False)
class StoredSpectra:
    """Spectra as principal components of 8 bits each: `centre + (low + step * codes) @ basis`.

    Attributes:
        codes: (k, h, w) uint8, of every `stride`-th row and column of the scene.
        low, step: (k,) float32.
        basis: (k, b) float32.
        centre: (b,) float32.
        bands: (b,) float32, where the bands lie: nm, or band numbers from 1.
        merged: neighbouring bands averaged into each of the b.
        stride: rows and columns of the scene from one spectrum to the next.
        error: root mean square error over the standard deviation of the values.
        cut: share of values that were clipped, outliers of their band.
    """

    codes: NDArray[np.uint8]
    low: NDArray[np.float32]
    step: NDArray[np.float32]
    basis: NDArray[np.float32]
    centre: NDArray[np.float32]
    bands: NDArray[np.float32]
    in_nm: bool
    merged: int
    stride: int
    error: float
    cut: float

    def spectrum(self, row: int, column: int) -> NDArray[np.float32]:
        """Return the reduced spectrum (b,) of a pixel of the scene."""
        code = self.codes[:, row // self.stride, column // self.stride].astype(np.float32)
        return np.asarray(self.centre + (self.low + self.step * code) @ self.basis)

    def describe(self) -> str:
        """Say what was reduced, in one or two sentences."""
        parts = [f"spectra are kept as {len(self.basis)} principal components of 8 bits"]
        if self.merged > 1:
            parts.append(f"each point is the mean of {self.merged} neighbouring bands")
        if self.stride > 1:
            parts.append(f"of every {_ordinal(self.stride)} row and column (the nearest is shown)")
        if self.cut:
            parts.append(f"{100 * self.cut:.2g} % of the values, outliers, are clipped")
        error = f"{100 * self.error:.2g} %"
        return f"Reduced for this page: {', '.join(parts)}. The error is {error} of the deviation."

    def to_arrays(self) -> dict[str, Any]:
        """Return the fields by name, for `numpy.savez`."""
        return {f"spectra_{item.name}": getattr(self, item.name) for item in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Rebuild from `to_arrays`."""
        given: dict[str, Any] = {item.name: arrays[f"spectra_{item.name}"] for item in fields(cls)}
        plain = {"in_nm": bool, "merged": int, "stride": int, "error": float, "cut": float}
        return cls(**given | {name: kind(given[name]) for name, kind in plain.items()})


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def reduce_spectra(
    cube: NDArray[Any],
    valid: NDArray[np.bool_],
    kept: NDArray[np.int64],
    wavelengths: NDArray[np.float64] | None,
) -> StoredSpectra | None:
    """Return the spectra of a cube, reduced; None if no pixel is valid.

    Args:
        cube: (H, W, B); read row by row.
        valid: (H, W), whose spectra count; the others get any.
        kept: (b,) bands in use, indices.
        wavelengths: (B,) in nm, or None.
    """
    if not valid.any():
        return None
    stride = 1
    while -(-valid.shape[0] // stride) * -(-valid.shape[1] // stride) > (
        CODE_BYTES // LEAST_COMPONENTS
    ):
        stride += 1
    merged = -(-len(kept) // MOST_BANDS)
    where = (kept + 1.0) if wavelengths is None else wavelengths[kept]
    bands = merge_bands(where.astype(np.float32), merged)
    rows = [
        merge_bands(cube[row, ::stride][:, kept].astype(np.float32), merged)
        for row in range(0, valid.shape[0], stride)
    ]
    values, measured = np.stack(rows), valid[::stride, ::stride]
    measured = measured & np.isfinite(values).all(axis=2)
    if not measured.any():
        return None
    components = _components(values, measured)
    return StoredSpectra(
        bands=bands, in_nm=wavelengths is not None, merged=merged, stride=stride, **components
    )


def merge_bands(values: NDArray[np.float32], merged: int) -> NDArray[np.float32]:
    """Return the means (..., ceil(b / merged)) of neighbouring bands (..., b)."""
    ends = np.arange(0, values.shape[-1], merged)
    sizes = np.diff(np.append(ends, values.shape[-1]))
    return np.asarray(np.add.reduceat(values, ends, axis=-1) / sizes, np.float32)


def _components(values: NDArray[np.float32], measured: NDArray[np.bool_]) -> dict[str, Any]:
    spectra = values[measured].astype(np.float64)  # (n, b)
    sample = spectra[:: -(-len(spectra) // _SAMPLE)]
    low = np.percentile(sample, _OUTLIERS[0], axis=0, method="higher")
    high = np.percentile(sample, _OUTLIERS[1], axis=0, method="lower")
    near = np.clip(spectra, low, high)
    cut = float(np.mean(near != spectra))
    centre = near.mean(axis=0)
    sample = near[:: -(-len(near) // _SAMPLE)] - centre
    _, vectors = np.linalg.eigh(sample.T @ sample)
    count = min(len(centre), MOST_COMPONENTS, max(1, CODE_BYTES // measured.size))
    basis = vectors[:, ::-1][:, :count].T.astype(np.float32)
    scores = (near - centre) @ basis.T
    lowest, highest = scores.min(axis=0), scores.max(axis=0)
    step = np.maximum((highest - lowest) / 255, np.finfo(np.float32).tiny)
    own = np.rint((scores - lowest) / step).astype(np.uint8)
    back = centre + (lowest + step * own) @ basis
    deviation = float(near.std(axis=0).mean()) or 1.0
    codes = np.zeros((count, *measured.shape), np.uint8)
    codes[:, measured] = own.T
    return {
        "codes": codes,
        "low": lowest.astype(np.float32),
        "step": step.astype(np.float32),
        "basis": basis,
        "centre": centre.astype(np.float32),
        "error": float(np.sqrt(np.mean((back - near) ** 2))) / deviation,
        "cut": cut,
    }
