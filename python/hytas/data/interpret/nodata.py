"""Values of a cube that look like a no-data value which its file does not declare."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hytas.data.bands import Bands, finite
from hytas.data.findings import Finding, warning
from hytas.data.interpret.rules import GUESS, MeaningRule, first
from hytas.data.no_data import as_stored
from hytas.data.record import Rows
from hytas.types import Array, Mask

USUAL = (32767.0, 65535.0)
"""Common no-data values, besides the largest value of a type."""
MARKS = (-9999.0, -32768.0)
"""No-data values that no sensor measures, not even in a single band."""
MOST_SAMPLED = 10**6
MOST_ROWS = 16
LEAST_ZEROS = 0.001
"""Share of pixels of zeros from which they may be no data; fewer may be dark."""


class Value(NamedTuple):
    """A value that most bands of some pixels hold.

    Attributes:
        share: of all pixels.
        low, high: range of the values of the pixels to compare with, without the lowest and the
            highest thousandth.
        median: of these.
        most: the largest value of an integer type, or infinity.
    """

    value: float
    share: float
    low: float
    high: float
    median: float
    most: float

    @property
    def is_outside(self) -> bool:
        return not self.low <= self.value <= self.high

    @property
    def is_far(self) -> bool:
        """Return whether it is farther away than the width of the range."""
        width = self.high - self.low
        return not self.low - width <= self.value <= self.high + width


VALUE_RULES: tuple[MeaningRule[Value, bool], ...] = (
    MeaningRule(
        "zeros", lambda x: (x.value == 0 < x.median and x.share >= LEAST_ZEROS) or None, GUESS
    ),
    MeaningRule("inside the range", lambda x: None if x.is_outside else False),
    MeaningRule("usual", lambda x: x.value in (*USUAL, x.most) or None, GUESS),
    MeaningRule("negative", lambda x: x.value < 0 <= x.low or None, GUESS),
    MeaningRule("far", lambda x: x.is_far or None, GUESS),
)
"""Whether a value looks like no data; if no rule applies, it does not."""


class DeclaredNodata(NamedTuple):
    """A no-data value that a file declares, and the factor of its values.

    Attributes:
        fill: the values that most bands of some sampled pixels hold.
    """

    nodata: float
    factor: float
    dtype: str
    fill: frozenset[float]

    def other(self) -> float | None:
        """Return the declared value times or by the factor, if pixels hold it as no data."""
        scaled = (self.nodata * self.factor, self.nodata / self.factor)
        stored = (as_stored(round(one, 6), np.dtype(self.dtype)) for one in scaled)
        return next((one for one in stored if one is not None and one in self.fill), None)


DECLARED_RULES: tuple[MeaningRule[DeclaredNodata, float], ...] = (
    MeaningRule("it occurs", lambda own: own.nodata if own.nodata in own.fill else None),
    MeaningRule("it is scaled as the values are", lambda own: own.other(), GUESS),
    MeaningRule("it does not occur", lambda own: own.nodata),
)


def declared(
    nodata: float | None, factor: float, dtype: str, sampled: Sequence[Array]
) -> tuple[float | None, tuple[Finding, ...]]:
    """Return the no-data value of a cube as its values are stored, and a finding on a guess.

    Args:
        nodata: as the file declares it.
        factor: of the values.
        sampled: pixels (n, B) of some rows.
    """
    if nodata is None or factor in (0.0, 1.0) or not np.isfinite(nodata):
        return nodata, ()
    fill: set[float] = set()
    for pixels in (pixels for pixels in sampled if pixels.size):
        common = _common(pixels)
        fill |= {*common[(pixels == common[:, None]).sum(axis=1) * 2 > pixels.shape[1]].tolist()}
    matched = first(DECLARED_RULES, DeclaredNodata(nodata, factor, dtype, frozenset(fill)))
    assert matched is not None  # the last rule applies always
    value, rule = matched
    if rule.sureness != GUESS:
        return value, ()
    return value, (warning("nodata-scaled", nodata=nodata, factor=factor, value=value),)


def undeclared(
    cube: Array, measured: Mask, labelled: Mask, bands: Bands, nodata: float | None = None
) -> tuple[Finding, ...]:
    """Return findings on values that look like no data, in most bands of a pixel or in some.

    Args:
        cube: (H, W, B).
        measured: (H, W), pixels that are finite and not known to be empty.
        labelled: (H, W), pixels to compare with.
        bands: indices of the bands to check.
        nodata: the no-data value that is known.
    """
    every = max(1, int(labelled.sum()) * len(bands) // MOST_SAMPLED)
    lines = (
        (line[seen][:, bands], has_label[seen])
        for line, seen, has_label in zip(cube, measured, labelled, strict=True)
    )
    return _findings(lines, every, "", nodata)


def undeclared_in_rows(cube: Rows, nodata: float | None, bands: Bands) -> tuple[Finding, ...]:
    """Return the findings of `undeclared` for a few rows of a cube (H, W, B) without labels."""
    height, width = cube.shape[:2]
    rows = np.unique(np.linspace(0, height - 1, MOST_ROWS).astype(int))
    every = max(1, len(rows) * width * len(bands) // MOST_SAMPLED)

    def lines() -> Iterator[tuple[Array, Mask]]:
        for row in rows:
            values = cube[row : row + 1][0][:, bands]
            values = values[finite(values).all(axis=1)]
            values = values if nodata is None else values[(values != nodata).any(axis=1)]
            yield values, np.ones(len(values), np.bool_)

    return _findings(lines(), every, "-sampled", nodata)


def _findings(
    lines: Iterable[tuple[Array, Mask]], every: int, sampled: str, nodata: float | None
) -> tuple[Finding, ...]:
    """Return findings on odd values in most bands, or in some, of the pixels (N, B) of `lines`.

    The masks (N,) select the pixels to compare with; every `every`-th value of these is used.
    """
    counts: dict[float, int] = {}
    sample, pixels = [], 0
    for values, has_label in lines:
        if not values.size:
            continue
        pixels += len(values)
        common = _common(values)
        same = (values == common[:, None]).sum(axis=1) * 2 > values.shape[1]
        for value, count in zip(*np.unique(common[same], return_counts=True), strict=True):
            counts[float(value)] = counts.get(float(value), 0) + int(count)
        sample.append(values[has_label & ~same].ravel()[::every])
    compared = np.concatenate(sample) if sample else np.zeros(0)
    if not compared.size:
        return ()
    low, high = (float(q) for q in np.quantile(compared.astype(np.float64), (0.001, 0.999)))
    most = np.inf if compared.dtype.kind == "f" else float(np.iinfo(compared.dtype).max)
    ends = (low, high, float(np.median(compared)), most)
    odd = {v: n for v, n in counts.items() if _is_odd(Value(v, n / pixels, *ends))}
    ordered = sorted(odd, key=lambda value: -odd[value])
    facts: dict[str, Any] = {"count": sum(odd.values()), "values": ordered[:3]}
    findings = []
    if odd:
        findings = [warning(f"nodata-undeclared{sampled}", **facts, nodata=ordered[0])]
    marks = [mark for mark in MARKS if mark not in (nodata, *odd) and (compared == mark).any()]
    for mark in marks:
        percent = float(100 * (compared == mark).mean())
        findings.append(warning("nodata-undeclared-in-bands", percent=percent, nodata=mark))
    return tuple(findings)


def _is_odd(value: Value) -> bool:
    matched = first(VALUE_RULES, value)
    return matched is not None and matched[0]


def _common(values: Array) -> Array:
    """Return (N,), the value that most bands of a pixel (N, B) hold, if there is one.

    It is the median of a few bands, so that not all bands have to be sorted.
    """
    few = np.unique(np.linspace(0, values.shape[1] - 1, 5).astype(int))
    return np.asarray(np.sort(values[:, few], axis=1)[:, len(few) // 2])
