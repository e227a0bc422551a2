"""Maps without speckle: class probabilities through a guided filter, row by row.

The filter is He et al., Guided Image Filtering, IEEE TPAMI 35, 2013, with a guide of several values
(Sec. 3.6), here the first principal components of the scaled cube, as Kang et al., IEEE TGRS 52,
2014, take them for hyperspectral scenes. Every pixel's probabilities become a local linear function
of the guide, so they are averaged where the spectrum stays and kept separate where it changes.

Rows go in and come out in their order, and each is computed by the same operations in the same
order from any first row on: the result does not depend on tiles, to the bit.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hytas.data import Preprocessing, valid_mask
from hytas.deploy.unknown import shortest
from hytas.errors import InputError
from hytas.types import Array, Mask

SMOOTHINGS = ("guided", "none")
RADIUS = 4
EPS = 0.1
"""In units of the variance of the first component, whose deviation scales the guide: as much as
0.01 of a guide that goes from 0 to 1."""
GUIDES = 3
"""Principal components that guide."""
MOST_RADIUS = 64
LEAST_TEMPERATURE = 0.01
"""A smaller one would raise probabilities to powers that double precision cannot hold."""
MOST_FITTED = 2**16
"""Pixels that the components are fitted on, evenly spread over the scene."""


class LineState(NamedTuple):
    """The input of the filter for a row of W pixels.

    Attributes:
        probabilities: (W, C); anything where there is no data.
        guide: (W, 3) float64, likewise.
        valid: (W,) bool, the pixels that hold data; the others do not exist for the filter.
    """

    probabilities: Array
    guide: Array
    valid: Mask


@dataclass(frozen=True, eq=False)
class Smoothing:
    """How a model's maps are smoothed, and whether they are by default.

    Attributes:
        method: "guided" or "none", as validation pixels or the user chose.
        directions: (3, b) float32: the guide is `directions @ x - offset`, x the scaled spectrum of
            the pixel. Rows of zeros where the scene has fewer components.
        offset: (3,) float32.
        radius: r, in pixels: windows are (2 r + 1) x (2 r + 1).
        eps: added to the variances of the guide in a window.
        temperature: divisor of the logarithms of smoothed probabilities. Means over a window are
            less sure than the pixels are right.
    """

    method: str
    directions: npt.NDArray[np.float32]
    offset: npt.NDArray[np.float32]
    radius: int = RADIUS
    eps: float = EPS
    temperature: float = 1.0

    @classmethod
    def fit(
        cls,
        cube: Array,
        preprocessing: Preprocessing,
        nodata: float | None,
        method: str = "none",
        pixels: npt.NDArray[np.int64] | None = None,
    ) -> Self:
        """Fit the guide on a scene's pixels that hold data; no label is looked at.

        The components are those of the scaled spectra. Their common scale gives the first one unit
        variance, so the others keep their part in it.

        Args:
            cube: (H, W, B) as the sensor gives it.
            pixels: flat indices of the pixels to fit on; None means all.
        """
        height, width = cube.shape[:2]
        pixels = np.arange(height * width) if pixels is None else pixels
        chosen = pixels[:: max(1, -(-len(pixels) // MOST_FITTED))]
        spectra = np.asarray(cube[np.divmod(chosen, width)])
        valid = valid_mask(spectra[:, None], nodata, preprocessing.bands)[:, 0]
        values = preprocessing.apply(spectra[valid]).astype(np.float64)
        directions = np.zeros((GUIDES, len(preprocessing.bands)))
        if not len(values):
            return cls(method, directions.astype(np.float32), np.zeros(GUIDES, np.float32))
        mean = values.mean(axis=0)
        values -= mean
        variances, vectors = np.linalg.eigh(values.T @ values / len(values))
        components = vectors.T[::-1][:GUIDES]
        signs = np.sign(components[np.arange(len(components)), np.abs(components).argmax(axis=1)])
        if variances[-1] > 0:
            directions[: len(components)] = components * signs[:, None] / np.sqrt(variances[-1])
        kept = directions.astype(np.float32)
        return cls(method, kept, (kept @ mean).astype(np.float32))

    def guide(self, scaled: Array) -> Array:
        """Return the guide (W, 3) float64 of a row of scaled spectra (W, b)."""
        return np.asarray(scaled.astype(np.float64) @ self.directions.T.astype(np.float64)) - (
            self.offset.astype(np.float64)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "method": self.method,
            "radius": self.radius,
            "eps": self.eps,
            "temperature": self.temperature,
            "directions": shortest(self.directions),
            "offset": shortest(self.offset),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], bands: int) -> Self:
        """Rebuild from the JSON form; `bands` is how many the model keeps."""
        try:
            result = cls(
                str(values["method"]),
                np.asarray(values["directions"], np.float32),
                np.asarray(values["offset"], np.float32),
                int(values["radius"]),
                float(values["eps"]),
                float(values["temperature"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError("smoothing", rule=f"not readable ({error!r})") from error
        if result.method not in SMOOTHINGS:
            raise InputError("smoothing", result.method, f"is not one of {', '.join(SMOOTHINGS)}")
        if result.directions.shape != (GUIDES, bands) or result.offset.shape != (GUIDES,):
            rule = f"directions must be {GUIDES} x {bands}, offset {GUIDES}"
            raise InputError("smoothing", rule=rule)
        finite = np.isfinite(result.directions).all() and np.isfinite(result.offset).all()
        if not (finite and np.isfinite(result.eps) and result.eps > 0):
            raise InputError("smoothing", rule="directions and offset must be finite, eps positive")
        if not LEAST_TEMPERATURE <= result.temperature < math.inf:
            raise InputError(
                "smoothing",
                rule=f"temperature {result.temperature} must be finite and at least "
                f"{LEAST_TEMPERATURE}",
            )
        if not 1 <= result.radius <= MOST_RADIUS:
            raise InputError("smoothing", rule=f"radius {result.radius} must be 1 to {MOST_RADIUS}")
        return result


def guided_rows(
    rows: Iterable[LineState], radius: int, eps: float, temperature: float = 1.0
) -> Iterator[npt.NDArray[np.float32]]:
    """Smooth class probabilities, row by row; holds 2 `radius` + 1 rows of sums, twice.

    Windows end at the scene's border and leave out pixels without data. What comes out is cut at 0
    and scaled to sum to 1, as a linear function may leave 0..1; the largest one stays the largest.

    Args:
        radius: r. The rows given first are right from the 2 r-th on, where rows before them are
            missing.
        eps: as in `Smoothing`.

    Yields:
        (W, C) float32 for every row given, 0 where there is no data.
    """
    entered: deque[LineState] = deque()
    waiting: deque[LineState] = deque()

    def products() -> Iterator[Array]:
        for row in rows:
            entered.append(row)
            yield box_sum(_products(row), radius)

    def models() -> Iterator[Array]:
        for sums in _window_sums(products(), radius):
            row = entered.popleft()
            waiting.append(row)
            count = row.valid.astype(np.float64)
            # A window without data has no model; its centre holds none, and counts for nothing.
            means = sums[1:] / np.where(row.valid, sums[0], 1.0)
            model = np.concatenate(local_model(list(means[:GUIDES]), *_parts(means), eps))
            yield box_sum(np.concatenate([count[None], np.where(row.valid, model, 0.0)]), radius)

    for sums in _window_sums(models(), radius):
        row = waiting.popleft()
        means = sums[1:] / np.where(row.valid, sums[0], 1.0)
        slopes = means.reshape(GUIDES + 1, -1, len(row.valid))
        guide = np.where(row.valid, row.guide.T, 0.0)
        linear = slopes[GUIDES] + sum(slopes[k] * guide[k] for k in range(GUIDES))
        smoothed = as_probabilities(np.where(row.valid, linear, 1.0), temperature)
        yield np.where(row.valid, smoothed, 0.0).astype(np.float32).T


def local_model(
    guide: Sequence[Any], products: Sequence[Any], p: Any, mixed: Any, eps: float
) -> tuple[Any, Any, Any, Any]:
    """Return the linear model of each window: slopes of the three guides, and the offset.

    Operators alone, so numpy arrays and torch tensors will do.

    Args:
        guide: means of the guides I_0, I_1, I_2.
        products: means of I_0 I_0, I_0 I_1, I_0 I_2, I_1 I_1, I_1 I_2, I_2 I_2.
        p: means of the probabilities, (C, ...).
        mixed: means of I_k p, three of (C, ...).

    Source: He et al., 2013, Eq. 14 and 15; the system is solved by elimination, for eps keeps it
    positive definite.
    """
    (g0, g1, g2), (s00, s01, s02, s11, s12, s22) = guide, products
    v00, v01, v02 = s00 - g0 * g0 + eps, s01 - g0 * g1, s02 - g0 * g2
    v11, v12, v22 = s11 - g1 * g1 + eps, s12 - g1 * g2, s22 - g2 * g2 + eps
    m1, m2 = v01 / v00, v02 / v00
    u11, u12 = v11 - m1 * v01, v12 - m1 * v02
    m3 = u12 / u11
    u22 = v22 - m2 * v02 - m3 * u12
    c0, c1, c2 = (mixed[k] - guide[k] * p for k in range(GUIDES))
    y1 = c1 - m1 * c0
    a2 = (c2 - m2 * c0 - m3 * y1) / u22
    a1 = (y1 - u12 * a2) / u11
    a0 = (c0 - v01 * a1 - v02 * a2) / v00
    return a0, a1, a2, p - a0 * g0 - a1 * g1 - a2 * g2


def as_probabilities(values: Any, temperature: float) -> Any:
    """Cut values (C, ...) at 0, apply a temperature, and scale to a sum of 1; numpy or torch."""
    kept = values.clip(min=0.0)
    kept = kept / kept.sum(0)
    if temperature == 1.0:
        return kept
    kept = kept ** (1.0 / temperature)
    return kept / kept.sum(0)


def box_sum(values: Array, radius: int) -> Array:
    """Sum over the window of each column, (..., W) -> (..., W); it ends at the row's ends."""
    width = values.shape[-1]
    total = values.copy()
    for shift in range(1, min(radius, width - 1) + 1):
        total[..., shift:] += values[..., :-shift]
        total[..., :-shift] += values[..., shift:]
    return total


def _window_sums(rows: Iterable[Array], radius: int) -> Iterator[Array]:
    """Yield for each row the sum of those at most `radius` away, added from the first one on."""
    window: deque[Array] = deque(maxlen=2 * radius + 1)
    count = 0
    for row in rows:
        window.append(row)
        count += 1
        if count > radius:
            yield _sum(window)
    for centre in range(max(0, count - radius), count):
        while len(window) > count - max(0, centre - radius):
            window.popleft()
        yield _sum(window)


def _sum(rows: Iterable[Array]) -> Array:
    remaining = iter(rows)
    total = next(remaining).copy()
    for row in remaining:
        total += row
    return total


def _products(row: LineState) -> Array:
    """(10 + 4 C, W) float64: 1, I_k, I_k I_l, p and I_k p; 0 where there is no data."""
    guide = np.where(row.valid, row.guide.T, 0.0)
    p = np.where(row.valid, row.probabilities.T, 0.0).astype(np.float64)
    pairs = [guide[k] * guide[m] for k in range(GUIDES) for m in range(k, GUIDES)]
    mixed = [p * guide[k] for k in range(GUIDES)]
    return np.concatenate([row.valid[None], guide, pairs, p, *mixed])


def _parts(means: Array) -> tuple[list[Array], Array, Array]:
    """Return products of guides, p, and I_k p (3, C, W): rows of `_products` without the first."""
    pairs, others = means[GUIDES:9], means[9:].reshape(GUIDES + 1, -1, means.shape[1])
    return list(pairs), others[0], others[1:]


def around(pixels: Array, valid: Mask, reach: int) -> npt.NDArray[np.int64]:
    """Return flat indices, ascending, of valid pixels at most `reach` rows and columns away.

    Args:
        pixels: flat indices (n,) of those in the middle, which are among them if they hold data.
        valid: (H, W), the valid mask.
        reach: 2 r for all that smoothing reads.
    """
    wanted = np.zeros(valid.shape)
    wanted.flat[pixels] = 1
    near = box_sum(box_sum(wanted, reach).T, reach).T > 0
    return np.flatnonzero(near & valid)


def smooth_pixels(
    smoothing: Smoothing,
    cube: Array,
    preprocessing: Preprocessing,
    pixels: npt.NDArray[np.int64],
    probabilities: Array,
) -> npt.NDArray[np.float32]:
    """Return smoothed probabilities (n, C) of pixels, as if no others had data.

    Args:
        smoothing: whose guide and windows are taken, whatever its method.
        cube: (H, W, B) as the sensor gives it.
        preprocessing: of the model, which the guide was fitted with.
        pixels: (n,) flat indices, ascending.
        probabilities: (n, C) of them.
    """
    height, width = cube.shape[:2]
    ends = np.searchsorted(pixels, np.arange(height + 1) * width)

    def rows() -> Iterator[LineState]:
        for row in range(height):
            here = slice(ends[row], ends[row + 1])
            columns = pixels[here] - row * width
            values = np.zeros((width, probabilities.shape[1]), np.float32)
            guide, valid = np.zeros((width, GUIDES)), np.zeros(width, np.bool_)
            values[columns], valid[columns] = probabilities[here], True
            if len(columns):
                guide = smoothing.guide(preprocessing.apply(np.asarray(cube[row])))
            yield LineState(values, guide, valid)

    smoothed = guided_rows(rows(), smoothing.radius, smoothing.eps, smoothing.temperature)
    parts = [
        line[pixels[ends[row] : ends[row + 1]] - row * width] for row, line in enumerate(smoothed)
    ]
    return np.concatenate(parts)
