"""Read NumPy files: .npy as a memory map, .npz by member. Pickled objects are refused."""

import io
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from hytas.data.contents import Array, Contents, Variable, kind_of, wavelength_list
from hytas.data.limits import bytes_of, check_count

MOST_HEADER = 2**16
"""Bytes of an array's header, at most; numpy itself refuses texts of more than 10,000."""


def matches_npy(head: bytes, path: Path) -> bool:
    """Return whether the file has the magic of .npy."""
    return head.startswith(b"\x93NUMPY")


def read_npy(path: Path) -> Contents:
    """Describe the array of a .npy file; its name is that of the file."""

    def read() -> Array:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))

    def window(rows: slice, columns: slice) -> Array:
        return np.array(read()[rows, columns], order="C")

    with path.open("rb") as stream:
        shape, dtype = _header(stream)
    if not dtype.hasobject:  # objects are refused when the array is read
        read()
    variable = Variable(path.stem, shape, str(dtype), kind_of(dtype), read, window)
    return Contents(path, "NumPy npy", (variable,))


def matches_npz(head: bytes, path: Path) -> bool:
    """Return whether the file is a zip archive named .npz, or with .npy members only."""
    if not head.startswith(b"PK\x03\x04"):
        return False
    return path.suffix.lower() == ".npz" or b".npy" in head


def read_npz(path: Path) -> Contents:
    """Describe the arrays of a .npz file by their headers; an array is read on demand."""
    variables = []
    with zipfile.ZipFile(path) as archive:
        members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
        check_count(len(members), "arrays")
        for member in members:
            with archive.open(member) as stream:
                shape, dtype = _header(stream)
            stored = min(member.compress_size, path.stat().st_size)
            variables.append(_member(path, member.filename, shape, dtype, stored))
    found = (wavelength_list(variable) for variable in variables if len(variable.shape) == 1)
    wavelengths = next((values for values in found if values is not None), None)
    meta = {} if wavelengths is None else {"wavelengths": wavelengths}
    return Contents(path, "NumPy npz", tuple(variables), meta)


def _member(
    path: Path, member: str, shape: tuple[int, ...], dtype: np.dtype[Any], stored: int
) -> Variable:
    name = member.removesuffix(".npy")

    def read() -> Array:
        with np.load(path, allow_pickle=False) as archive:
            return np.asarray(archive[name])

    size = bytes_of(shape, dtype.itemsize)
    return Variable(name, shape, str(dtype), kind_of(dtype), read, size=size, stored=stored)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    # A header may declare gigabytes of text, and a zip archive may produce them.
    head = io.BytesIO(stream.read(MOST_HEADER))
    version = np.lib.format.read_magic(head)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(head)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(head)
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, dtype
