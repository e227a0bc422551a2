"""NetCDF and Zarr by xarray: named dimensions, coordinates, packing and places (CF)."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from hytas.data.grid import Grid, Transform, wkt_of_epsg
from hytas.data.interpret.axes import COLUMN, ROW, role_of
from hytas.data.record import UNSCALED, Contents, Key, Variable, attribute_value, kind_of
from hytas.errors import InputError
from hytas.types import Array

PACKED_NODATA = -9999.0
"""No-data value of a packed array, whose values are scaled when they are read."""
_UNEVEN = 1e-3
"""Part of a pixel by which a coordinate of an even grid may be off."""
# Values are decoded here, so that whole numbers stay whole numbers.
_AS_STORED: dict[str, Any] = {
    "mask_and_scale": False,
    "decode_times": False,
    "concat_characters": False,
    "decode_coords": "coordinates",
    "cache": False,
}


def read_hdf5(path: Path) -> Contents:
    """Describe a NetCDF-4 file, whose datasets were checked before."""
    import xarray

    groups = xarray.open_groups(path, engine="h5netcdf", phony_dims="access", **_AS_STORED)
    return _contents(path, "NetCDF-4", groups)


def read_netcdf3(path: Path) -> Contents:
    """Describe a NetCDF file of the classic formats."""
    import xarray

    dataset = xarray.open_dataset(path, engine="scipy", **_AS_STORED)
    return _contents(path, "NetCDF-3", {"/": dataset})


def read_zarr(path: Path) -> Contents:
    """Describe a Zarr store, a folder."""
    import xarray

    for name in ("zarr.json", ".zarray", ".zmetadata"):
        for metadata in path.rglob(name):
            if b'"pickle"' in metadata.read_bytes():  # numcodecs would run what is stored
                raise InputError(metadata, rule="names the codec pickle, whose values are code")
    try:
        groups = xarray.open_groups(path, engine="zarr", **_AS_STORED)
    except (KeyError, ValueError, OSError):  # an array alone, or arrays without names of dimensions
        return _plain_zarr(path)
    contents = _contents(path, "Zarr", groups)
    # A store lists its arrays in any order, each time another one.
    in_order = sorted(contents.variables, key=lambda each: each.name)
    return replace(contents, variables=tuple(in_order))


def _plain_zarr(path: Path) -> Contents:
    """Describe a Zarr store that is not of xarray: an array, or a group of arrays."""
    import zarr

    root = zarr.open(path, mode="r")
    items = [(path.stem, root)] if isinstance(root, zarr.Array) else root.members(max_depth=None)
    variables = [
        Variable.of_type(
            name,
            tuple(map(int, item.shape)),
            np.dtype(item.dtype),
            partial(_part, item),
            nodata=fill_value(dict(item.attrs)),
            block=tuple(map(int, item.chunks)),
            attributes=_plain(item.attrs),
        )
        for name, item in sorted(items, key=lambda each: each[0])
        if isinstance(item, zarr.Array)
    ]
    return Contents(path, "Zarr", tuple(variables), attributes=_plain(root.attrs))


def _part(item: Any, key: Key) -> Array:
    return np.asarray(item[key])


def fill_value(attributes: Mapping[str, Any]) -> float | None:
    """Return the no-data value among attributes, or None."""
    for key in ("_FillValue", "missing_value", "Data_Ignore_Value"):
        if key in attributes:
            with suppress(TypeError, ValueError, IndexError):
                return float(np.asarray(attributes[key]).ravel()[0])
    return None


def _unpacking(attributes: Mapping[str, Any]) -> Callable[[Array], Array] | None:
    """Return the function from stored values to factor x stored + offset; None without these.

    It returns PACKED_NODATA where a stored value is the no-data value.
    """
    pair = [np.ravel(attributes.get(*one)) for one in (("scale_factor", 1.0), ("add_offset", 0.0))]
    if not all(one.size == 1 and one.dtype.kind in "iuf" and np.isfinite(one[0]) for one in pair):
        return None
    factor, offset = (float(one[0]) for one in pair)
    nodata = fill_value(attributes)

    def unpacked(stored: Array) -> Array:
        dtype = np.result_type(np.float32, stored.dtype if stored.dtype.kind == "f" else np.float32)
        values = stored * dtype.type(factor) + dtype.type(offset)
        if nodata is not None:
            missing = np.isnan(stored) if np.isnan(nodata) else stored == nodata
            values[missing] = PACKED_NODATA
        return np.asarray(values, dtype)

    return None if (factor, offset) == (1.0, 0.0) else unpacked


def _contents(path: Path, name: str, groups: Mapping[str, Any]) -> Contents:
    own = {place: list(group.variables) for place, group in groups.items() if group.variables}
    variables = tuple(
        _variable(group[key], _name(place, str(key)))
        for place, group in ((place, _with_parents(place, groups)) for place in own)
        for key in own[place]
    )
    attributes = {
        _name(place, key): value
        for place, group in groups.items()
        for key, value in _plain(group.attrs).items()
    }
    findings = (UNSCALED,) if any(map(_has_scales, variables)) else ()
    return Contents(path, name, variables, findings, attributes=attributes)


def _has_scales(variable: Variable) -> bool:
    """Return whether an array has a scale for each band, which CF does not know."""
    scales = (variable.attributes.get(name, 1) for name in ("scale_factor", "add_offset"))
    return any(np.size(scale) > 1 for scale in scales)


def _with_parents(place: str, groups: Mapping[str, Any]) -> Any:
    """Return a group with the coordinates and the grid mappings of the groups that hold it (CF)."""
    group = groups[place]
    group = group.set_coords([name for name, each in group.variables.items() if not each.dims])
    for parent in map(str, PurePosixPath(place).parents):
        above = groups[parent].variables if parent in groups else {}
        inherited = {
            name: each
            for name, each in above.items()
            if name not in group.variables
            and (not each.dims or (each.dims == (name,) and group.sizes.get(name) == each.size))
        }
        group = group.assign_coords(inherited)
    return group


def _name(group: str, name: str) -> str:
    return f"{group.strip('/')}/{name}".lstrip("/")


def _variable(array: Any, name: str) -> Variable:
    attributes = _plain({**array.encoding, **array.attrs})
    dims = tuple("" if str(dim).startswith("phony_dim_") else str(dim) for dim in array.dims)
    stored_as = array.dtype
    if stored_as.kind == "i" and str(attributes.get("_Unsigned")).lower() == "true":
        stored_as = np.dtype(stored_as.str.replace("i", "u"))  # the classic format has no others
        if (fill := fill_value(attributes)) is not None:
            attributes["_FillValue"] = fill % 2.0 ** (8 * stored_as.itemsize)
    packing = _unpacking(attributes) if array.dtype.kind in "iuf" else None
    dtype = stored_as if packing is None else packing(np.empty(0, stored_as)).dtype
    is_text = array.dtype.kind == "O"
    shape = tuple(map(int, array.shape))

    def values(key: Key) -> Array:
        stored_values = np.asarray(array.variable[key].values)
        if is_text:
            return stored_values.astype(np.str_)
        stored_values = stored_values.view(stored_as)
        return stored_values if packing is None else packing(stored_values)

    nodata, chunks = fill_value(attributes), array.encoding.get("preferred_chunks", {})
    return Variable.of_type(
        name,
        shape,
        dtype,
        values,
        kind="text" if is_text else kind_of(dtype),
        dims=dims,
        nodata=PACKED_NODATA if packing is not None and nodata is not None else nodata,
        grid=_grid(array),
        block=tuple(int(chunks[dim]) for dim in array.dims if dim in chunks),
        attributes=attributes,
    )


def _grid(array: Any) -> Grid | None:
    """Return the grid of an array by its coordinates or its grid mapping, or None."""
    if not 2 <= array.ndim <= 4:
        return None
    dims = {role_of(str(dim)): dim for dim in reversed(array.dims)}
    # Without names only a stored transform gives the location.
    named = ROW in dims and COLUMN in dims
    rows, columns = (dims[ROW], dims[COLUMN]) if named else array.dims[:2]
    grid = array_grid(array, rows, columns)
    if grid.transform is None and grid.crs is None:
        return None
    units = [
        str(array.coords[dim].attrs.get("units", "")) if dim in array.coords else ""
        for dim in (rows, columns)
    ]
    are_degrees = units[0].startswith("degrees_n") and units[1].startswith("degrees_e")
    return replace(grid, crs=wkt_of_epsg(4326)) if grid.crs is None and are_degrees else grid


def array_grid(array: Any, rows: str, columns: str) -> Grid:
    """Return where the pixels of a `DataArray` lie, by its coordinates and `spatial_ref`."""
    reference = array.coords.get(grid_mapping(array))
    facts = {} if reference is None else reference.attrs
    crs = next((str(facts[key]) for key in ("crs_wkt", "spatial_ref") if facts.get(key)), None)
    stored = _stored_transform(facts.get("GeoTransform"))
    size = (None, None) if stored is None else (stored[0], stored[4])
    x, y = _even(array, columns, size[0]), _even(array, rows, size[1])
    turned = stored is not None and (stored[1] != 0 or stored[3] != 0)
    transform = stored
    # An array that was cut keeps the text of the whole one, so coordinates come first.
    if x is not None and y is not None and not turned:
        transform = (x[1], 0.0, x[0], 0.0, y[1], y[0])
    return Grid(transform, crs, array.sizes[rows], array.sizes[columns])


def grid_mapping(array: Any) -> str:
    """Return the name of the coordinate that holds the place of an array."""
    named = array.encoding.get("grid_mapping", array.attrs.get("grid_mapping"))
    return str(named) if named is not None and named in array.coords else "spatial_ref"


def _stored_transform(text: Any) -> Transform | None:
    """Return the transform in GDAL's order of numbers: c, a, b, f, d, e."""
    try:
        c, a, b, f, d, e = map(float, str(text).split())
    except ValueError:
        return None
    return (a, b, c, d, e, f) if np.isfinite((a, b, c, d, e, f)).all() else None


def _even(array: Any, dim: str, size: float | None) -> tuple[float, float] | None:
    """Return the outer edge of the first pixel and the step of a coordinate, if it is even."""
    # xarray makes up a coordinate for a dimension without one.
    if dim not in array.coords:
        return None
    coordinate = array.coords[dim]
    if coordinate.dims != (dim,) or coordinate.dtype.kind not in "iuf":
        return None
    centres = np.asarray(coordinate.values, np.float64)
    if len(centres) == 1:
        return None if size is None else (float(centres[0]) - size / 2, size)
    step = float(centres[-1] - centres[0]) / (len(centres) - 1)
    even = centres[0] + step * np.arange(len(centres))
    if step == 0 or not np.abs(centres - even).max() < _UNEVEN * abs(step):
        return None
    return float(centres[0]) - step / 2, step


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    values = {str(name): attribute_value(value) for name, value in attributes.items()}
    return {name: value for name, value in values.items() if value is not None}
