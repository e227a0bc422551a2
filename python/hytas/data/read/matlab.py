"""MATLAB files of versions 4 and 5 by scipy; version 7.3 is HDF5."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.record import Contents, Key, Variable, kind_of
from hytas.types import Array

MOST_DEPTH = 8
"""Levels of structures in structures."""
_KINDS = {"char": "text", "cell": "other", "object": "other", "function": "other"}
_KINDS |= {"opaque": "other", "sparse": "other", "unknown": "other", "struct": "other"}


def is_version_5(head: bytes) -> bool:
    """Return whether a file has the text, the version and the byte order of version 5."""
    return head.startswith(b"MATLAB") and head[124:128] in (b"\0\1IM", b"\1\0MI")


def read(path: Path) -> Contents:
    """Describe the variables of a file; fields of a structure have names such as "s.cube"."""
    from scipy import io

    variables = []
    for name, shape, kind in io.whosmat(path):
        own = _variable(path, name, tuple(map(int, shape)), kind)
        if kind == "cell" and _names_classes(name):
            own = _texts(name, io.loadmat(path, variable_names=[name])[name]) or own
        variables.append(own)
        if kind == "struct" and tuple(shape) == (1, 1):
            record = io.loadmat(path, variable_names=[name])[name]
            variables += _fields(name, record)
    return Contents(path, "MATLAB v5", tuple(variables))


def _variable(path: Path, name: str, shape: tuple[int, ...], kind: str) -> Variable:
    content = _KINDS.get(kind, "number")
    return Variable(name, shape, kind, content, partial(_values, path, name), has_parts=False)


def _values(path: Path, name: str, key: Key) -> Array:
    from scipy.io import loadmat

    return np.asarray(loadmat(path, variable_names=[name])[name])[key]


def _fields(name: str, record: Any, depth: int = 0) -> Iterator[Variable]:
    for field in record.dtype.names or ():
        array, own = record[field][0, 0], f"{name}.{field}"
        if isinstance(array, np.ndarray) and kind_of(array.dtype) == "number":
            yield Variable.of_array(own, array, has_parts=False)
        elif _names_classes(field) and (texts := _texts(own, array)) is not None:
            yield texts
        elif depth < MOST_DEPTH and getattr(array, "shape", None) == (1, 1):
            yield from _fields(own, array, depth + 1)


def _names_classes(name: str) -> bool:
    """Return whether a cell array may list names of classes; others may hold anything."""
    return "name" in name.lower()


def _texts(name: str, cells: Any) -> Variable | None:
    """Return a cell array of texts as a list of these; None if it holds anything else."""
    listed = [each for each in np.ravel(cells) if isinstance(each, np.ndarray)]
    listed = [each for each in listed if each.dtype.kind == "U" and each.size < 2]
    if not listed or len(listed) < np.size(cells):
        return None
    texts = ["".join(each.ravel().tolist()) for each in listed]
    return Variable.of_array(name, np.array(texts), has_parts=False)
