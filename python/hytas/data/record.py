"""The record of a file: its arrays with named dimensions, bands, grid and no-data value.

Readers make records. Whatever comes after a record does not ask for the file's format.
"""

import errno
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, Noted, note, refusal, warning
from hytas.data.grid import Grid
from hytas.data.limits import by, printable
from hytas.errors import InputError
from hytas.types import Array, Floats, Mask

UNSCALED = note("values-unscaled", case="scale")
"""Finding on a file whose values are used without the scale that it names."""
OPACITY = note("opacity", case="mask")
"""Finding on a picture with a mask, or a file whose last band is taken for one."""
OPACITY_IS_A_BAND = warning("opacity", case="band")
OPAQUE = (0, 255, 65535)
"""Values of a mask; 65535 in 16 bits."""
OPACITY_ROWS = 16
"""Rows in which values are compared with these, at most."""
Key = tuple[slice, ...]
"""A part of an array: one slice for each dimension, with start and stop inside the array."""


class Rows(Protocol):
    """Something that gives full rows of a cube or a map, such as an array or a `FileCube`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width, and the bands of a cube."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""

    def __getitem__(self, rows: slice, /) -> Array:
        """Rows, (h, W, bands) or (h, W)."""


@dataclass(frozen=True, eq=False)
class BandFacts:
    """The facts of a file about its bands.

    Attributes:
        wavelengths: (B,) centres in nm, or None.
        fwhm: (B,) full widths at half maximum in nm, or None.
        good: (B,) False for bands that the file marks as bad; None if it marks none.
        names, units: of the values of each band; () if the file names none.
    """

    wavelengths: Floats | None = None
    fwhm: Floats | None = None
    good: Mask | None = None
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @property
    def bad_bands(self) -> tuple[int, ...]:
        """Return the indices of the bands that are marked as bad."""
        return () if self.good is None else tuple(np.flatnonzero(~self.good).tolist())

    def ordered(self, order: npt.NDArray[np.int64]) -> Self:
        """Return the facts of the bands in another order."""
        return type(self)(
            None if self.wavelengths is None else self.wavelengths[order],
            None if self.fwhm is None else self.fwhm[order],
            None if self.good is None else self.good[order],
        )


@dataclass(frozen=True, eq=False)
class Variable:
    """One array of a file.

    Attributes:
        dtype: the file's name of the element type.
        kind: "number", "complex", "text" or "other" (structures, cells, functions).
        read: returns a part of the array; raises the errors of the reader's library.
        dims: names of the dimensions, "" where unknown; () if the format has none.
        bands: facts of the bands, if the file gives them together with the array.
        attributes: numbers (as arrays) and texts that the file keeps with the array.
        raw: place of uncompressed values in a file, or None.
        has_parts: whether a part can be read without the rest.
        block: shape of the parts that are decoded as a whole; () if values are read one by one.
        is_colour: whether its bands are red, green and blue of a picture.
        left_out: lines behind the last one that the file holds and that show no scene.
        has_alpha: whether the last band of a picture is tagged as its opacity.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str
    read: Callable[[Key], Array] = field(repr=False)
    dims: tuple[str, ...] = ()
    bands: BandFacts | None = None
    nodata: float | None = None
    grid: Grid | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    raw: "Raw | None" = None
    has_parts: bool = True
    block: tuple[int, ...] = ()
    is_colour: bool = False
    has_alpha: bool = False
    left_out: int = 0

    @classmethod
    def of_type(
        cls,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        read: Callable[[Key], Array],
        **facts: Any,
    ) -> Self:
        """Return an array of a type of numpy; `facts` are other attributes."""
        return cls(name, shape, str(dtype), read=read, **{"kind": kind_of(dtype), **facts})

    @classmethod
    def of_array(cls, name: str, array: Array, **facts: Any) -> Self:
        """Return an array in memory as a variable; `facts` are other attributes."""
        return cls.of_type(name, array.shape, array.dtype, array.__getitem__, **facts)

    def __str__(self) -> str:
        shape = by(self.shape) or "one"
        return f"{printable(self.name)} ({shape} {printable(self.dtype)})"

    @property
    def last_name(self) -> str:
        """Return the name without its groups or structures, in lower case."""
        return self.name.replace(".", "/").rsplit("/", 1)[-1].lower()

    def values(self) -> Array:
        """Read the whole array.

        Raises:
            MemoryError: there is too little memory; the message names the array.
            ValueError: the array in the file has another shape than its header says.
        """
        return self.part(whole_key(self.shape))

    def part(self, key: Key) -> Array:
        """Read a part of the array, in native byte order; errors are those of `values`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array = self.read(key)
        except MemoryError as error:
            raise MemoryError(str(self)) from error
        wanted = tuple(
            len(range(*each.indices(n))) for each, n in zip(key, self.shape, strict=True)
        )
        if array.shape != wanted:
            raise ValueError(f"{self} holds an array of shape {array.shape}")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return array


@dataclass(frozen=True)
class Raw:
    """Values that lie in a file one after another.

    They are read by plain reads: pages of a memory map would count as memory of the process, far
    more of them than are read. GDAL takes 1.3 to 3.4 times as long for strips and whole cubes of
    ENVI's three interleaves, and 4 to 80 times for patches (400 MB, the best of three).

    Attributes:
        dtype: as stored, with its byte order.
        offset: of the first value, in bytes.
        shape: in the order of the file.
        axes: of the file, for each dimension of the variable.
    """

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def mapped(self) -> Array:
        """Return a memory map, its dimensions in the order of the variable."""
        memory = np.memmap(self.path, np.dtype(self.dtype), "r", self.offset, self.shape)
        return memory.transpose(self.axes)

    def read(self, key: Key) -> Array:
        """Return a part, its dimensions in the order of the variable.

        Raises:
            ValueError: the file ends too early.
        """
        parts = [slice(0, size) for size in self.shape]
        for axis, part in zip(self.axes, key, strict=True):
            parts[axis] = part
        dtype = np.dtype(self.dtype)
        result = np.empty([part.stop - part.start for part in parts], dtype)
        outer = self._axis_of_pieces(parts)
        steps = [math.prod(self.shape[axis + 1 :]) for axis in range(len(parts))]
        with Path(self.path).open("rb") as file:
            for index in np.ndindex(result.shape[:outer]):
                first = [parts[axis].start + place for axis, place in enumerate(index)]
                first.append(parts[outer].start)
                start = sum(at * step for at, step in zip(first, steps, strict=False))
                file.seek(self.offset + start * dtype.itemsize)
                size = result.shape[outer] * steps[outer] * dtype.itemsize
                data = file.read(size)
                if len(data) < size:
                    raise ValueError(f"the file ends {size - len(data)} bytes too early")
                piece = np.frombuffer(data, dtype).reshape(-1, *self.shape[outer + 1 :])
                result[index] = piece[(slice(None), *parts[outer + 1 :])]
        return result.transpose(self.axes)

    def _axis_of_pieces(self, parts: Sequence[slice]) -> int:
        """Return the axis of which a range is read at once, with all of the axes behind it.

        Of the last axis a part is kept, so that lines are read as a whole.
        """
        axis = max(0, len(parts) - 2)
        while axis > 0 and parts[axis] == slice(0, self.shape[axis]):
            axis -= 1
        return axis


@dataclass(frozen=True)
class Contents(Noted):
    """The arrays of one file, or of files that belong together, and their other facts.

    Attributes:
        class_names: by label, of a label map; empty if the file names none.
        class_colours: RGB by label; empty if the file has none.
        attributes: numbers (as arrays) and texts of the whole file.
        further: arrays of a product that are neither cube nor label map; read only by name.
        is_picture: whether it is of a format for pictures, in which colours are the values.
    """

    path: Path
    format: str
    variables: tuple[Variable, ...]
    findings: tuple[Finding, ...] = ()
    class_names: Mapping[int, str] = field(default_factory=dict)
    class_colours: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    further: tuple[Variable, ...] = ()
    sidecars: tuple[Path, ...] = ()
    is_picture: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """Return all files that were read."""
        return (self.path, *self.sidecars)

    def read_by(self, parts: Sequence[Callable[[Key], Array]]) -> Self:
        """Return the record with other functions that read parts, one for each variable."""
        variables = zip(self.variables, parts, strict=True)
        return replace(self, variables=tuple(replace(v, read=part) for v, part in variables))

    def find(self, name: str) -> Variable | None:
        """Return the variable of that name, or None."""
        for variable in (*self.variables, *self.further):
            if variable.name == name:
                return variable
        return None

    def get(self, name: str, argument: str) -> Variable:
        """Return the variable of that name.

        Raises:
            InputError: there is none; the message lists the names in the file.
        """
        variable = self.find(name)
        if variable is None:
            names = [*map(str, self.variables)]
            raise refusal("missing", argument, self.path, "variable", name=name, names=names)
        return variable


def turned(variable: Variable) -> Variable:
    """Return an array with its axes in the opposite order."""

    def values(key: Key) -> Array:
        return variable.read(key[::-1]).transpose()

    shape, block = variable.shape[::-1], variable.block[::-1]
    return replace(variable, shape=shape, read=values, dims=variable.dims[::-1], block=block)


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the `Variable.kind` of a numpy type."""
    return {"b": "number", "i": "number", "u": "number", "f": "number", "c": "complex"}.get(
        dtype.kind, "text" if dtype.kind in "SU" else "other"
    )


def number(variable: Variable | None) -> Floats | None:
    """Return the values of a list of numbers (n,), or None if the variable is none."""
    if variable is None or variable.kind != "number":
        return None
    if math.prod(variable.shape) != max(variable.shape, default=0):
        return None
    return np.asarray(variable.values(), np.float64).ravel()


def attribute_value(value: Any) -> Any:
    """Return an attribute as a text, several with commas between them, or as an array of numbers.

    A mapping is returned as JSON; None for anything else.
    """
    if isinstance(value, Mapping):
        return json.dumps(value, default=str)
    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        return array
    texts = [
        each.decode("utf-8", "replace") if isinstance(each, bytes) else each
        for each in array.ravel().tolist()
    ]
    return ",".join(texts) if texts and all(isinstance(each, str) for each in texts) else None


def text_of(attributes: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of the attributes that is a text with content, or None."""
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def numbers_of(attributes: Mapping[str, Any], name: str, count: int | None = None) -> Floats | None:
    """Return an attribute as numbers (n,), from an array or a text; None for anything else."""
    value = attributes.get(name)
    try:
        values = value.replace(",", " ").split() if isinstance(value, str) else value
        numbers = np.asarray(values, np.float64).ravel()
    except (TypeError, ValueError):
        return None
    wanted = numbers.size > 0 if count is None else numbers.size == count
    return numbers if wanted and value is not None else None


def with_nan(variable: Variable, nodata_values: Sequence[float | None]) -> Variable:
    """Return an array (bands, rows, columns) with its no-data value.

    Bands with no-data values of their own become floats, in which NaN means no data: the value of
    one band may be a measurement in another.
    """
    distinct = {str(nodata): nodata for nodata in nodata_values}
    if len(distinct) == 1:
        return replace(variable, nodata=nodata_values[0])
    dtype = np.result_type(variable.dtype, np.float32)

    def values(key: Key) -> Array:
        data = variable.read(key)
        result = data.astype(dtype)
        for band, nodata in zip(range(data.shape[0]), nodata_values[key[0]], strict=False):
            if nodata is not None:
                result[band][data[band] == nodata] = np.nan
        return result

    return replace(variable, dtype=str(dtype), read=values, nodata=None)


def masked(variable: Variable, mask: Callable[[Key], Array]) -> Variable:
    """Return an array (bands, rows, columns) as floats, NaN where its mask (rows, columns) is 0."""
    dtype = np.result_type(variable.dtype, np.float32)

    def values(key: Key) -> Array:
        data = variable.read(key).astype(dtype)
        data[:, mask(key) == 0] = np.nan
        return data

    return replace(variable, dtype=str(dtype), read=values)


def with_alpha(variable: Variable, mask: Callable[[Key], Array]) -> Variable:
    """Return a picture (bands, rows, columns) with its mask (rows, columns) as one more band."""

    def values(key: Key) -> Array:
        data = variable.read((slice(0, variable.shape[0]), *key[1:]))
        return np.concatenate([data, mask(key)[None].astype(data.dtype)])[key[0]]

    shape = (variable.shape[0] + 1, *variable.shape[1:])
    return replace(variable, shape=shape, read=values, has_alpha=True)


def is_opacity(variable: Variable) -> bool:
    """Return whether the last of (bands, rows, columns) is a mask, by some of its blocks.

    GDAL tags the fourth of any four bands of bytes as opacity.
    """
    bands, height, width = variable.shape
    wide = variable.block[2] if variable.block else width
    rows = np.unique(np.linspace(0, height - 1, OPACITY_ROWS).astype(int)).tolist()
    for number, row in enumerate(rows):
        left = number * width // len(rows) // wide * wide
        columns = slice(left, min(left + wide, width))
        values = variable.part((slice(bands - 1, bands), slice(row, row + 1), columns))
        if not np.isin(values, OPAQUE).all():
            return False
    return True


def without_alpha(variable: Variable) -> Variable:
    """Return the bands of a picture (bands, rows, columns), NaN where its opacity is 0."""
    last = variable.shape[0] - 1
    bands = None if variable.bands is None else variable.bands.ordered(np.arange(last))
    shape = (last, *variable.shape[1:])
    colours = replace(variable, shape=shape, bands=bands, is_colour=False, has_alpha=False)
    return masked(colours, lambda key: variable.read((slice(last, last + 1), *key[1:]))[0])


def load(variable: Variable, contents: Contents, argument: str) -> Array:
    """Return the values of a whole variable; an error names the file."""
    with reading(argument, contents.path, f"{contents.format} file"):
        return variable.values()


def require_number(variable: Variable, contents: Contents, argument: str) -> None:
    """Refuse an array that holds no real numbers."""
    if variable.kind != "number":
        facts = {"array": str(variable), "kind": variable.kind}
        raise refusal("array-unfit", argument, contents.path, "kind", **facts)


@contextmanager
def naming(argument: str, path: Path | str) -> Iterator[None]:
    """Name the file in errors about what it holds."""
    try:
        yield
    except InputError as error:
        if error.rule and error.value is not None:
            raise
        rule = error.rule or error.argument  # without a rule the whole message is one text
        named = error.argument if error.rule else ""
        of_file = InputError(named or argument, path, rule, error.hint)
        of_file.code = error.code
        raise of_file from error


@contextmanager
def reading(argument: str, path: Path | str, what: str) -> Iterator[None]:
    """Turn any exception that a reader's library raises on a broken file into one line."""
    try:
        with naming(argument, path):
            yield
    except InputError:
        raise
    except MemoryError as error:
        message = " ".join(str(error).split()) or f"the file has {Path(path).stat().st_size} bytes"
        raise InputError(argument, path, f"memory ran out while reading it: {message}") from error
    except ModuleNotFoundError:  # a reader that is not installed says nothing about the file
        raise
    except Exception as error:
        # h5py raises OSError without errno for a truncated file; the system's own errors have one.
        # EINVAL means that a damaged file names a position that no file can have.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        rule = f"is truncated or corrupt: not a readable {what} ({reason[:160]})"
        raise InputError(argument, path, rule) from error


def whole_key(shape: Sequence[int]) -> Key:
    """Return the key of a whole array."""
    return tuple(slice(0, size) for size in shape)
