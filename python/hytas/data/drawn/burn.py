"""From shapes to a map: a pixel belongs to the shape that its centre lies in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hytas.data.drawn.shapes import Points, Shape
from hytas.data.geo import Geo
from hytas.data.location import Location
from hytas.errors import InputError

Pixels = npt.NDArray[np.int64]
MOST_PAIRS = 200_000_000
"""Pairs of edges that are compared to find a ring that crosses itself."""

MOST_AT_ONCE = 2**21
"""Pixels that are looked at together."""


@dataclass(frozen=True)
class Grid:
    """The pixels of a scene.

    Attributes:
        height, width: of the scene.
        geo: transform from pixels to coordinates, or None.
        location: latitude and longitude of each pixel, where there is no transform; or None.
    """

    height: int
    width: int
    geo: Geo | None = None
    location: Location | None = None

    @property
    def crs(self) -> str | None:
        """The coordinate system, as "EPSG:..." or well-known text, or None."""
        if self.geo is not None and self.geo.transform is not None:
            return f"EPSG:{self.geo.epsg}" if self.geo.epsg is not None else self.geo.wkt
        return "EPSG:4326" if self.location is not None else None

    @property
    def is_placed(self) -> bool:
        """Whether coordinates can be found in the scene."""
        return (self.geo is not None and self.geo.transform is not None) or (
            self.location is not None
        )


class Burner:
    """Finds the pixels of shapes.

    Args:
        grid: of the scene.
        in_pixels: whether coordinates are (column, row), else those of the scene's system.
    """

    def __init__(self, grid: Grid, in_pixels: bool) -> None:
        self._grid = grid
        transform = grid.geo.transform if grid.geo is not None else None
        self._affine = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0) if in_pixels else transform
        if self._affine is not None and self._determinant() == 0:
            raise InputError("data: its transform has no area: a pixel has no place")
        self._places: Points | None = None
        if self._affine is None:
            assert grid.location is not None  # who asks has looked
            x, y = (each.ravel() for each in grid.location.read())
            self._known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
            # By latitude, as the scan of a polygon wants them.
            self._known = self._known[np.argsort(y[self._known], kind="stable")]
            self._places = np.stack([x[self._known], y[self._known]], axis=1)

    def pixels(self, shape: Shape) -> Pixels:
        """Return the flat indices, ascending, of the pixels of a shape.

        Raises:
            InputError: a ring that is no area, or crosses itself.
        """
        found = [self._of_polygon(rings, shape.number) for rings in shape.polygons]
        if len(shape.points):
            found.append(self._of_points(shape.points))
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def _determinant(self) -> float:
        assert self._affine is not None
        a, b, _, d, e, _ = self._affine
        return a * e - b * d

    def _to_pixels(self, points: Points) -> Points:
        """Columns and rows of coordinates."""
        assert self._affine is not None
        a, b, c, d, e, f = self._affine
        x, y = points[:, 0] - c, points[:, 1] - f
        return np.stack([e * x - b * y, a * y - d * x], axis=1) / self._determinant()

    def _of_polygon(self, rings: Sequence[Points], number: int) -> Pixels:
        for ring in rings:
            _check(ring, number)
        if not rings:
            return np.empty(0, np.int64)
        if self._places is None:
            return self._in_rows([self._to_pixels(ring) for ring in rings])
        low, high = _bounds(rings)
        x, y = self._places.T
        first, last = np.searchsorted(y, [low[1], high[1]])
        near = first + np.flatnonzero((x[first:last] >= low[0]) & (x[first:last] <= high[0]))
        found: Pixels = self._known[near[inside(rings, x[near], y[near])]]
        return found

    def _in_rows(self, rings: Sequence[Points]) -> Pixels:
        low, high = _bounds(rings)
        size = np.array([self._grid.width, self._grid.height])
        first = np.clip(np.floor(low), 0, size).astype(np.int64)
        last = np.clip(np.ceil(high), 0, size).astype(np.int64)
        columns = np.arange(first[0], last[0])
        found = [np.empty(0, np.int64)]
        step = max(1, MOST_AT_ONCE // max(1, len(columns)))
        for top in range(first[1], last[1], step):
            rows = np.arange(top, min(top + step, last[1]))
            x, y = np.tile(columns + 0.5, len(rows)), np.repeat(rows + 0.5, len(columns))
            flat = (rows[:, None] * self._grid.width + columns[None, :]).ravel()
            found.append(flat[inside(rings, x, y)])
        return np.concatenate(found)

    def _of_points(self, points: Points) -> Pixels:
        if self._places is not None:
            return self._nearest(points)
        columns, rows = np.floor(self._to_pixels(points)).T
        there = (columns >= 0) & (columns < self._grid.width)
        there &= (rows >= 0) & (rows < self._grid.height)
        flat: Pixels = (rows[there] * self._grid.width + columns[there]).astype(np.int64)
        return flat

    def _nearest(self, points: Points) -> Pixels:
        """The pixels with the nearest centres, within the distance of two neighbours."""
        from scipy.spatial import cKDTree

        assert self._places is not None
        if not len(self._places):
            return np.empty(0, np.int64)
        shrink = np.array([np.cos(np.radians(np.median(self._places[:, 1]))), 1.0])
        tree = cKDTree(self._places * shrink)
        sample = self._places[:: max(1, len(self._places) // 1000)] * shrink
        spacing = float(np.median(tree.query(sample, k=min(2, len(self._places)))[0][..., -1]))
        distance, index = tree.query(points * shrink)
        found: Pixels = self._known[index[distance <= max(spacing, 1e-9)]]
        return found


def inside(rings: Sequence[Points], x: Points, y: Points) -> npt.NDArray[np.bool_]:
    """Return (n,), True where a point lies inside an odd number of rings; y must ascend.

    A point on an edge that two polygons share lies in one of them.
    """
    odd = np.zeros(len(x), np.bool_)
    for x1, y1, x2, y2 in _edges(rings):
        first, last = np.searchsorted(y, [min(y1, y2), max(y1, y2)])
        if first < last:
            crossing = x1 + (y[first:last] - y1) * ((x2 - x1) / (y2 - y1))
            odd[first:last] ^= x[first:last] < crossing
    return odd


def _edges(rings: Sequence[Points]) -> Iterator[tuple[float, float, float, float]]:
    for ring in rings:
        closed = np.concatenate([ring, ring[:1]]).tolist()
        for (x1, y1), (x2, y2) in pairwise(closed):
            if y1 != y2:
                yield x1, y1, x2, y2


def _bounds(rings: Sequence[Points]) -> tuple[Points, Points]:
    joined = np.concatenate(rings)
    return joined.min(axis=0), joined.max(axis=0)


def _check(ring: Points, number: int) -> None:
    if len(np.unique(ring, axis=0)) < 3:
        raise InputError(f"shape {number}: a ring of a polygon needs 3 corners")
    place = crossing(ring)
    if place is not None:
        raise InputError(
            f"shape {number} crosses itself near {place[0]:.10g}, {place[1]:.10g}: a polygon has "
            "one outline; mend it (QGIS: Fix geometries)"
        )


def crossing(ring: Points) -> tuple[float, float] | None:
    """Return the end of an edge of a ring that crosses another of its edges, or None.

    Edges that touch, as neighbours do, do not cross.

    Raises:
        InputError: too many edges above each other to compare.
    """
    start = ring
    end = np.roll(ring, -1, axis=0)
    low, high = np.minimum(start[:, 0], end[:, 0]), np.maximum(start[:, 0], end[:, 0])
    order = np.argsort(low, kind="stable")
    start, end, low, high = start[order], end[order], low[order], high[order]
    last = np.searchsorted(low, high, side="right")
    if int((last - np.arange(len(last))).sum()) > MOST_PAIRS:
        raise InputError("a ring has too many edges above each other")
    for i in range(len(start) - 1):
        others = slice(i + 1, int(last[i]))
        a, b, c, d = start[i], end[i], start[others], end[others]
        across = _side(a, b, c) * _side(a, b, d) < 0
        across &= _side(c, d, a) * _side(c, d, b) < 0
        if across.any():
            return float(b[0]), float(b[1])
    return None


def _side(a: Points, b: Points, c: Points) -> npt.NDArray[np.float64]:
    """1, 0 or -1: on which side of the line from a to b the point c lies."""
    cross = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (
        c[..., 0] - a[..., 0]
    )
    return np.sign(cross)
