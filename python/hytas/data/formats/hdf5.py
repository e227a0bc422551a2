"""Read HDF5 and NetCDF-4 by windows."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.contents import Array, Contents, Variable, kind_of, nanometres, wavelength_list
from hytas.data.formats.hdf5_chunks import ChunkCheck
from hytas.data.formats.hdf5_guard import check_first
from hytas.data.formats.hdf5_walk import Dataset, address, datasets, described
from hytas.data.geo import Geo
from hytas.data.limits import MOST_VARIABLES

_MAGIC = b"\x89HDF\r\n\x1a\n"
MOST_ATTRIBUTE = 2**19
"""Bytes of an attribute that is read; a list of wavelengths takes kilobytes."""
_BAND_NAMES = ("band", "wave", "spectral", "channel")


def matches(head: bytes, path: Path) -> bool:
    """Return whether HDF5's magic is at the start, or after a user block of 512 bytes."""
    return head.startswith(_MAGIC) or head[512:520] == _MAGIC


def read(path: Path) -> Contents:
    """List the datasets of a file; the band axis comes last if names or wavelengths show it."""
    check_first(path, read_here)
    return read_here(path)


def read_here(path: Path) -> Contents:
    """List the datasets as `read` does, without the check in a child process."""
    import h5py

    with h5py.File(path, "r") as file:
        found = datasets(file)
        attributes = _attributes(file)
        wavelengths = _wavelengths(found)
        places = {dataset.name: dataset.item.attrs for dataset in found}
        # The library searches the file for a name, which takes milliseconds.
        scales = {address(each.item): each.name for each in found if len(each.item.shape) < 2}
        axes = [_band_axis(each.item, wavelengths, scales) for each in found]
        variables = tuple(
            _variable(path, each, axis, places) for each, axis in zip(found, axes, strict=True)
        )
    meta = {} if wavelengths is None else {"wavelengths": wavelengths}
    return Contents(path, "HDF5", variables, {**meta, "attributes": attributes})


def open_variable(path: Path, name: str, axis: int) -> Variable:
    """Describe a dataset of a file that was listed before, whose band axis is known."""
    import h5py

    with h5py.File(path, "r") as file:
        return _variable(path, described(file, name.encode("utf-8", "surrogateescape")), axis, {})


def dataset_attributes(path: Path, name: str) -> dict[str, Any]:
    """Return the numbers and texts that a dataset of a file has as attributes."""
    import h5py

    with h5py.File(path, "r") as file:
        return _attributes(file[name.encode("utf-8", "surrogateescape")])


def _attributes(item: Any) -> dict[str, Any]:
    """The attributes that are numbers or texts, and not large, by name."""
    import h5py

    found: dict[str, Any] = {}
    for name in islice(item.attrs, MOST_VARIABLES):
        with suppress(OSError, TypeError, ValueError, RuntimeError):
            kept = h5py.h5a.open(item.id, name.encode("utf-8", "surrogateescape"))
            if kept.get_storage_size() > MOST_ATTRIBUTE:
                continue
            value = item.attrs[name]
            whole = value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size else value
            is_text = isinstance(whole, bytes | str)
            found[name] = _text(value) if is_text else np.asarray(value)
    return found


def _variable(path: Path, dataset: Dataset, axis: int, places: Mapping[str, Any]) -> Variable:
    import h5py

    name, item, dtype, size, stored = dataset
    shape = tuple(int(length) for length in item.shape)
    check = ChunkCheck(name)
    order = None if len(shape) != 3 else (*(i for i in range(3) if i != axis), axis)

    def window(rows: slice, columns: slice) -> Array:
        with h5py.File(path, "r") as file:
            data = file[name]
            key: list[slice] = [slice(None)] * len(shape)
            first, second = (0, 1) if order is None else order[:2]
            key[first], key[second] = rows, columns
            check(data, key)
            array = np.asarray(data[tuple(key)])
            return array if order is None else array.transpose(order)

    def whole() -> Array:
        with h5py.File(path, "r") as file:
            data = file[name]
            check(data)
            array = np.asarray(data[()])
            return array if order is None else array.transpose(order)

    return Variable(
        name,
        shape if order is None else tuple(shape[i] for i in order),
        str(dtype),
        kind_of(dtype),
        whole,
        window if len(shape) in (2, 3) else None,
        fill_value(item.attrs),
        place(item.attrs, places),
        size,
        stored,
    )


def _band_axis(item: Any, wavelengths: Array | None, scales: Mapping[int, str]) -> int:
    if len(item.shape) != 3:
        return 0
    names = []
    for dimension in item.dims:
        own = (scales.get(address(scale), "") for scale in dimension.values())
        texts = (dimension.label, *own)
        names.append(" ".join(text.rsplit("/", 1)[-1] for text in texts))
    return band_axis(item.shape, names, wavelengths)


def band_axis(shape: Sequence[int], names: Sequence[str], wavelengths: Array | None) -> int:
    """Return the band axis: by the name of the dimension, by the number of wavelengths, or last."""
    for axis, name in enumerate(names):
        if any(word in name.lower() for word in _BAND_NAMES):
            return axis
    if wavelengths is not None:
        fitting = [axis for axis, size in enumerate(shape) if size == wavelengths.size]
        if len(fitting) == 1:
            return fitting[0]
    return 2


def _wavelengths(found: list[Dataset]) -> Array | None:
    for dataset in found:
        values = wavelength_list(_as_it_lies(dataset)) if len(dataset.item.shape) == 1 else None
        if values is not None:
            return values
    for _, item, *_ in found:
        for key in ("wavelengths", "wavelength"):
            if len(item.shape) == 3 and key in item.attrs:
                return nanometres(item.attrs[key])
    return None


def _as_it_lies(dataset: Dataset) -> Variable:
    """Return a dataset of an open file as a variable, without turning its axes."""
    name, item, dtype, size, stored = dataset
    read = partial(item.__getitem__, ())
    kind = kind_of(dtype)
    return Variable(name, item.shape, str(dtype), kind, read, size=size, stored=stored)


def place(variable: Mapping[str, Any], variables: Mapping[str, Mapping[str, Any]]) -> Geo | None:
    """Read a variable's grid mapping (CF conventions, as GDAL writes them).

    Args:
        variable: its attributes.
        variables: the attributes of every variable, by name.
    """
    mapping = _text(variable.get("grid_mapping"))
    if not mapping or mapping not in variables:
        return None
    grid = variables[mapping]
    wkt = _text(grid.get("crs_wkt")) or _text(grid.get("spatial_ref"))
    numbers = (_text(grid.get("GeoTransform")) or "").split()
    transform = None
    with suppress(ValueError):
        if len(numbers) == 6:
            c, a, b, f, d, e = (float(number) for number in numbers)
            transform = (a, b, c, d, e, f)
    if not wkt and not transform:
        return None
    geo = Geo.from_envi({"coordinate system string": wkt}) if wkt else None
    return Geo(transform, geo.epsg if geo else None, wkt)


def fill_value(variable: Mapping[str, Any]) -> float | None:
    """Return the no-data value in a variable's attributes, or None."""
    for key in ("_FillValue", "missing_value"):
        if key in variable:
            with suppress(TypeError, ValueError, IndexError):
                return float(np.asarray(variable[key]).ravel()[0])
    return None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    value = value[0] if isinstance(value, np.ndarray) and value.size else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
