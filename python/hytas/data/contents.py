"""Describe the arrays of a file without reading its pixels."""

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
# Reads some rows and columns: (h, w, bands) of a cube, (h, w) of a map.
Window = Callable[[slice, slice], Array]


class Rows(Protocol):
    """Something that gives full rows of a cube or a map, such as an array or a `CubeReader`."""

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
        name: its name in the file.
        shape: of the array that `read` returns.
        dtype: the file's name for the element type, for messages.
        kind: "number", "complex", "text" or "other" (structures, cells, functions).
        read: returns the array, which may be a memory map; raises the errors of the format's
            library.
        window: reads a part of the array, if the format allows it; keeps no memory.
        nodata: the no-data value that the file names for this array, or None.
        geo: position on the earth, if the file gives one, or None.
        size: bytes of the array in memory; 0 if `read` maps the file.
        stored: bytes of the array in the file, at most.
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
        """Refuse an array that is much larger in memory than in the file.

        Raises:
            InputError: naming the array and both sizes.
        """
        check_inflated(self.name, self.size, self.stored)

    def values(self) -> Array:
        """Read the whole array, after a check of its size.

        Raises:
            InputError: it is much larger in memory than in the file.
            MemoryError: there is too little memory; the message names the array and its bytes.
            ValueError: the array in the file has another shape than its header says.
        """
        self.check_size()
        try:
            array = self.read()
        except MemoryError as error:
            if not self.size:  # the values lie in the file as they are
                raise
            raise MemoryError(f"{self} takes {self.size} bytes of memory") from error
        if array.shape != self.shape:
            raise ValueError(f"{self} holds an array of shape {array.shape}")
        return array


@dataclass(frozen=True)
class Contents:
    """The arrays of one file, and its other facts.

    Attributes:
        path: the file.
        format: the format's name, for messages.
        variables: all arrays.
        meta: other facts: "wavelengths" (B,) in nm, "class_names", "class_colours" (RGB by id),
            "bad_bands" (indices), "notes", "location" (a `Location`) and others. Unknown facts
            have no key.
        further: arrays of a product that are neither cube nor label map; read only by name.
    """

    path: Path
    format: str
    variables: tuple[Variable, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)
    further: tuple[Variable, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Return all files that were read: the data, and a header beside them."""
        header = self.meta.get("header")
        return (self.path,) if header is None else (self.path, Path(header))

    def get(self, name: str, argument: str) -> Variable:
        """Return the variable of that name; the error lists the names in the file."""
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
    """Return the wavelengths of a header in nm, or None and the reason why they are not usable."""
    if units.strip().lower() not in _UNITS:
        return None, f"wavelength units = {units}: nanometers or micrometers are needed"
    if len(values) != bands:
        return None, f"{len(values)} values for {bands} bands"
    found = nanometres(np.array(values), bands)
    return found, "" if found is not None else "positive finite numbers are needed"


def widths_in_nm(widths: Any, wavelengths: Array, bands: int) -> Array | None:
    """Return band widths in nm, in the unit of the header's wavelengths; None without usable ones.

    Args:
        widths: of the header.
        wavelengths: of the header, as they stand there.
        bands: of the cube.
    """
    try:
        found = np.asarray(widths, dtype=np.float64).ravel()
        longest = float(np.asarray(wavelengths, dtype=np.float64).max())
    except (TypeError, ValueError):
        return None
    if found.size != bands or not np.isfinite(found).all() or found.min() <= 0:
        return None
    return found * 1000.0 if longest < 100 else found


def nanometres(values: Array, bands: int | None = None) -> Array | None:
    """Return wavelengths in nm, or None if the values are not wavelengths.

    Optical sensors measure between 0.2 and 20 micrometres. So if the largest value is under 100,
    the values are in micrometres.
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
    """Return wavelengths in nm from a variable with a name like "wavelength", or None.

    A very long list is not read: it takes memory and cannot belong to a cube.
    """
    long = max(variable.shape, default=0)
    name = variable.name.rsplit("/", 1)[-1].lower()
    is_list = 1 < long <= MOST_WAVELENGTHS and math.prod(variable.shape) == long
    if variable.kind != "number" or not is_list or "wave" not in name or "width" in name:
        return None
    return nanometres(variable.values())


@contextmanager
def reading(argument: str, path: Path, what: str) -> Iterator[None]:
    """Turn any exception that a format's library raises on a broken file into one line.

    Raises:
        InputError: the file is truncated or corrupt, or there is too little memory to read it.
        OSError: as the system gives it (permission, input/output error).
    """
    try:
        yield
    except InputError as error:
        if error.rule or str(error).startswith(f"{argument}:"):
            raise
        named = str(error) if path.name in str(error) else f"{path}: {error}"
        raise InputError(f"{argument}: {named}") from error
    except MemoryError as error:
        told = " ".join(str(error).split()) or f"the file has {path.stat().st_size} bytes"
        raise InputError(f"{argument}: memory ran out while reading {path}: {told}") from error
    except Exception as error:
        # h5py raises OSError without errno for a truncated file; the system's own errors have one.
        # EINVAL means that a damaged file names a position that no file can have.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{argument}: {path} is truncated or corrupt: not a readable {what} ({reason[:160]})"
        ) from error
