"""List the datasets of an HDF5 file; refuse too many, and those that read other files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas.data.formats.hdf5_chunks import packers
from hytas.data.limits import bytes_of, check_count, listed, shown
from hytas.errors import InputError

MOST_OBJECTS = 50_000
"""Groups and datasets to visit, at most; MATLAB keeps the parts of cells in a group."""

MOST_DEPTH = 64
"""Levels of groups, at most; the time of a visit grows with the depth."""
MOST_CHUNKS = 200_000
"""Chunks of a dataset whose sizes are checked."""
MOST_DEFLATED = 1032
"""Bytes that one byte of deflate can become, at most."""


class Dataset(NamedTuple):
    """A dataset of an open file: its path there, h5py's object, its type and its sizes."""

    name: str
    item: Any
    dtype: np.dtype[Any]
    size: int
    stored: int


def datasets(file: Any) -> list[Dataset]:
    """List the datasets with values, except MATLAB's own, whose names begin with #.

    Raises:
        InputError: there are too many, or the values of one are in other files.
    """
    return [described(file, name) for name in _names(file) if file[name].shape is not None]


def address(item: Any) -> int:
    """Return the position of an object in its file, which identifies the object."""
    import h5py

    return int(h5py.h5o.get_info(item.id).addr)


def _names(file: Any) -> list[bytes]:
    import h5py

    found: list[bytes] = []
    visited = depth = 0

    # Only the type is read; objects are not opened. Returning something ends the visit.
    def visit(name: bytes, info: Any) -> bool | None:
        nonlocal visited, depth
        visited, depth = visited + 1, max(depth, name.count(b"/"))
        if info.type == h5py.h5o.TYPE_DATASET and not name.startswith(b"#"):
            found.append(name)
        return True if visited > MOST_OBJECTS or depth > MOST_DEPTH else None

    h5py.h5o.visit(file.id, visit, info=True)
    check_count(visited, "groups and datasets", MOST_OBJECTS)
    check_count(depth, "levels of groups", MOST_DEPTH)
    check_count(len(found), "datasets")
    return found


def described(file: Any, key: bytes) -> Dataset:
    """Describe one dataset of an open file.

    Raises:
        InputError: its values lie in other files.
    """
    item = file[key]
    name = key.decode("utf-8", "surrogateescape")
    others = list(dict.fromkeys(_other_files(item)))
    if others:
        raise InputError(
            f"the values of {shown(name)} lie in other files ({listed(others, len(others))}), as "
            f"{'a virtual dataset' if item.is_virtual else 'external storage'}; hytas reads a "
            "single file: copy the values into it"
        )
    try:
        dtype = item.dtype
    except TypeError:  # numpy has no such type
        dtype = np.dtype(object)
    size = bytes_of(item.shape, dtype.itemsize)
    stored = min(int(item.id.get_storage_size()), int(file.id.get_filesize()))
    return Dataset(name, item, dtype, size, stored)


def _other_files(item: Any) -> Iterator[str]:
    """Yield the other files of a dataset's values; "." for a virtual dataset without files."""
    if item.is_virtual:
        yield from [shown(source.file_name) for source in item.virtual_sources()] or ["."]
    plan = item.id.get_create_plist()
    for number in range(plan.get_external_count()):
        yield shown(plan.get_external(number)[0].decode("utf-8", "surrogateescape"))


def touch(path: Path, most: int) -> None:
    """Read datasets of up to `most` bytes together, and both ends of the others.

    Values that cannot be read are no error here, because they may never be used.

    Raises:
        InputError: a chunk is far too large for its dataset.
        MemoryError: reading takes too much memory.
    """
    import h5py

    left = most
    with h5py.File(path, "r") as file:
        for dataset in datasets(file):
            shape = dataset.item.shape
            if dataset.dtype.kind not in "iuf" or 0 in shape:
                continue
            ends = 2 * bytes_of(dataset.item.chunks or (1,), dataset.dtype.itemsize)
            _check_chunks(dataset)
            if dataset.size <= left:
                left -= dataset.size
                _read(dataset, (), most)
            elif ends <= left:
                left -= ends
                _read(dataset, (0,) * len(shape), most)
                _read(dataset, (-1,) * len(shape), most)


def _check_chunks(dataset: Dataset) -> None:
    """Refuse chunks that are larger in the file than in memory, or packed twice.

    The library unpacks such a chunk to its end, even if it becomes far too large.
    """
    if dataset.item.chunks is None:
        return
    if len(packers(dataset.item)) > 1:
        raise InputError(f"the chunks of {shown(dataset.name)} are packed twice: hytas reads none")
    whole = bytes_of(dataset.item.chunks, dataset.dtype.itemsize)
    sizes: list[int] = []

    def note(chunk: Any) -> bool | None:
        sizes.append(chunk.size)
        return True if len(sizes) >= MOST_CHUNKS else None

    dataset.item.id.chunk_iter(note)
    if max(sizes, default=0) > whole + whole // 2 + 1024:
        raise InputError(
            f"a chunk of {shown(dataset.name)} takes {max(sizes)} bytes of the file and "
            f"{whole} bytes of memory: the file is damaged"
        )


def _read(dataset: Dataset, key: tuple[int, ...], most: int) -> None:
    try:
        dataset.item[key]
    except MemoryError:
        raise
    except Exception as error:
        # A filter does not say why it fails. Large data probably took too much memory.
        if "allocat" in str(error) or dataset.stored * MOST_DEFLATED > most:
            raise MemoryError from None
