"""HDF5 and MATLAB 7.3, which is HDF5, by h5py; NetCDF-4 goes to xarray."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import refusal
from hytas.data.limits import printable
from hytas.data.read import netcdf
from hytas.data.record import UNSCALED, Contents, Key, Variable, attribute_value, kind_of, turned
from hytas.types import Array

MAGIC = b"\x89HDF\r\n\x1a\n"
MATLAB = b"MATLAB 7.3"
_NETCDF = (".nc", ".nc4", ".cdf")


def read(path: Path) -> Contents:
    """Describe the datasets of a file."""
    import h5py

    with h5py.File(path, "r") as file:
        datasets = _datasets(file)
        # A file may have a few dimensions like those of NetCDF, and still be none.
        if _is_netcdf(path, file, datasets):
            with suppress(ValueError, KeyError, AttributeError, TypeError):
                return netcdf.read_hdf5(path)
        variables = tuple(_variable(path, name, item) for name, item in datasets.items())
        is_scaled = any("scale_factor" in map(str.lower, each.attributes) for each in variables)
        findings = (UNSCALED,) if is_scaled else ()
        attributes = {**_attributes(file), **_of_groups(file, datasets), **_texts(datasets)}
        return Contents(path, "HDF5", variables, findings, attributes=attributes)


def read_matlab(path: Path) -> Contents:
    """Describe the datasets of a MATLAB 7.3 file, with axes in MATLAB's order.

    MATLAB's arrays are column-major and HDF5's are row-major, so (H, W, B) is stored as (B, W, H).
    """
    import h5py

    with h5py.File(path, "r") as file:
        variables = [_variable(path, name, item) for name, item in _datasets(file).items()]
    upright = (each if "MATLAB_class" in each.attributes else turned(each) for each in variables)
    return Contents(path, "MATLAB v7.3", tuple(upright))


def _datasets(file: Any) -> dict[str, Any]:
    """Return h5py's datasets with values by name, except MATLAB's own, whose names begin with #."""
    import h5py

    datasets = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None and not name.startswith("#"):
            if others := list(dict.fromkeys(_other_files(item))):
                raise refusal("values-in-other-files", "", array=name, files=others)
            datasets[name] = item

    file.visititems(visit)
    return datasets


def _other_files(item: Any) -> Iterator[str]:
    """Yield the other files of a dataset's values; "." for a virtual dataset without files."""
    if item.is_virtual:
        yield from [printable(source.file_name) for source in item.virtual_sources()] or ["."]
    plan = item.id.get_create_plist()
    for number in range(plan.get_external_count()):
        yield printable(plan.get_external(number)[0].decode("utf-8", "surrogateescape"))


def _is_netcdf(path: Path, file: Any, datasets: Mapping[str, Any]) -> bool:
    if path.suffix.lower() in _NETCDF or "_NCProperties" in file.attrs:
        return True
    return any(item.attrs.get("CLASS") == b"DIMENSION_SCALE" for item in datasets.values())


def _variable(path: Path, name: str, item: Any) -> Variable:
    dtype = _dtype(item)
    attributes = _attributes(item)
    kind = "complex" if dtype.names == ("real", "imag") else kind_of(dtype)
    kind = "text" if _is_text(item) else kind
    kind = "text" if attributes.get("MATLAB_class") == "char" else kind
    shape = tuple(map(int, item.shape))
    variable = Variable.of_type(
        name,
        shape,
        dtype,
        partial(_values, path, name),
        kind=kind,
        dims=tuple(_dims(item)),
        nodata=netcdf.fill_value(attributes),
        block=tuple(map(int, item.chunks or ())),
        attributes=attributes,
    )
    return turned(variable) if "MATLAB_class" in attributes else variable


def _values(path: Path, name: str, key: Key) -> Array:
    import h5py

    with h5py.File(path, "r") as file:
        item = file[name]
        if _is_text(item):
            return np.asarray(item.asstr(errors="replace")[key]).astype(np.str_)
        return np.asarray(item[key])


def _is_text(item: Any) -> bool:
    import h5py

    return h5py.check_string_dtype(item.dtype) is not None


def _dtype(item: Any) -> "np.dtype[Any]":
    try:
        dtype: np.dtype[Any] = np.dtype(item.dtype)
        return dtype
    except TypeError:  # numpy has no such type
        return np.dtype(object)


def _dims(item: Any) -> list[str]:
    names = []
    for dimension in item.dims:
        scales = [str(scale.name).rsplit("/", 1)[-1] for scale in dimension.values()]
        names.append(dimension.label or (scales[0] if scales else ""))
    return names


def _of_groups(file: Any, datasets: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of the groups that hold cubes, named by their paths."""
    groups = {name.rpartition("/")[0] for name, item in datasets.items() if item.ndim == 3} - {""}
    return {
        f"{group}/{name}": value
        for group in groups
        for name, value in _attributes(file[group]).items()
    }


def _texts(datasets: Mapping[str, Any]) -> dict[str, str]:
    """Return the datasets that hold one short text, which are attributes in all but name."""
    texts = {}
    for name, item in datasets.items():
        if _dtype(item).kind in "SO" and item.size == 1:
            with suppress(OSError, TypeError, ValueError, RuntimeError, KeyError):
                texts[name] = attribute_value(item[()])
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def _attributes(item: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for name in item.attrs:
        with suppress(OSError, TypeError, ValueError, RuntimeError, KeyError):
            attributes[name] = attribute_value(item.attrs[name])
    return {name: value for name, value in attributes.items() if value is not None}
