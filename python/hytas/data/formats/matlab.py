"""Read MATLAB files: versions 4 and 5 with scipy, version 7.3 (HDF5) with h5py."""

from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.contents import Array, Contents, Variable, kind_of, wavelength_list
from hytas.data.formats.hdf5_chunks import ChunkCheck
from hytas.data.formats.hdf5_guard import check_first
from hytas.data.formats.hdf5_walk import Dataset, datasets
from hytas.data.formats.matlab_layout import Values, check

_KINDS = {"char": "text", "cell": "other", "struct": "other", "object": "other"}
_KINDS |= {"function": "other", "opaque": "other", "sparse": "other", "unknown": "other"}


def matches_v5(head: bytes, path: Path) -> bool:
    """Return whether the file is version 5, by its header, or version 4, by its suffix."""
    return head[126:128] in (b"IM", b"MI") or path.suffix.lower() == ".mat"


def read_v5(path: Path) -> Contents:
    """List the variables of a version 4 or 5 file; a variable is decompressed when it is read."""
    from scipy.io import loadmat, whosmat

    def variable(name: str, shape: tuple[int, ...], kind: str, values: Values) -> Variable:
        def read() -> Array:
            return np.asarray(loadmat(path, variable_names=[name])[name])

        known = "complex" if values.is_complex else _KINDS.get(kind, "number")
        return Variable(name, shape, kind, known, read, size=values.size, stored=values.stored)

    if path.stat().st_size < 128 and not path.read_bytes()[:4].count(0):
        raise ValueError("the header is incomplete")
    sizes = check(path)
    variables = tuple(
        variable(name, tuple(map(int, shape)), kind, values)
        for (name, shape, kind), values in zip(whosmat(path), sizes, strict=True)
    )
    return Contents(path, "MATLAB v5", variables, _wavelengths(variables))


def matches_v73(head: bytes, path: Path) -> bool:
    """Return whether the file is version 7.3: its header says so, or it is HDF5 named .mat."""
    return head.startswith(b"MATLAB 7.3") or (
        path.suffix.lower() == ".mat" and b"\x89HDF\r\n\x1a\n" in head
    )


def read_v73(path: Path) -> Contents:
    """List the datasets of a version 7.3 file, with axes in MATLAB's order.

    MATLAB's arrays are column-major and HDF5's are row-major, so (H, W, B) is stored as (B, W, H).
    """
    check_first(path, read_v73_here)
    return read_v73_here(path)


def read_v73_here(path: Path) -> Contents:
    """List the datasets as `read_v73` does, without the check in a child process."""
    import h5py

    with h5py.File(path, "r") as file:
        variables = tuple(_dataset(path, dataset) for dataset in datasets(file))
    return Contents(path, "MATLAB v7.3", variables, _wavelengths(variables))


def _dataset(path: Path, dataset: Dataset) -> Variable:
    import h5py

    name, item, dtype, size, stored = dataset
    check = ChunkCheck(name)

    def values(key: tuple[Any, ...]) -> Array:
        with h5py.File(path, "r") as file:
            data = file[name]
            check(data, key)
            return np.asarray(data[key]).transpose()

    def read() -> Array:
        return values(())

    def window(rows: slice, columns: slice) -> Array:
        return values((..., columns, rows))

    shape = tuple(map(int, item.shape[::-1]))
    kind = "text" if _is_text(item) else kind_of(dtype)
    kind = "complex" if dtype.names == ("real", "imag") else kind
    return Variable(name, shape, str(dtype), kind, read, window, size=size, stored=stored)


def _is_text(item: Any) -> bool:
    """Return whether the attributes of a dataset say that it is a text."""
    # A damaged attribute may be an array, so == would warn or return an array.
    said = item.attrs.get("MATLAB_class", b"")
    return isinstance(said, bytes) and said == b"char"


def _wavelengths(variables: tuple[Variable, ...]) -> dict[str, Any]:
    for variable in variables:
        found = wavelength_list(variable)
        if found is not None:
            return {"wavelengths": found}
    return {}
