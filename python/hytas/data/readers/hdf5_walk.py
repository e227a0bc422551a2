"""List the datasets of an HDF5 file; refuse too many, and those that read other files."""

from collections.abc import Iterator
from typing import Any

from hytas.data.limits import check_count, listed, shown
from hytas.data.record import ReaderError

MOST_OBJECTS = 50_000
"""Groups and datasets to visit, at most; MATLAB keeps the parts of cells in a group."""
MOST_DEPTH = 64
"""Levels of groups, at most; the time of a visit grows with the depth."""


def datasets(file: Any) -> dict[str, Any]:
    """Return h5py's datasets with values by name, except MATLAB's own, whose names begin with #.

    Raises:
        InputError: there are too many.
        ReaderError: the values of one are in other files.
    """
    found = {}
    for key in _names(file):
        item = file[key]
        if item.shape is None:
            continue
        name = key.decode("utf-8", "surrogateescape")
        others = list(dict.fromkeys(_other_files(item)))
        if others:
            raise ReaderError(
                f"the values of {shown(name)} lie in other files ({listed(others, len(others))}), "
                f"as {'a virtual dataset' if item.is_virtual else 'external storage'}, and hytas "
                "opens no file that a file names",
                "copy the values into it",
            )
        found[name] = item
    return found


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


def _other_files(item: Any) -> Iterator[str]:
    """Yield the other files of a dataset's values; "." for a virtual dataset without files."""
    if item.is_virtual:
        yield from [shown(source.file_name) for source in item.virtual_sources()] or ["."]
    plan = item.id.get_create_plist()
    for number in range(plan.get_external_count()):
        yield shown(plan.get_external(number)[0].decode("utf-8", "surrogateescape"))
