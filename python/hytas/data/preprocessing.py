"""Select bands and scale them, fitted on training pixels only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hytas.data.bands import finite, select_bands
from hytas.data.findings import refusal
from hytas.data.samples import Samples
from hytas.errors import InputError
from hytas.types import Array, Floats, Mask

SCALINGS = ("standard", "minmax", "common")
LEAST_REACH = 10.0
"""Smallest reach, in scaled units. Values beyond twice the largest of the training pixels are
clipped, so that a hot pixel or an undeclared no-data value does not dominate its neighbours'
patches."""
MOST_SAMPLED = 4096
"""Training pixels that the value range is measured on, evenly spread."""
LEAST_MISFIT, MOST_BACKWARD, LEAST_SPREAD = 0.15, 0.7, 1e-3
LEAST_ORDERED = 8
"""Bands that a claim about their order needs."""
"""When bands count as reversed: their misfit, and that of the reverse order as a part of it.

Measured on Indian Pines, SalinasA and the embedded scene, trained on parts of their pixels: a
scene fits at least 1.8 times worse in reverse order. A model of two classes may differ, but then
the value range differs as well. Bands that were each normalised to 0..1 show nothing with
"minmax"."""


class ValueRange(NamedTuple):
    """The range of the values of some pixels.

    Attributes:
        z: absolute scaled value, unclipped: the mean over the bands of a pixel, and of these the
            median over the pixels. A cloud, or a few pixels with an undeclared no-data value, does
            not change it.
        low, high: first and last percentile of the raw values.
    """

    z: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Scaling of raw values for a network: `(x[..., bands] - offset) / scale`.

    The result is clipped to -reach..reach.

    Attributes:
        bands: (b,) kept bands, indices into the sensor's, ascending.
        offset: (b,) float32; mean ("standard") or minimum ("minmax") of the training pixels.
        scale: (b,) float32, positive; standard deviation or range.
        sensor_bands: B, bands of the raw cube.
        nodata: the no-data value, or None; it scales to 0, as NaN does.
        reach: the largest scaled value: twice that of the training pixels, and at least 10. None
            means no clipping.
        usual: value range of the training pixels; None if it was not measured.
    """

    bands: npt.NDArray[np.int64]
    offset: npt.NDArray[np.float32]
    scale: npt.NDArray[np.float32]
    method: str
    sensor_bands: int
    nodata: float | None = None
    reach: float | None = None
    usual: ValueRange | None = None

    @classmethod
    def fit(
        cls,
        spectra: Array,
        *,
        method: str = "standard",
        bands: str | None = None,
        bad_bands: Sequence[int] = (),
        wavelengths: Floats | None = None,
        nodata: float | None = None,
        least: int = 2,
    ) -> Self:
        """Fit on training spectra (N, B); drop dead bands and bands that are constant.

        Args:
            spectra: raw values; finite, except in bands without any finite value.
            method: "standard" (zero mean, unit deviation), "minmax" (0 to 1), or "common" (one
                mean and deviation for all bands, which keeps the shape of spectra).
            bands: a selection that `parse_bands` reads; None means all bands except the bad ones.
            bad_bands: indices to leave out if there is no selection.
            wavelengths: (B,) in nm, for a selection by wavelengths; or None.
            nodata: the no-data value; a band is fitted on the other values.
            least: bands that must be left.

        Raises:
            InputError: an unknown method, a bad selection, a value that is not finite, or fewer
                than `least` bands left.
        """
        if method not in SCALINGS:
            raise InputError("scaling", method, f"is not one of {', '.join(SCALINGS)}")
        count = spectra.shape[1]
        if spectra.shape[0] == 0:
            rule = "there are none to train on; scaling needs at least one"
            raise InputError("pixels", rule=rule)
        chosen = select_bands(bands, bad_bands, count, wavelengths)
        measured, values = _with_data(spectra[:, chosen].astype(np.float64), nodata)
        chosen = chosen[measured]
        low, high = (np.asarray(ends) for ends in (values.min(axis=0), values.max(axis=0)))
        if method != "minmax":
            offset, scale = np.asarray(values.mean(axis=0)), np.asarray(values.std(axis=0))
        else:
            offset, scale = low, high - low
        alive = _tells_apart(offset, scale)
        if method == "common":
            offset, scale = (np.full_like(one, one[alive].mean()) for one in (offset, scale))
        _refuse_few(alive, high > low, least)
        farthest = np.maximum(offset - low, high - offset)[alive] / scale[alive]
        scaling = cls(
            chosen[alive],
            offset[alive].astype(np.float32),
            scale[alive].astype(np.float32),
            method,
            count,
            nodata,
            max(LEAST_REACH, 2.0 * float(farthest.max())),
        )
        sample = spectra[:: -(-len(spectra) // MOST_SAMPLED)]
        return replace(scaling, usual=scaling.value_range(sample, nodata))

    @classmethod
    def fit_scene(
        cls,
        scene: Samples,
        pixels: npt.ArrayLike,
        *,
        method: str = "standard",
        bands: str | None = None,
        seed: int = 0,
    ) -> Self:
        """Fit on the pixels (flat indices) of a scene, or on some images of a set.

        Args:
            seed: draws pixels of images, if they are many.
        """
        return cls.fit(
            scene.values(np.asarray(pixels), seed),
            method=method,
            bands=bands,
            bad_bands=scene.bad_bands,
            wavelengths=scene.wavelengths,
            nodata=scene.nodata,
            least=scene.least_bands,
        )

    def apply(self, patches: Array) -> npt.NDArray[np.float32]:
        """Scale raw values (..., B) to (..., b); no-data and non-finite values become 0.

        Values beyond float32 count as not finite.

        Raises:
            InputError: the number of bands is not that of the sensor.
        """
        if patches.shape[-1] != self.sensor_bands:
            rule = f"the scaling was fitted on {self.sensor_bands}"
            raise InputError("bands", patches.shape[-1], rule)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # no-data values may overflow; they become 0 below
            values = patches[..., self.bands].astype(np.float32)
            absent = None if self.nodata is None else values == np.float32(self.nodata)
            values -= self.offset
            values /= self.scale
        if patches.dtype.kind == "f":
            values[~np.isfinite(values)] = 0.0
        if absent is not None:
            values[absent] = 0.0
        if self.reach is not None:
            np.clip(values, -self.reach, self.reach, out=values)
        return values

    def value_range(self, spectra: Array, nodata: float | None) -> ValueRange | None:
        """Return the value range of raw spectra (N, B), or None if none of them holds data."""
        values = _measured(spectra[:, self.bands], nodata)
        values = values[~np.isnan(values).all(axis=1)]
        if not len(values):
            return None
        z = np.nanmean(np.abs((values - self.offset) / self.scale), axis=1)
        low, high = np.quantile(values[~np.isnan(values)], (0.01, 0.99))
        return ValueRange(float(np.median(z)), float(low), float(high))

    def is_reversed(self, spectra: Array, nodata: float | None) -> bool:
        """Return whether bands of raw spectra (N, B) vary as the training's in reverse order."""
        if len(self.scale) < LEAST_ORDERED:
            return False
        straight, backward = (
            self._misfit(_measured(ordered[:, self.bands], nodata))
            for ordered in (spectra, spectra[:, ::-1])
        )
        return straight > LEAST_MISFIT and backward < MOST_BACKWARD * straight

    def _misfit(self, values: Array) -> float:
        """Return how far bands (N, b) differ from the training's in spread, without a common gain.

        It is the mean absolute logarithm of the interquartile range over the scale.
        """
        measured = ~np.isnan(values).all(axis=0)
        if not measured.any():
            return 0.0
        low, high = np.nanquantile(values[:, measured], (0.25, 0.75), axis=0)
        spread = np.log(np.maximum((high - low) / self.scale[measured], LEAST_SPREAD))
        return float(np.abs(spread - np.median(spread)).mean())

    @property
    def dark(self) -> npt.NDArray[np.float32]:
        """Return the scaled values (b,) of a pixel with zero counts, limited to -10..10.

        A band whose counts have a large offset or hardly vary would go beyond these limits. In such
        a band zero counts do not mean darkness.
        """
        dark: npt.NDArray[np.float32] = -self.offset / self.scale
        return np.clip(dark, -LEAST_REACH, LEAST_REACH)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "method": self.method,
            "sensor_bands": self.sensor_bands,
            "bands": self.bands.tolist(),
            "offset": self.offset.tolist(),
            "scale": self.scale.tolist(),
            "nodata": self.nodata,
            "reach": self.reach,
            "usual": None if self.usual is None else self.usual._asdict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from the JSON form.

        Raises:
            InputError: a field is missing, lists differ in length, or a value is out of range.
        """
        try:
            result = cls(
                np.asarray(values["bands"], dtype=np.int64),
                np.asarray(values["offset"], dtype=np.float32),
                np.asarray(values["scale"], dtype=np.float32),
                str(values["method"]),
                int(values["sensor_bands"]),
                _number_of(values.get("nodata")),
                _number_of(values.get("reach")),
                _usual_of(values.get("usual")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError("preprocessing", rule=f"not readable ({error!r})") from error
        shapes = {result.bands.shape, result.offset.shape, result.scale.shape}
        if len(shapes) != 1 or result.bands.ndim != 1 or result.bands.size == 0:
            rule = "bands, offset and scale must be lists of one length"
            raise InputError("preprocessing", rule=rule)
        if result.bands.min() < 0 or result.bands.max() >= result.sensor_bands:
            raise InputError("preprocessing", rule=f"bands must be 0 to {result.sensor_bands - 1}")
        if not (np.isfinite(result.offset).all() and (result.scale > 0).all()):
            raise InputError("preprocessing", rule="offset must be finite and scale positive")
        if result.reach is not None and not result.reach > 0:
            raise InputError("preprocessing", rule=f"reach {result.reach:g} must be positive")
        return result


def _with_data(values: Array, nodata: float | None) -> tuple[Mask, Array]:
    """Return which bands (B,) have data, and their values (n, b), masked without data."""
    empty = np.zeros(values.shape, np.bool_) if nodata is None else values == nodata
    finite_values = finite(values)
    absent = ~finite_values | empty
    measured = np.asarray(~absent.all(axis=0))
    if not finite_values.any() or not (finite_values | empty)[:, measured].all():
        rule = "training pixels hold NaN or infinite values; scaling needs finite ones"
        raise InputError("pixels", rule=rule)
    values, absent = values[:, measured], absent[:, measured]
    return measured, np.ma.array(values, mask=absent) if absent.any() else values


def _measured(raw: Array, nodata: float | None) -> Floats:
    values = np.where(finite(raw), raw, np.nan).astype(np.float64)
    if nodata is not None:
        values[raw == nodata] = np.nan
    return values


def _number_of(value: Any) -> float | None:
    return None if value is None else float(value)


def _usual_of(values: Any) -> ValueRange | None:
    if values is None:
        return None
    usual = ValueRange(*(float(values[name]) for name in ValueRange._fields))
    if not (all(map(math.isfinite, usual)) and usual.z >= 0 and usual.low <= usual.high):
        raise ValueError(f"usual: {usual} must be finite, z not negative, low at most high")
    return usual


def _tells_apart(offset: Array, scale: Array) -> Mask:
    """Return (B,), True where float32 resolves differences of `scale` near `offset`."""
    single = np.finfo(np.float32)
    return np.asarray((scale > single.eps * np.abs(offset)) & (scale >= single.tiny))


def _refuse_few(alive: Mask, vary: Mask, least: int) -> None:
    if alive.sum() >= least:
        return
    unseen = int((vary & ~alive).sum())
    counts: dict[str, Any] = {"count": int(alive.sum()), "of": len(alive), "least": least}
    raise refusal("bands-constant", "bands", **counts | ({"unseen": unseen} if unseen else {}))
