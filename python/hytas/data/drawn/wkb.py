"""Well-known binary (OGC 06-103r4), as GeoPackage stores geometries."""

import struct

import numpy as np

from hytas.data.drawn.shapes import Points
from hytas.errors import InputError

_POINT, _LINE, _POLYGON, _MULTIPOINT, _MULTIPOLYGON, _COLLECTION = 1, 2, 3, 4, 6, 7
MOST_DEPTH = 8


class _Reader:
    def __init__(self, data: bytes, at: int, number: int) -> None:
        self.data, self.at, self.number = data, at, number
        self.polygons: list[tuple[Points, ...]] = []
        self.points: list[Points] = []

    def geometry(self, depth: int = 0) -> None:
        order = "<" if self._bytes(1) == b"\x01" else ">"
        kind, axes = _kind(self._integer(order))
        if depth > MOST_DEPTH:
            raise InputError(f"shape {self.number}: geometries nested too deeply")
        if kind == _POINT:
            point = self._positions(order, 1, axes)
            if np.isfinite(point).all():  # an empty point is NaN
                self.points.append(point)
        elif kind == _POLYGON:
            rings = range(self._count(order, 4))
            self.polygons.append(
                tuple(self._positions(order, self._integer(order), axes) for _ in rings)
            )
        elif kind in (_MULTIPOINT, _MULTIPOLYGON, _COLLECTION):
            for _ in range(self._count(order, 5)):
                self.geometry(depth + 1)
        else:
            raise InputError(
                f"shape {self.number} is a geometry of type {kind}: polygon or point needed"
            )

    def _bytes(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            raise InputError(f"shape {self.number}: its geometry ends too early")
        self.at += count
        return part

    def _integer(self, order: str) -> int:
        return int(struct.unpack(order + "I", self._bytes(4))[0])

    def _count(self, order: str, least: int) -> int:
        """A number of parts, each of at least so many bytes."""
        count = self._integer(order)
        if count * least > len(self.data) - self.at:
            raise InputError(f"shape {self.number}: its geometry ends too early")
        return count

    def _positions(self, order: str, count: int, axes: int) -> Points:
        if count * axes * 8 > len(self.data) - self.at:
            raise InputError(f"shape {self.number}: its geometry ends too early")
        flat = np.frombuffer(self._bytes(count * axes * 8), order + "f8")
        return flat.reshape(-1, axes)[:, :2].astype(np.float64)


def _kind(code: int) -> tuple[int, int]:
    """The type of a geometry and its number of axes, written either way that is in use."""
    axes = 2 + bool(code & 0x80000000) + bool(code & 0x40000000)
    code &= 0x1FFFFFFF
    if code >= 1000:
        axes = {1: 3, 2: 3, 3: 4}.get(code // 1000, 2)
    return code % 1000, axes


def geometry_of(data: bytes, at: int, number: int) -> tuple[list[tuple[Points, ...]], list[Points]]:
    """Return the polygons and the points of a geometry that begins at byte `at`.

    Args:
        data: the geometry.
        at: where it begins.
        number: of the shape, for messages.

    Raises:
        InputError: it ends too early, holds no numbers, or is neither of polygons nor points.
    """
    reader = _Reader(data, at, number)
    reader.geometry()
    for part in (*reader.points, *(ring for rings in reader.polygons for ring in rings)):
        if not np.isfinite(part).all():
            raise InputError(f"shape {number}: its coordinates must be finite numbers")
    return reader.polygons, reader.points
