"""Read the cube of an `xarray.DataArray`, and put maps on its pixels.

The conventions are those of CF and rioxarray: one dimension each for rows, columns and bands,
known by name; coordinates of pixel centres; a scalar coordinate `spatial_ref` with the attributes
`crs_wkt` and `GeoTransform`; `_FillValue` for the no-data value. Only who has an array has imported
xarray, so nothing here imports it before.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import Finding, Noted
from hytas.data.grid import Grid, Transform
from hytas.data.interpret.axes import BAND, COLUMN, ROW, role_of
from hytas.data.interpret.bands import band_facts
from hytas.data.interpret.wavelengths import in_descriptions, nanometres
from hytas.data.record import BandFacts, Contents, Variable, plain
from hytas.errors import InputError
from hytas.types import Array, Floats

_Axes = tuple[str, str, str]

_UNEVEN = 1e-3
"""Part of a pixel by which a coordinate of an even grid may be off."""


@dataclass(frozen=True, eq=False)
class ArrayCube(Noted):
    """A cube (H, W, B) in a `DataArray`. Rows are computed when they are read, also with dask.

    Attributes:
        array: the `DataArray` with the dimensions rows, columns, bands.
    """

    array: Any
    grid: Grid
    facts: BandFacts
    nodata: float | None
    findings: tuple[Finding, ...] = ()

    @property
    def wavelengths(self) -> Floats | None:
        """Return the band centres in nm, (B,), or None."""
        return self.facts.wavelengths

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, bands."""
        height, width, bands = self.array.shape
        return height, width, bands

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype

    def __getitem__(self, rows: slice, /) -> Array:
        """Return rows (h, W, B)."""
        return np.ascontiguousarray(self.array[rows].values)

    def whole(self) -> Array:
        """Return all rows (H, W, B)."""
        return self[:]

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
        reference = _reference(self.array)
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
    lists = {key: each for key, each in cube.coords.items() if each.dims == (axes[2],)}
    variable = _variable("cube", cube[:1, :1])
    further = [_variable(*each) for each in lists.items()]
    further += _described(array, axes[2])
    contents = Contents(Path(argument), "DataArray", (variable, *further))
    facts, findings = band_facts(contents, variable, 2)
    return ArrayCube(cube, array_grid(cube, *axes[:2]), facts, nodata_of(array), tuple(findings))


def _described(array: Any, band: Any) -> list[Variable]:
    """Return the wavelengths in descriptions of bands, where rioxarray keeps those of a GeoTIFF."""
    texts = array.attrs.get("long_name")
    if not isinstance(texts, tuple | list) or len(texts) != array.sizes[band]:
        return []
    named, unit = in_descriptions([str(text) for text in texts])
    values, _ = nanometres(named or [], unit)
    facts = {"dims": (str(band),), "attributes": {"units": "nm"}}
    return [] if values is None else [Variable.of_array("wavelength", values, **facts)]


def _variable(name: Any, array: Any) -> Variable:
    attributes = {str(key): plain(value) for key, value in array.attrs.items()}
    dims = tuple(map(str, array.dims))
    return Variable.of_array(str(name), array.values, dims=dims, attributes=attributes)


def map_of(array: Any) -> tuple[Array, Grid]:
    """Return the values (H, W) of a label map in a `DataArray`, and where its pixels lie.

    NaN and the no-data value become 0.
    """
    rows, columns = (_dims(array).get(role) for role in (ROW, COLUMN))
    rest = [dim for dim in array.dims if array.sizes[dim] > 1 and dim not in (rows, columns)]
    if rows is None or columns is None or rest:
        rule = f"a label map with the dimensions {_listed(array.dims)}: must be y and x"
        raise InputError("labels", rule=rule, hint="rename them with `array.rename`")
    flat = array.isel({dim: 0 for dim in array.dims if dim not in (rows, columns)})
    flat = flat.transpose(rows, columns)
    values = np.asarray(flat.values)
    if values.dtype.kind not in "iufb":
        raise InputError("labels", rule=f"is of type {values.dtype}; whole numbers are needed")
    empty = values == nodata_of(array)
    if values.dtype.kind == "f":
        empty |= np.isnan(values)
    return np.where(empty, 0, values), array_grid(flat, rows, columns)


def planes_of(array: Any) -> tuple[Array, Grid, Sequence[str]]:
    """Return values (H, W, T) of a `DataArray`, where its pixels lie, and names of the planes."""
    rows, columns = (_dims(array).get(role) for role in (ROW, COLUMN))
    rest = [dim for dim in array.dims if array.sizes[dim] > 1 and dim not in (rows, columns)]
    if rows is None or columns is None or len(rest) > 1:
        rule = f"values with the dimensions {_listed(array.dims)}: must be y, x and perhaps another"
        raise InputError("labels", rule=rule, hint="rename them with `array.rename`")
    flat = array.isel({dim: 0 for dim in array.dims if dim not in (rows, columns, *rest)})
    flat = flat.transpose(rows, columns, *rest)
    if flat.dtype.kind not in "iufb":
        raise InputError("labels", rule=f"is of type {flat.dtype}; numbers are needed")
    names = [str(array.name or "value")]
    if rest:
        texts = flat.coords[rest[0]].values.tolist() if rest[0] in flat.coords else []
        are_texts = bool(texts) and all(isinstance(one, str) for one in texts)
        names = texts if are_texts else numbered_names(names[0], array.sizes[rest[0]])
    values = np.asarray(flat.values)
    return values.reshape(*values.shape[:2], -1), array_grid(flat, rows, columns), names


def numbered_names(name: str, count: int) -> list[str]:
    """Return a name for each plane of an array."""
    return [name] if count == 1 else [f"{name} {number}" for number in range(1, count + 1)]


def array_grid(array: Any, rows: str, columns: str) -> Grid:
    """Return where the pixels of a `DataArray` lie, by its coordinates and `spatial_ref`."""
    reference = array.coords.get(_reference(array))
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
        rule = f"a DataArray with the dimensions {_listed(array.dims)}: must be y, x and band"
        raise InputError(argument, rule=rule, hint="rename them with `array.rename`")
    return dims[ROW], dims[COLUMN], dims[BAND]


def _dims(array: Any) -> dict[str, Any]:
    """Return the first dimension of rows, of columns and of bands, known by their names."""
    return {role: dim for dim in reversed(array.dims) if (role := role_of(str(dim)))}


def _listed(dims: Sequence[Any]) -> str:
    return ", ".join(map(str, dims))


def _reference(array: Any) -> str:
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
