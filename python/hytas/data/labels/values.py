"""Continuous targets in a raster or an array, on the pixels of a cube."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.data_array import is_data_array, nodata_of, numbered_names, planes_of
from hytas.data.findings import refusal
from hytas.data.grid import Grid, gdal
from hytas.data.interpret.axes import cube_axes, find_axes, map_axes
from hytas.data.labels.align import aligned
from hytas.data.labels.maps import LabelMaps
from hytas.data.limits import by, listed
from hytas.data.options import SceneOptions
from hytas.data.read.table import open_file
from hytas.data.record import Contents, Variable, load
from hytas.errors import InputError, library
from hytas.types import Array


def continuous_labels(labels: Any, options: SceneOptions, grid: Grid) -> LabelMaps:
    """Return the continuous targets of a raster, or of a `DataArray`, on the pixels of a cube."""
    if is_data_array(labels):
        values, own, names = planes_of(labels)
        return _on_grid(values, nodata_of(labels), own, names, options, grid)
    return values_in(open_file(Path(labels), "labels"), options, grid)


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
    names, units = _described(contents.path, variable.name, values.shape[2])
    maps = _on_grid(values, variable.nodata, own, names, options, grid)
    return replace(maps, value_units=units)


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
        rule = f"holds {listed(contents.variables)}: one array of values is needed"
        raise InputError("labels", contents.path, rule, "name it with `labels_key`")
    return fitting[0]


def _kept(variable: Variable) -> tuple[int, ...]:
    return map_axes(variable) or cube_axes(variable)


def _described(path: Path, name: str, count: int) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return names and units of planes: those that a raster gives, or the array's name."""
    rasterio = library("rasterio", "labels", "a raster")
    names: Sequence[Any] = ()
    units: tuple[str, ...] = ()
    with suppress(rasterio.errors.RasterioError), gdal(), rasterio.open(path) as file:
        names, units = file.descriptions, tuple(one or "" for one in file.units)
    if len({*names}) != count or not all(names):
        names = numbered_names(name, count)
    return names, units if len(units) == count else ()


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
        facts = {"own": by(has_target.shape), "cube": by((grid.height, grid.width))}
        raise refusal("map-of-other-size", "labels", **facts)
    rows = np.vstack([np.full((1, targets.shape[2]), np.nan), targets.reshape(has_target.size, -1)])
    findings = tuple(one for one in placed.findings if one.code != "classes-lost")
    return LabelMaps(
        (("labels", (placed.values > 0).astype(np.int64)),),
        findings=findings,
        values=rows[placed.values],
        value_names=tuple(names),
    )
