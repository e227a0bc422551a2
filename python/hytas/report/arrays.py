"""Read the .npz files of a run's report, with a bound."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.errors import InputError

MOST_BYTES = 64 * 2**20
"""Of all arrays of a file; those that hytas writes have a few MB."""


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
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
