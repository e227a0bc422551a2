"""Read the cube of an `xarray.DataArray`, and put maps on its pixels.

The conventions are those of CF and rioxarray: one dimension each for rows, columns and bands,
known by name; coordinates of pixel centres; a scalar coordinate `spatial_ref` with the attributes
`crs_wkt` and `GeoTransform`; `_FillValue` for the no-data value. Only who has an array has imported
xarray, so nothing here imports it before.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.cube import FileCube, cube_in
from hytas.data.interpret.axes import BAND, COLUMN, ROW, role_of
from hytas.data.limits import listed
from hytas.data.read.netcdf import array_grid, grid_mapping
from hytas.data.record import BandFacts, Contents, Variable, attribute_value
from hytas.errors import InputError
from hytas.types import Array

_Axes = tuple[str, str, str]


@dataclass(eq=False)
class ArrayCube(FileCube):
    """A cube (H, W, B) in a `DataArray`. Rows are computed when they are read, also with dask.

    Attributes:
        array: the `DataArray` with the dimensions rows, columns, bands.
    """

    array: Any = None

    def of_pixels(
        self, values: Array, name: str, attributes: Mapping[str, Any], classes: Array | None = None
    ) -> Any:
        """Return values (H, W) or (H, W, C) as a `DataArray` on the pixels of the cube.

        Coordinates that do not vary with the band are kept. The place in `spatial_ref` is the
        grid's, also where pixels were cut out of a larger array.

        Args:
            classes: (C,) coordinate of a third dimension "class".
        """
        xarray = sys.modules["xarray"]
        rows, columns, bands = self.array.dims
        kept = {
            key: coordinate.variable.copy(deep=False)
            for key, coordinate in self.array.coords.items()
            if bands not in coordinate.dims and key != bands
        }
        reference = grid_mapping(self.array)
        if reference in kept and self.grid.transform is not None:
            a, b, c, d, e, f = self.grid.transform
            kept[reference].attrs["GeoTransform"] = " ".join(map(repr, (c, a, b, f, d, e)))
        dims = [rows, columns] if classes is None else [rows, columns, "class"]
        if classes is not None:
            kept["class"] = ("class", classes)
        result = xarray.DataArray(values, kept, dims, name, dict(attributes))
        if reference in kept:
            result.encoding["grid_mapping"] = reference
        return result


def is_data_array(value: object) -> bool:
    """Return whether `value` is an `xarray.DataArray`, without importing xarray."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(value, xarray.DataArray)


def cube_of(array: Any, argument: str = "cube") -> ArrayCube:
    """Return the cube of a `DataArray`, whose dimensions may have any order.

    Args:
        array: with a dimension each of rows, columns and bands, and others of length 1.
    """
    axes = _axes(array, argument)
    cube = array.isel({dim: 0 for dim in array.dims if dim not in axes}).transpose(*axes)
    names, grid = (ROW, COLUMN, str(axes[2])), array_grid(cube, *axes[:2])
    variable = _variable("cube", cube, names, nodata=nodata_of(array), grid=grid)
    planes = ((), (axes[2],), axes[:2])
    further = tuple(_variable(*each) for each in cube.coords.items() if each[1].dims in planes)
    path = Path(str(array.name or "scene"))
    contents = Contents(path, "DataArray", (variable,), further=further)
    own = cube_in(contents, variable, argument)
    return ArrayCube(**{one.name: getattr(own, one.name) for one in fields(own)}, array=cube)


def _variable(name: Any, array: Any, dims: Sequence[str] = (), **facts: Any) -> Variable:
    attributes = {str(key): attribute_value(value) for key, value in array.attrs.items()}
    return Variable.of_type(
        str(name),
        tuple(map(int, array.shape)),
        np.dtype(array.dtype),
        lambda key: np.asarray(array[key].values),
        dims=tuple(dims or map(str, array.dims)),
        attributes=attributes,
        **facts,
    )


def map_record(array: Any) -> Contents:
    """Return the record of a label map, or of continuous targets, in a `DataArray`.

    The targets have the texts of their coordinate as names, else that of the array.
    """
    roles = _dims(array)
    rows, columns = roles.get(ROW), roles.get(COLUMN)
    grid = None if rows is None or columns is None else array_grid(array, rows, columns)
    rest = [dim for dim in array.dims if array.sizes[dim] > 1 and dim not in (rows, columns)]
    texts = array.coords[rest[0]].values.tolist() if rest[:1] and rest[0] in array.coords else []
    if not texts or not all(isinstance(one, str) for one in texts):
        count = array.sizes[rest[0]] if rest else 1
        texts = numbered_names(str(array.name or "value"), count)
    bands = BandFacts(names=tuple(texts))
    variable = _variable("labels", array, nodata=nodata_of(array), grid=grid, bands=bands)
    return Contents(Path("labels"), "DataArray", (variable,))


def numbered_names(name: str, count: int) -> list[str]:
    """Return a name for each plane of an array."""
    return [name] if count == 1 else [f"{name} {number}" for number in range(1, count + 1)]


def nodata_of(array: Any) -> float | None:
    """Return the no-data value of a `DataArray`, as rioxarray finds it."""
    for facts, key in (
        *((array.attrs, key) for key in ("_FillValue", "missing_value", "nodata")),
        *((array.encoding, key) for key in ("_FillValue", "missing_value")),
    ):
        value = np.asarray(facts.get(key, np.nan)).ravel()
        if value.size == 1 and value.dtype.kind in "iuf" and np.isfinite(value[0]):
            return float(value[0])
    return None


def _axes(array: Any, argument: str) -> _Axes:
    roles, dims = (ROW, COLUMN, BAND), _dims(array)
    lacking = [role for role in roles if role not in dims]
    rest = [dim for dim in array.dims if dim not in dims.values() and array.sizes[dim] > 1]
    if len(lacking) == 1 == len(rest):
        dims[lacking.pop()] = rest.pop()
    if lacking or rest:
        rule = f"a DataArray with the dimensions {listed(array.dims)}: must be y, x and band"
        raise InputError(argument, rule=rule, hint="rename them with `array.rename`")
    return dims[ROW], dims[COLUMN], dims[BAND]


def _dims(array: Any) -> dict[str, Any]:
    """Return the first dimension of rows, of columns and of bands, known by their names."""
    return {role: dim for dim in reversed(array.dims) if (role := role_of(str(dim)))}
