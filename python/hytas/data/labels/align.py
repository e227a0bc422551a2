"""Bring a label map onto the grid of a cube, by the nearest neighbour."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, note, warning
from hytas.data.grid import Coordinates, Grid, crs_of, in_system
from hytas.data.limits import printable
from hytas.errors import InputError

AT_ONCE = 2**18
"""Pixels whose places are computed together."""


class Aligned(NamedTuple):
    """A label map on the grid of a cube, and findings if it lay on another one."""

    values: npt.NDArray[np.int64]
    findings: tuple[Finding, ...] = ()


def is_placed(grid: Grid | None) -> bool:
    """Return whether a grid locates each pixel, by a transform or by latitudes."""
    return grid is not None and (
        grid.location is not None if grid.transform is None else grid.is_placed
    )


def aligned(
    name: str,
    values: npt.NDArray[np.int64],
    own: Grid | None,
    cube: Grid,
    names: Mapping[int, str] | None = None,
    may_miss: bool = False,
) -> Aligned:
    """Return a label map on the grid of a cube.

    If both have a place, each pixel of the cube gets the label at its centre. If they have the same
    grid, or one of them has no place, the map stays as it is, pixel by pixel.

    Args:
        values: (h, w), 0 unlabelled.
        names: of classes, by their values.
        may_miss: whether the map may lie elsewhere, so that no pixel gets a label.
    """
    if own is None or own.transform is None or not own.is_placed or not is_placed(cube):
        return Aligned(values)
    if cube.transform is not None and cube.is_same(own):
        return Aligned(values)
    at_centres, inside = _at_centres(values, own, cube)
    if may_miss and not at_centres.any():
        return Aligned(at_centres, (note("labels-all-outside", name),))
    if not inside:
        if None in (own.place_crs, cube.place_crs) and values.shape == (cube.height, cube.width):
            return Aligned(values, (warning("labels-pixel-by-pixel", name),))
        rule = f"lies elsewhere: in {_where(own)}, the cube in {_where(cube)}"
        raise InputError("labels", name, rule)
    labelled = int((at_centres != 0).sum())
    if not labelled and values.any():
        rule = f"none of its {int((values != 0).sum())} labelled pixels lies in the cube"
        raise InputError("labels", name, rule)
    findings = [note("labels-moved", name, count=labelled, difference=_difference(own, cube))]
    if lost := np.setdiff1d(values[values != 0], at_centres).tolist():
        lost_names = [(names or {}).get(i, f"label {i}") for i in lost]
        findings.append(warning("classes-lost", name, classes=lost_names))
    return Aligned(at_centres, tuple(findings))


def _at_centres(
    values: npt.NDArray[np.int64], own: Grid, cube: Grid
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the label at the centre of each pixel of the cube, and how many lie in the map."""
    at_centres = np.zeros(cube.height * cube.width, np.int64)
    inside, same_system = 0, cube.is_same_system(own)
    for start, x, y in _centres(cube):
        if not same_system:
            x, y = in_system(x, y, crs_of(cube.place_crs or ""), own.system)
        columns, rows = own.pixels(x, y)
        # A place that the map's system does not have is not finite.
        there = (columns >= 0) & (columns < own.width) & (rows >= 0) & (rows < own.height)
        place = rows[there].astype(np.int64), columns[there].astype(np.int64)
        at_centres[start : start + len(x)][there] = values[place]
        inside += int(there.sum())
    return at_centres.reshape(cube.height, cube.width), inside


def _centres(grid: Grid) -> Iterator[tuple[int, Coordinates, Coordinates]]:
    """Yield the first flat index of some pixels, and x and y of their centres."""
    if grid.transform is None:
        assert grid.location is not None  # checked by the caller
        x, y = (each.ravel() for each in grid.location.read())
        for start in range(0, len(x), AT_ONCE):
            yield start, x[start : start + AT_ONCE], y[start : start + AT_ONCE]
        return
    size = grid.height * grid.width
    for start in range(0, size, AT_ONCE):
        rows, columns = np.divmod(np.arange(start, min(start + AT_ONCE, size)), grid.width)
        yield start, *grid.coordinates(columns + 0.5, rows + 0.5)


def _difference(own: Grid, cube: Grid) -> str:
    if cube.transform is None:
        return "from a map grid to sensor geometry"
    if not own.is_same_system(cube):
        return f"from {system_name(own)} to {system_name(cube)}"
    assert own.transform is not None
    ends = own.pixels(*cube.coordinates([0.0, cube.width], [0.0, cube.height]))
    (column, last_column), (row, last_row) = (each.tolist() for each in ends)
    longer = last_column - column - cube.width, last_row - row - cube.height
    if max(map(abs, longer)) < 0.5:
        return f"shifted by {_pixels(row, 'row')} and {_pixels(column, 'column')}"
    if own.is_south_up != cube.is_south_up and own.pixel_size == cube.pixel_size:
        return "its first row is the southernmost" if own.is_south_up else "the cube is south-up"
    if own.is_rotated or cube.is_rotated:
        return "rotated"
    if own.pixel_size == cube.pixel_size:
        return "mirrored"
    sizes = [" x ".join(f"{side:.6g}" for side in grid.pixel_size or ()) for grid in (own, cube)]
    return f"from pixels of {sizes[0]} to {sizes[1]}"


def _pixels(count: float, what: str) -> str:
    rounded = round(count, 2)
    number = f"{rounded:g}" if rounded else "0"
    return f"{number} {what}{'' if number in ('1', '-1') else 's'}"


def system_name(grid: Grid) -> str:
    """Return the code of a grid's coordinate system, or its text, cut if it is long."""
    if grid.epsg is not None:
        return f"EPSG:{grid.epsg}"
    return printable(grid.place_crs or "no system")[:60]


def _where(grid: Grid) -> str:
    left, bottom, right, top = (f"{each:.8g}" for each in grid.bounds or ())
    return f"x {left} to {right}, y {bottom} to {top} in {system_name(grid)}"
