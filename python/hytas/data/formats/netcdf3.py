"""Read classic NetCDF (version 3), which stores big-endian arrays without chunks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas.data.contents import Array, Contents, Variable, kind_of, nanometres
from hytas.data.formats.hdf5 import band_axis, fill_value, place
from hytas.data.limits import MOST_WAVELENGTHS, check_count, shown

MOST_NAMES = 50_000
MOST_DIMENSIONS = 32


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dimensions: tuple[str, ...]
    dtype: np.dtype[Any]
    attributes: dict[str, Any]
    values: Array | None  # of a list of wavelengths


def matches(head: bytes, path: Path) -> bool:
    """Return whether the file has the magic of the classic or the 64-bit-offset format."""
    return head[:4] in (b"CDF\x01", b"CDF\x02")


def read(path: Path) -> Contents:
    """List the variables of a file; the band axis comes last if names or wavelengths show it."""
    with _open(path) as file:
        check_count(len(file.variables), "variables")
        headers = {name: _header(name, item) for name, item in file.variables.items()}
    lists = [header.values for header in headers.values() if header.values is not None]
    wavelengths = nanometres(lists[0]) if lists else None
    places = {name: header.attributes for name, header in headers.items()}
    variables = tuple(_variable(path, name, h, wavelengths, places) for name, h in headers.items())
    meta = {} if wavelengths is None else {"wavelengths": wavelengths}
    return Contents(path, "NetCDF-3", variables, meta)


def _header(name: str, item: Any) -> _Header:
    # Copy everything: nothing may refer to the memory map once the file is closed.
    listed = "wave" in name.lower() and "width" not in name.lower() and len(item.shape) == 1
    listed = listed and item.shape[0] is not None and item.shape[0] <= MOST_WAVELENGTHS
    return _Header(
        tuple(int(size) for size in item.data.shape),
        tuple(item.dimensions),
        np.dtype(item.data.dtype),
        dict(item._attributes),
        np.array(item.data) if listed else None,
    )


def _variable(
    path: Path,
    name: str,
    header: _Header,
    wavelengths: Array | None,
    places: Mapping[str, Mapping[str, Any]],
) -> Variable:
    order = tuple(range(len(header.shape)))
    if len(order) == 3:
        axis = band_axis(header.shape, header.dimensions, wavelengths)
        order = (*(i for i in order if i != axis), axis)

    def part(*key: slice) -> Array:
        with _open(path) as file:
            return np.array(file.variables[name].data.transpose(order)[key], order="C")

    shape = tuple(header.shape[i] for i in order)
    dtype = str(header.dtype.newbyteorder("="))
    window = part if len(shape) in (2, 3) else None
    mark, geo = fill_value(header.attributes), place(header.attributes, places)
    return Variable(name, shape, dtype, kind_of(header.dtype), part, window, mark, geo)


def _open(path: Path) -> Any:
    from scipy.io import netcdf_file

    class Bounded(netcdf_file):  # type: ignore[misc] # scipy has no types
        """A file with limits for its header, which could otherwise take scipy minutes."""

        names = 0

        def _unpack_string(self) -> bytes:
            self.__dict__["names"] = self.names + 1
            check_count(self.names, "dimensions, attributes and variables", MOST_NAMES)
            return bytes(super()._unpack_string())

        def _read_var(self) -> tuple[Any, ...]:
            variable: tuple[Any, ...] = super()._read_var()
            check_count(len(variable[1]), f"dimensions of {shown(variable[0])}", MOST_DIMENSIONS)
            return variable

    return Bounded(path, "r", mmap=True)
