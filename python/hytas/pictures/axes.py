"""Axes of charts: from values to places, and round values for the ticks."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
_MOST = 1e300
"""Values beyond it have no place: the length of their axis would be infinite."""
_LOG_FROM = 50
"""Positive values whose ends are so many times apart are drawn on a logarithmic axis."""


def short(value: float) -> str:
    """Return a number in few characters: 1.5M, 20K, 0.93."""
    if abs(value) < 1e4:
        return f"{value:.4g}"
    size, sign = next(
        pair for pair in ((1e9, "G"), (1e6, "M"), (1e3, "K")) if abs(value) >= pair[0]
    )
    return f"{value / size:.4g}{sign}"


@dataclass(frozen=True)
class Axis:
    """From values to places: `low` lies at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        share = ((math.log(value) if self.log else value) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and texts of four to nine round values."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first < 4 else (1,)
            values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        else:
            span = (self.high - self.low) / 5
            size = 10.0 ** math.floor(math.log10(span))
            size *= next(step for step in (1, 2, 5, 10) if step * size >= span)
            first = math.ceil(self.low / size - 1e-9)
            values = [size * n for n in range(first, math.floor(self.high / size + 1e-9) + 1)]
        inside = [value for value in values if self.low <= value <= self.high]
        return [(round(self.place(value), 1), short(value)) for value in inside]


def axis(values: Numbers, start: float, end: float, *, linear: bool = False) -> Axis:
    """Return an axis that holds all finite values, with a little room."""
    finite = values[np.abs(values) < _MOST]  # nor NaN
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if not linear and low > 0 and high / low >= _LOG_FROM:
        return log_axis(low, high, start, end)
    room = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
    return Axis(low - room, high + room, start, end)


def log_axis(low: float, high: float, start: float, end: float) -> Axis:
    """Return a logarithmic axis from below `low` to above `high`, both positive."""
    return Axis(low / 1.15, high * 1.15, start, end, log=True)
