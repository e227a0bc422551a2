"""NumPy files: .npy memory-mapped, .npz by member. Pickled objects are refused."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from hytas.data.contents import Array, Contents, Variable, kind_of, nanometres


def matches_npy(head: bytes, path: Path) -> bool:
    """Tell the .npy magic."""
    return head.startswith(b"\x93NUMPY")


def read_npy(path: Path) -> Contents:
    """Describe the one array of a .npy file, named after the file."""

    def read() -> Array:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))

    def window(rows: slice, columns: slice) -> Array:
        return np.array(read()[rows, columns], order="C")

    with path.open("rb") as stream:
        shape, dtype = _header(stream)
    if not dtype.hasobject:  # those are refused when they are asked for, by what they are
        read()
    variable = Variable(path.stem, shape, str(dtype), kind_of(dtype), read, window)
    return Contents(path, "NumPy npy", (variable,))


def matches_npz(head: bytes, path: Path) -> bool:
    """Tell a zip archive named .npz, or holding nothing but .npy members."""
    if not head.startswith(b"PK\x03\x04"):
        return False
    return path.suffix.lower() == ".npz" or b".npy" in head


def read_npz(path: Path) -> Contents:
    """Describe the arrays of a .npz file by their headers; each is read when asked for."""
    variables = []
    meta: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        for member in members:
            with archive.open(member) as stream:
                shape, dtype = _header(stream)
            variables.append(_member(path, member.removesuffix(".npy"), shape, dtype))
    for variable in variables:
        if "wave" in variable.name.lower() and len(variable.shape) == 1:
            found = nanometres(variable.read()) if variable.kind == "number" else None
            meta |= {} if found is None else {"wavelengths": found}
    return Contents(path, "NumPy npz", tuple(variables), meta)


def _member(
    path: Path, name: str, shape: tuple[int, ...], dtype: "np.dtype[np.generic]"
) -> Variable:
    def read() -> Array:
        with np.load(path, allow_pickle=False) as archive:
            return np.asarray(archive[name])

    return Variable(name, shape, str(dtype), kind_of(dtype), read)


def _header(stream: IO[bytes]) -> "tuple[tuple[int, ...], np.dtype[np.generic]]":
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    return shape, dtype
