"""The .npz files of a run's report: written whole, and read with a bound."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hytas.data.record import reading
from hytas.errors import InputError
from hytas.files import atomic_write

MOST_BYTES = 64 * 2**20
"""Of all arrays of a file; those that hytas writes have a few MB."""


def read_stored(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz file by name.

    Raises:
        OSError, ValueError, zipfile.BadZipFile: it is no such file.
    """
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > MOST_BYTES:
        raise InputError(f"holds {size} bytes, at most {MOST_BYTES} are read")
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


class StoredArrays:
    """Values of a report that a .npz file holds.

    Attributes:
        KIND: names of the values and of their file in messages.
    """

    KIND: ClassVar[tuple[str, str]]

    def save(self, path: Path) -> None:
        """Write a .npz file, whole or not at all."""
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **self.to_arrays())

    def to_arrays(self) -> dict[str, Any]:
        """Return the values by name."""
        return vars(self)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file of `save`."""
        argument, what = cls.KIND
        with reading(argument, path, what):
            return cls.from_arrays(read_stored(path))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the values in the arrays of a file.

        Raises:
            KeyError, TypeError, ValueError: they are not those of `to_arrays`.
        """
        raise NotImplementedError
