"""What a file holds, told without reading its pixels."""

import errno
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hytas.data.geo import Geo
from hytas.data.limits import MOST_WAVELENGTHS, check_inflated, listed, shown
from hytas.errors import InputError

Array = npt.NDArray[Any]
# Reads the rows and columns given: (h, w, bands) of a cube, (h, w) of a map.
Window = Callable[[slice, slice], Array]


class Rows(Protocol):
    """Full rows of a cube or a map: an array, a memory map, a `CubeReader`, a journal's."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width, and the bands of a cube."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""

    def __getitem__(self, rows: slice, /) -> Array:
        """Rows, (h, W, bands) or (h, W)."""


@dataclass(frozen=True)
class Variable:
    """One array of a file.

    Attributes:
        name: as the file names it.
        shape: as `read` returns it.
        dtype: the file's name for the element type, for people to read.
        kind: "number", "complex", "text" or "other" (structures, cells, functions).
        read: returns the array; may be a memory map; raises whatever the format's library does.
        window: reads part of it, where the format can; holds no memory afterwards.
        nodata: the value that the file names for no data in this array, or None.
        geo: where the file says that it lies, or None.
        size: bytes that `read` takes in memory; 0 where the values lie in the file as they are.
        stored: bytes that they take in the file, at most.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str
    read: Callable[[], Array]
    window: Window | None = None
    nodata: float | None = None
    geo: Geo | None = None
    size: int = 0
    stored: int = 0

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"{shown(self.name)} ({shape} {shown(self.dtype)})"

    def check_size(self) -> None:
        """Refuse to read what is much larger in memory than in the file.

        Raises:
            InputError: it is, which tells names and sizes.
        """
        check_inflated(self.name, self.size, self.stored)

    def values(self) -> Array:
        """Read it whole, if its size is in proportion and as told.

        Raises:
            InputError: much larger in memory than in the file.
            ValueError: the array in the file is not of the shape that its header tells.
        """
        self.check_size()
        array = self.read()
        if array.shape != self.shape:
            raise ValueError(f"{self} holds an array of shape {array.shape}")
        return array


@dataclass(frozen=True)
class Contents:
    """The arrays of one file and what else it says.

    Attributes:
        path: the file.
        format: the format's name, for people to read.
        variables: every array.
        meta: what else is described: "wavelengths" (B,) in nm, "class_names", "class_colours" (RGB
            by id), "bad_bands" (indices), "notes" (remarks), "location" (a `Location`) ...; absent
            keys are unknown.
        further: arrays of a product that are neither cube nor label map; read only by name.
    """

    path: Path
    format: str
    variables: tuple[Variable, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)
    further: tuple[Variable, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that this is read from: the data, and a header beside them."""
        header = self.meta.get("header")
        return (self.path,) if header is None else (self.path, Path(header))

    def get(self, name: str, argument: str) -> Variable:
        """Return the variable of that name, or refuse it with the names there are."""
        for variable in (*self.variables, *self.further):
            if variable.name == name:
                return variable
        names = listed(self.variables, len(self.variables))
        raise InputError(f"{argument}: no variable {name!r} in {self.path}, which holds {names}")


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the `Variable.kind` of a numpy type."""
    return {"b": "number", "i": "number", "u": "number", "f": "number", "c": "complex"}.get(
        dtype.kind, "text" if dtype.kind in "SU" else "other"
    )


_UNITS = {"", "unknown", "nm", "um", "µm", "μm", "micron", "microns"}
_UNITS |= {f"nanomet{end}" for end in ("er", "ers", "re", "res")}
_UNITS |= {f"micromet{end}" for end in ("er", "ers", "re", "res")}


def header_nanometres(values: list[str], bands: int, units: str) -> tuple[Array | None, str]:
    """Return the wavelengths in nm that a header lists, or None and why they cannot be used."""
    if units.strip().lower() not in _UNITS:
        return None, f"wavelength units = {units}: nanometers or micrometers needed"
    if len(values) != bands:
        return None, f"{len(values)} values for {bands} bands"
    found = nanometres(np.array(values), bands)
    return found, "" if found is not None else "positive finite numbers needed"


def nanometres(values: Array, bands: int | None = None) -> Array | None:
    """Return wavelengths in nm, told from micrometres by their size, or None if they are none.

    Optical sensors measure between 0.2 and 20 micrometres, so a largest value under 100 is in
    micrometres.
    """
    try:
        wavelengths = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return None
    if wavelengths.size == 0 or (bands is not None and wavelengths.size != bands):
        return None
    if not np.isfinite(wavelengths).all() or wavelengths.min() <= 0:
        return None
    return wavelengths * 1000.0 if wavelengths.max() < 100 else wavelengths


def wavelength_list(variable: Variable) -> Array | None:
    """Return the wavelengths in nm that a variable named like wavelengths lists, or None.

    Only a list that may belong to a cube is read: a long one costs memory, and fits none.
    """
    long = max(variable.shape, default=0)
    name = variable.name.rsplit("/", 1)[-1].lower()
    is_list = 1 < long <= MOST_WAVELENGTHS and math.prod(variable.shape) == long
    if variable.kind != "number" or not is_list or "wave" not in name or "width" in name:
        return None
    return nanometres(variable.values())


@contextmanager
def reading(argument: str, path: Path, what: str) -> Iterator[None]:
    """Turn whatever a format's library raises on a broken file into one line.

    Raises:
        InputError: the file is truncated or corrupt.
        OSError: as the system gives it (permission, input/output error).
    """
    try:
        yield
    except InputError as error:
        if str(error).startswith(f"{argument}:"):
            raise
        named = str(error) if path.name in str(error) else f"{path}: {error}"
        raise InputError(f"{argument}: {named}") from error
    except Exception as error:
        # h5py raises OSError without errno for a truncated file; the system's own carry one. A
        # place that no file can have, which damage makes up, is an invalid argument.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{argument}: {path} is truncated or corrupt: not a readable {what} ({reason[:160]})"
        ) from error
