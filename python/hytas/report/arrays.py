"""The .npz files of a run's report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from hytas.data.record import reading
from hytas.files import atomic_write


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
        with reading(argument, path, what), np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            if any(isinstance(one, bytes) for one in arrays.values()):  # as of a damaged header
                raise ValueError("it holds something else than arrays")
            return cls.from_arrays(arrays)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the values in the arrays of a file.

        Raises:
            KeyError, TypeError, ValueError: they are not those of `to_arrays`.
        """
        raise NotImplementedError
