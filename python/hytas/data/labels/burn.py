"""From shapes to pixels: a pixel belongs to the polygon that its centre lies in."""

import numpy as np
import numpy.typing as npt

from hytas.data.findings import refusal
from hytas.data.grid import Grid
from hytas.data.labels.shapes import POINT, POLYGON, Geometries, Points, parts_of
from hytas.errors import InputError
from hytas.types import Mask

Window = tuple[slice, slice]
Owners = npt.NDArray[np.int32]
FAR = 1e15
"""Pixels; a place that is farther away is in no scene."""


def scene_without_place(argument: str) -> InputError:
    """Return the refusal of shapes that have a place, of a scene that has none."""
    return refusal("shapes-without-place", argument, case="scene")


class Burner:
    """Finds the pixels of shapes.

    Args:
        geometries: polygons and points of shapely, or None.
        in_pixels: whether coordinates are (column, row), else those of the scene's system.
    """

    def __init__(self, geometries: Geometries, grid: Grid, in_pixels: bool) -> None:
        import shapely

        self._size = grid.height, grid.width
        self._centres: Points | None = None
        low, high = np.zeros(2), np.array([grid.width, grid.height], np.float64)
        if not in_pixels and grid.transform is None:
            assert grid.location is not None  # checked by the caller
            x, y = (each.ravel() for each in grid.location.read())
            self._located = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
            self._centres = np.stack([x[self._located], y[self._located]], axis=1)
            low, high = np.full(2, np.inf), np.full(2, -np.inf)
            if len(self._centres):
                around = self._spacing() / self._shrink
                low, high = self._centres.min(axis=0) - around, self._centres.max(axis=0) + around
        elif not in_pixels:
            if not grid.is_placed:
                raise scene_without_place("data")

            def to_pixels(places: Points) -> Points:
                positions = np.stack(grid.pixels(places[:, 0], places[:, 1]), axis=1)
                return positions.clip(-FAR, FAR)  # an infinite one would break a ring

            geometries = shapely.transform(geometries, to_pixels)
        self._geometries = geometries
        bounds = shapely.bounds(geometries)
        self._near = ((bounds[:, :2] <= high) & (bounds[:, 2:] >= low)).all(axis=1)

    def burn(self, chosen: npt.NDArray[np.int64]) -> tuple[Window, Owners]:
        """Return a window of the scene, and the number of the first shape that holds each pixel.

        Args:
            chosen: indices of the shapes, ascending; the number of a shape is its index plus 1.

        Returns:
            Rows and columns of the window; numbers (h, w), 0 without a shape.
        """
        chosen = chosen[self._near[chosen]]
        geometries, numbers = self._geometries[chosen], (chosen + 1).astype(np.int32)
        if self._centres is not None:
            return self._by_centres(geometries, numbers)
        import shapely

        window = self._window(geometries)
        height, width = (part.stop - part.start for part in window)
        owners: Owners = np.zeros((height, width), np.int32)
        if not owners.size:
            return window, owners
        corner = window[1].start, window[0].start
        polygons, owner = _parts(geometries, numbers, POLYGON)
        if len(polygons):
            from rasterio import features

            polygons = shapely.transform(polygons, lambda places: _off_centres(places - corner))
            # The first shape is drawn last, over the others.
            features.rasterize(zip(polygons[::-1], owner[::-1].tolist(), strict=True), out=owners)
        points, owner = _parts(geometries, numbers, POINT)
        columns, rows = (np.floor(shapely.get_coordinates(points)) - corner).T
        inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
        pixels = (rows * width + columns)[inside].astype(np.int64)
        _put_first(owners, pixels, owner[inside])
        return window, owners

    def _window(self, geometries: Geometries) -> Window:
        import shapely

        if not len(geometries):
            return slice(0, 0), slice(0, 0)
        left, top, right, bottom = shapely.total_bounds(geometries).tolist()

        def part(low: float, high: float, most: int) -> slice:
            first, last = np.clip((np.floor(low), np.floor(high) + 1), 0, most).astype(int).tolist()
            return slice(first, last)

        return part(top, bottom, self._size[0]), part(left, right, self._size[1])

    def _by_centres(self, geometries: Geometries, numbers: Owners) -> tuple[Window, Owners]:
        import shapely

        assert self._centres is not None
        owners: Owners = np.zeros(self._size, np.int32)
        flat = owners.reshape(-1)
        points, owner = _parts(geometries, numbers, POINT)
        pixel, is_close = self._nearest(shapely.get_coordinates(points))
        _put_first(owners, self._located[pixel[is_close]], owner[is_close])
        polygons, owner = _parts(geometries, numbers, POLYGON)
        shapely.prepare(polygons)
        x, y = self._centres.T
        for polygon, number in zip(polygons, owner.tolist(), strict=True):
            left, bottom, right, top = polygon.bounds
            near = np.flatnonzero((x >= left) & (x <= right) & (y >= bottom) & (y <= top))
            inside = self._located[near[shapely.contains_xy(polygon, x[near], y[near])]]
            free = (flat[inside] == 0) | (flat[inside] > number)
            flat[inside[free]] = number
        return (slice(0, self._size[0]), slice(0, self._size[1])), owners

    def _nearest(self, places: Points) -> tuple[npt.NDArray[np.int64], Mask]:
        from scipy.spatial import cKDTree

        assert self._centres is not None
        if not len(places) or not len(self._centres):
            return np.zeros(len(places), np.int64), np.zeros(len(places), np.bool_)
        distance, pixel = cKDTree(self._centres * self._shrink).query(places * self._shrink)
        return pixel, distance <= self._spacing()

    def _spacing(self) -> float:
        """Return the usual distance of a centre to the next one; an equator's degree is 1."""
        from scipy.spatial import cKDTree

        assert self._centres is not None
        places = self._centres * self._shrink
        sample = places[:: max(1, len(places) // 1000)]
        neighbour = cKDTree(places).query(sample, k=min(2, len(places)))[0][..., -1]
        return max(float(np.median(neighbour)), 1e-9)

    @property
    def _shrink(self) -> Points:
        """Return the length of a degree of longitude and of latitude."""
        assert self._centres is not None
        return np.array([np.cos(np.radians(np.median(self._centres[:, 1]))), 1.0])


def _parts(geometries: Geometries, numbers: Owners, kind: int) -> tuple[Geometries, Owners]:
    """Return the parts of shapes that are of one kind, and the number of the shape of each."""
    import shapely

    parts, index = parts_of(geometries)
    of_kind = (shapely.get_type_id(parts) == kind) & ~shapely.is_empty(parts)
    return parts[of_kind], numbers[index[of_kind]]


def _off_centres(places: Points) -> Points:
    """Return places (column, row), none on a line of centres of pixels.

    GDAL fills an edge that lies on such a line, for both polygons that share it. A line a bit above
    belongs to the lower polygon alone, as it is for all other edges.
    """
    on_line = places[:, 1] % 1 == 0.5
    places[on_line, 1] = np.nextafter(places[on_line, 1], -np.inf)
    return places


def _put_first(owners: Owners, pixels: npt.NDArray[np.int64], numbers: Owners) -> None:
    """Give pixels to points; the lower number keeps its pixel."""
    flat = owners.reshape(-1)
    free = np.where(flat[pixels] == 0, np.iinfo(np.int32).max, flat[pixels])
    flat[pixels] = free
    np.minimum.at(flat, pixels, numbers)


def check_rings(geometries: Geometries) -> None:
    """Refuse polygons that are no area, or cross themselves.

    A ring that only touches itself is common, and has one area.
    """
    import shapely

    parts, index = parts_of(geometries)
    is_wrong = ~shapely.is_valid(parts) & ~shapely.is_missing(parts)
    for part in np.flatnonzero(is_wrong).tolist():
        polygon, reason = parts[part], str(shapely.is_valid_reason(parts[part]))
        same_area = np.isclose(polygon.area, shapely.make_valid(polygon).area)
        if reason.startswith("Too few points") or not same_area:
            raise refusal("shape-invalid", "labels", first=int(index[part]) + 1, reason=reason)
