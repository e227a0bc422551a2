"""Bring a label map onto the grid of a cube, by the nearest neighbour."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.grid import Coordinates, Grid, crs_of, in_system
from hytas.data.limits import printable

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
    if cube.transform is None and own.crs is None:  # numbers of pixels, beside latitudes
        return Aligned(values)
    if cube.transform is not None and cube.is_same(own):
        return Aligned(values)
    at_centres, inside = _at_centres(values, own, cube)
    labelled = int((at_centres != 0).sum())
    places = {"own": place_of(own), "scene": place_of(cube)}
    if may_miss and not labelled:
        return Aligned(at_centres, (note("labels-elsewhere", name, **places),))
    has_system = None not in (own.place_crs, cube.place_crs)
    if not inside and not has_system and values.shape == (cube.height, cube.width):
        return Aligned(values, (warning("labels-pixel-by-pixel", name),))
    if not inside or (not labelled and values.any()):
        raise refusal("labels-elsewhere", "labels", name, **places)
    findings = [note("labels-moved", name, count=labelled, **places)]
    if lost := np.setdiff1d(values[values != 0], at_centres).tolist():
        lost_names = [(names or {}).get(i, f"label {i}") for i in lost]
        found = note if may_miss else warning  # a tile seldom holds all classes of its map
        findings.append(found("classes-lost", name, classes=lost_names))
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
    size = grid.height * grid.width
    located = None if grid.location is None else [one.ravel() for one in grid.location.read()]
    for start in range(0, size, AT_ONCE):
        pixels = np.arange(start, min(start + AT_ONCE, size))
        if grid.transform is None:
            assert located is not None  # checked by the caller
            yield start, located[0][pixels], located[1][pixels]
            continue
        rows, columns = np.divmod(pixels, grid.width)
        yield start, *grid.coordinates(columns + 0.5, rows + 0.5)


def place_of(grid: Grid) -> str:
    """Return the system and the corners of a grid for people, with the size of a pixel."""
    left, bottom, right, top = (f"{each:.8g}" for each in grid.bounds or ())
    pixel = (
        "" if grid.pixel_size is None else " in pixels of {:.6g} x {:.6g}".format(*grid.pixel_size)
    )
    system = f"EPSG:{grid.epsg}" if grid.epsg else printable(grid.place_crs or "no system")[:60]
    return f"x {left} to {right}, y {bottom} to {top} of {system}{pixel}"
