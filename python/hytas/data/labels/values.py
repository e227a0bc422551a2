"""Continuous targets in a raster or an array, on the pixels of a cube."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hytas.data.data_array import numbered_names
from hytas.data.findings import refusal
from hytas.data.grid import Grid
from hytas.data.interpret.axes import cube_axes, find_axes, map_axes
from hytas.data.labels.align import aligned
from hytas.data.labels.maps import LabelMaps
from hytas.data.limits import by
from hytas.data.options import SceneOptions
from hytas.data.record import BandFacts, Contents, Variable, load
from hytas.types import Array


def values_in(
    contents: Contents, options: SceneOptions, grid: Grid, cube: Variable | None = None
) -> LabelMaps:
    """Return the continuous targets in a file, on the pixels of a cube.

    Args:
        cube: the variable of the cube, if it lies in the same file.
    """
    variable = _variable(contents, options.labels_key, grid, cube)
    axes: tuple[int, ...] | None = map_axes(variable)
    if axes is None:
        axes = find_axes(variable, maps=[(grid.height, grid.width)]).order
    values = load(variable, contents, "labels")
    spare = [axis for axis in range(values.ndim) if axis not in axes]
    values = values.transpose(*axes, *spare)
    values = values.reshape(*values.shape[:2], -1)
    own = variable.grid
    if own is not None:
        own = Grid(own.transform, own.crs, *values.shape[:2])
    facts, count = variable.bands or BandFacts(), values.shape[2]
    is_named = len({*facts.names}) == count and all(facts.names)
    names = facts.names if is_named else numbered_names(variable.name, count)
    maps = _on_grid(values, variable.nodata, own, names, options, grid)
    return replace(maps, value_units=facts.units if len(facts.units) == count else ())


def _variable(contents: Contents, key: str | None, grid: Grid, cube: Variable | None) -> Variable:
    if key is not None:
        return contents.get(key, "labels")
    arrays = [
        one
        for one in contents.variables
        if one is not cube and one.kind == "number" and len(_kept(one)) in (2, 3)
    ]
    size = {grid.height, grid.width}
    fitting = [one for one in arrays if size <= {*one.shape}] or arrays
    if len(fitting) != 1:
        names = [*map(str, contents.variables)]
        raise refusal("several", "labels", contents.path, "arrays", names=names)
    return fitting[0]


def _kept(variable: Variable) -> tuple[int, ...]:
    return map_axes(variable) or cube_axes(variable)


def _on_grid(
    values: Array,
    nodata: float | None,
    own: Grid | None,
    names: Sequence[str],
    options: SceneOptions,
    grid: Grid,
) -> LabelMaps:
    """Return values (h, w, T) on the pixels of a cube, each that of the nearest pixel."""
    targets = values.astype(np.float64)
    for mark in (nodata, options.unlabelled.number):
        targets[values == mark] = np.nan
    has_target = ~np.isnan(targets).all(axis=2)
    place = np.where(has_target, np.arange(1, has_target.size + 1).reshape(has_target.shape), 0)
    placed = aligned("labels", place, own, grid, may_miss=not options.least_classes)
    if placed.values.shape != (grid.height, grid.width):
        facts = {"own": by(has_target.shape), "size": by((grid.height, grid.width))}
        raise refusal("sizes-differ", "labels", case="cube", **facts)
    rows = np.vstack([np.full((1, targets.shape[2]), np.nan), targets.reshape(has_target.size, -1)])
    findings = tuple(one for one in placed.findings if one.code != "classes-lost")
    return LabelMaps(
        (("labels", (placed.values > 0).astype(np.int64)),),
        findings=findings,
        values=rows[placed.values],
        value_names=tuple(names),
    )
