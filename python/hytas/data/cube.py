"""The cube of a file: its axes, the facts of its bands, and its pixels by windows."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hytas.data.findings import Finding, Noted, note, refusal
from hytas.data.grid import Grid
from hytas.data.interpret.axes import (
    Axes,
    are_axes_of,
    cube_axes,
    dimension_names,
    find_axes,
    role_of,
)
from hytas.data.interpret.bands import band_facts, list_lengths
from hytas.data.interpret.nodata import declared, not_storable, valid_pixels
from hytas.data.interpret.place import with_place
from hytas.data.limits import IN_MEMORY_BYTES, by, bytes_of, listed
from hytas.data.read.rasters import FACTOR
from hytas.data.read.table import Named, open_file
from hytas.data.record import (
    OPACITY,
    OPACITY_IS_A_BAND,
    BandFacts,
    Contents,
    Variable,
    is_opacity,
    numbers_of,
    reading,
    require_number,
    whole_key,
    without_alpha,
)
from hytas.errors import InputError
from hytas.types import Array, Floats

SAMPLED_BYTES, SAMPLED_ROWS = 2**26, 16
"""A larger cube is described by pixels in some of its rows."""
DECODED_BYTES, SAMPLED_COLUMNS = 2**27, 256
"""Of a sample: bytes of blocks that are decoded, and pixels of a row."""
BLOCK_BYTES = 2**27
"""Bytes of rows that are read together where all rows are read."""


@dataclass(eq=False)
class FileCube(Noted):
    """A cube in a file."""

    contents: Contents
    variable: Variable
    axes: Axes
    facts: BandFacts
    findings: tuple[Finding, ...] = ()
    argument: str = "scene"

    @property
    def name(self) -> str:
        """Return the file's name, without its suffix."""
        return self.contents.path.stem

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, bands."""
        height, width, bands = (self.variable.shape[axis] for axis in self.axes.order)
        return height, width, bands

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the values that `read` returns, in native byte order."""
        return self.read(0, 1, 0, 1).dtype

    @property
    def wavelengths(self) -> Floats | None:
        """Return the band centres in nm, (B,), or None."""
        return self.facts.wavelengths

    @property
    def fwhm(self) -> Floats | None:
        """Return the band widths in nm, (B,), or None."""
        return self.facts.fwhm

    @property
    def bad_bands(self) -> tuple[int, ...]:
        """Return the indices of the bands that the file marks as bad."""
        return self.facts.bad_bands

    @property
    def nodata(self) -> float | None:
        """Return the no-data value, or None."""
        return self.variable.nodata

    @property
    def grid(self) -> Grid:
        """Return where the pixels lie."""
        height, width, _ = self.shape
        own = self.variable.grid or Grid(None, None, height, width)
        return replace(own, height=height, width=width, left_out=self.variable.left_out)

    def read(self, row0: int, row1: int, col0: int, col1: int) -> Array:
        """Return the pixels (row1 - row0, col1 - col0, B) of a window."""
        height, width, _ = self.shape
        if not (0 <= row0 < row1 <= height and 0 <= col0 < col1 <= width):
            rule = f"must lie inside the scene of {height} x {width} pixels"
            raise InputError("window", f"rows {row0} to {row1}, columns {col0} to {col1}", rule)
        if not self.variable.has_parts:
            return np.ascontiguousarray(self._everything[row0:row1, col0:col1])
        key = list(whole_key(self.variable.shape))
        key[self.axes.row], key[self.axes.column] = slice(row0, row1), slice(col0, col1)
        with self._reading():
            return np.ascontiguousarray(self._turned(self.variable.part(tuple(key))))

    def __getitem__(self, rows: slice) -> Array:
        """Return full rows, so that code for arrays also works with a cube on disk."""
        height, width, bands = self.shape
        start, stop, step = rows.indices(height)
        if step != 1 or stop <= start:
            return np.empty((0, width, bands), self.dtype)
        return self.read(start, stop, 0, width)

    @cached_property
    def sampled(self) -> list[Array]:
        """Return pixels (n, B) of a few rows, with the first and the last.

        Those of a row lie in one column of blocks, so that few blocks are decoded.
        """
        height, width, bands = self.shape
        block = self.variable.block or self.variable.shape
        tall, wide = (
            min(block[axis], self.shape[at]) for at, axis in enumerate(self.axes.order[:2])
        )
        count = SAMPLED_ROWS
        if self.variable.block:
            decoded = bytes_of((tall, wide, bands), self.dtype.itemsize)
            count = min(count, max(3, DECODED_BYTES // decoded))
        rows = np.unique(np.linspace(0, height - 1, count).astype(int)).tolist()
        samples = []
        for number, row in enumerate(rows):
            left = number * width // len(rows) // wide * wide
            right = min(left + wide, width)
            pixels = self.read(row, row + 1, left, right)[0]
            samples.append(pixels[:: -(-len(pixels) // SAMPLED_COLUMNS)])
        return samples

    def whole(self) -> Array:
        """Return all pixels (H, W, B): in memory, or if they take much, in a file that is mapped.

        In memory the bands of a pixel lie together, so that a patch is a few long reads.
        """
        is_small = bytes_of(self.shape, self.dtype.itemsize) <= IN_MEMORY_BYTES
        raw = self.variable.raw
        if not self.variable.has_parts:
            return np.ascontiguousarray(self._everything) if is_small else self._everything
        if not is_small and raw is not None and np.dtype(raw.dtype).isnative:
            return self._turned(raw.mapped())
        result = zeros(self.shape, self.dtype)
        height, width, bands = self.shape
        rows = max(1, BLOCK_BYTES // bytes_of((width, bands), self.dtype.itemsize))
        for top in range(0, height, rows):
            bottom = min(top + rows, height)
            result[top:bottom] = self.read(top, bottom, 0, width)
        return result

    @cached_property
    def cube(self) -> Array:
        """Return all pixels (H, W, B), as `whole` reads them."""
        return self.whole()

    @cached_property
    def _everything(self) -> Array:
        with self._reading():
            return self._turned(self.variable.values())

    def _turned(self, array: Array) -> Array:
        spare = [axis for axis in range(array.ndim) if axis not in self.axes.order]
        turned = array.transpose(*self.axes.order, *spare)
        return turned.reshape(turned.shape[:3])

    def _reading(self) -> Any:
        contents = self.contents
        return reading(self.argument, contents.path, f"{contents.format} file")


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros, in memory or in a file without a name where they take much."""
    if bytes_of(shape, dtype.itemsize) <= IN_MEMORY_BYTES:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape)


def open_cube(
    path: Named, cube_key: str | None = None, bands: int | None = None, axes: str | None = None
) -> FileCube:
    """Open a cube to read it by windows.

    Args:
        path: the file, the folder of a Zarr store or of files of bands, or a list of such files.
        cube_key: the cube's name in the file; not needed if there is one cube.
        bands: the expected number of bands, which finds the band axis where nothing names it.
        axes: the order of the array's axes, such as "band,y,x"; it overrides the file's names.

    Raises:
        InputError: the file is missing or broken, holds no cube, or several cubes without a key.
    """
    contents = open_file(path, "scene")
    return cube_in(contents, find_cube(contents, cube_key, "scene"), bands=bands, axes=axes)


def load_cube(path: Named, **how: Any) -> FileCube:
    """Return a cube, whose attribute `cube` reads all pixels; arguments as for `open_cube`."""
    return open_cube(path, **how)


def cube_in(
    contents: Contents,
    variable: Variable,
    argument: str = "scene",
    *,
    bands: int | None = None,
    axes: str | None = None,
    maps: Sequence[tuple[int, ...]] = (),
) -> FileCube:
    """Return a variable as a cube, its axes settled (`find_axes`) and its bands described."""
    findings = list(contents.findings)
    if variable.has_alpha:  # of a picture of labels it is needed
        with reading(argument, contents.path, f"{contents.format} file"):
            is_mask = is_opacity(variable)
        variable = without_alpha(variable) if is_mask else variable
        findings.append(OPACITY if is_mask else OPACITY_IS_A_BAND)
    lengths = list_lengths(contents, variable)
    roles = find_axes(variable, given=axes, bands=bands, wavelengths=lengths, maps=maps)
    with reading(argument, contents.path, f"{contents.format} file"):
        variable, of_place = with_place(contents, variable, roles.order)
        facts, of_bands = band_facts(contents, variable, roles.band)
    findings += [*of_place, *of_bands, *([] if roles.finding is None else [roles.finding])]
    if len(cubes_in(contents)) > 1:
        findings.append(note("cube-chosen", variable=str(variable)))
    cube = FileCube(contents, variable, roles, facts, tuple(findings), argument)
    nodata, of_nodata = variable.nodata, not_storable(variable.nodata, variable.dtype)
    if (factor := numbers_of(variable.attributes, FACTOR, 1)) is not None:
        nodata, of_scale = declared(nodata, factor[0], variable.dtype, cube.sampled)
        of_nodata = of_scale or of_nodata
    findings = [*cube.findings, *of_nodata]
    cube = replace(cube, variable=replace(variable, nodata=nodata), findings=tuple(findings))
    if cube.shape[2] < 2 or 0 in cube.shape:
        facts_of_size = {"size": by(cube.shape)} | ({} if roles.is_settled else {"key": "axes"})
        raise refusal("array-unfit", argument, contents.path, "cube", **facts_of_size)
    return cube


def empty_pixels(cube: FileCube) -> tuple[Finding, ...]:
    """Return a finding on NaN, infinite or no-data values; in a sample of a large cube."""
    is_small = bytes_of(cube.shape, cube.dtype.itemsize) <= SAMPLED_BYTES
    parts = [cube[:]] if is_small else [pixels[None] for pixels in cube.sampled]
    empty = sum(int((~valid_pixels(pixels, cube.nodata)).sum()) for pixels in parts)
    if not empty:
        return ()
    seen = sum(pixels.shape[0] * pixels.shape[1] for pixels in parts)
    return (note("pixels-masked", count=empty, of=seen),)


def find_cube(
    contents: Contents,
    key: str | None,
    argument: str = "data",
    maps: Sequence[tuple[int, ...]] = (),
) -> Variable:
    """Return the variable of the cube: the named one, or the only one with three axes.

    If there are several, it is the only one with as many bands as there are wavelengths, or that
    has two axes of a map of the shapes `maps`.
    """
    if key is not None:
        variable = contents.get(key, argument)
        require_number(variable, contents, argument)
        if len(cube_axes(variable)) != 3:
            raise refusal("array-unfit", argument, contents.path, "three-axes", array=str(variable))
        return variable
    cubes = cubes_in(contents)
    numeric = [each for each in cubes if each.kind == "number"]
    if len(numeric) > 1:
        sizes = {each.name: _sizes(each)[1] for each in numeric}
        for fitting in (
            [each for each in numeric if {*list_lengths(contents, each)} & {*sizes[each.name]}],
            [each for each in numeric if any(are_axes_of(map_, sizes[each.name]) for map_ in maps)],
        ):
            numeric = fitting if len(fitting) == 1 else numeric
    if len(numeric) > 1:
        raise refusal("several", argument, contents.path, "cubes", names=[*map(str, numeric)])
    if numeric:
        return numeric[0]
    if cubes:
        require_number(cubes[0], contents, argument)
    arrays = listed(contents.variables)
    raise refusal("array-missing", argument, contents.path, "cube", arrays=arrays)


def cubes_in(contents: Contents) -> list[Variable]:
    """Return the arrays that may be the cube by their shapes, numeric or not."""
    cubes = [each for each in contents.variables if _is_cube(each)]
    # A cube of one line or one column has the shape of a map with a further axis.
    return cubes or [each for each in contents.variables if _is_one_line(each)]


def _sizes(variable: Variable) -> tuple[dict[str, int], tuple[int, ...]]:
    """Return the sizes of the named axes that matter, and of all of them in order."""
    kept = cube_axes(variable)
    names = dimension_names(variable)
    sizes = {role_of(names[axis]): variable.shape[axis] for axis in kept}
    return sizes, tuple(variable.shape[axis] for axis in kept)


def _is_cube(variable: Variable) -> bool:
    named, shape = _sizes(variable)
    if len(shape) != 3:
        return False
    return named["band"] > 1 if "band" in named else 1 not in (shape[0], shape[2])


def _is_one_line(variable: Variable) -> bool:
    named, shape = _sizes(variable)
    return len(shape) == 3 and "band" not in named and shape.count(1) == 1
