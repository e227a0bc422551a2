"""MATLAB files of versions 4 and 5 by scipy; version 7.3 is HDF5."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.libraries import library
from hytas.data.limits import bytes_of, check_count
from hytas.data.record import Array, Contents, Key, Variable, kind_of

_KINDS = {"char": "text", "cell": "other", "object": "other", "function": "other"}
_KINDS |= {"opaque": "other", "sparse": "other", "unknown": "other", "struct": "other"}
_BYTES = {"int8": 1, "uint8": 1, "logical": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
_BYTES |= {"single": 4}


def read(path: Path) -> Contents:
    """Describe the variables of a file; fields of a structure have names such as "s.cube"."""
    io = library("scipy.io", "", "a MATLAB file")
    listed = io.whosmat(path)
    check_count(len(listed), "variables")
    variables = []
    for name, shape, kind in listed:
        variables.append(_variable(path, name, tuple(map(int, shape)), kind))
        if kind == "struct" and tuple(shape) == (1, 1):
            variables += _fields(path, name)
    return Contents(path, "MATLAB v5", tuple(variables))


def _variable(path: Path, name: str, shape: tuple[int, ...], kind: str) -> Variable:
    known = _KINDS.get(kind, "number")
    size = bytes_of(shape, _BYTES.get(kind, 8)) if known == "number" else 0
    stored = path.stat().st_size
    return Variable(
        name,
        shape,
        kind,
        known,
        partial(_values, path, name),
        size=size,
        stored=stored,
        has_parts=False,
    )


def _values(path: Path, name: str, key: Key) -> Array:
    io = library("scipy.io", "", "a MATLAB file")
    array = np.asarray(io.loadmat(path, variable_names=[name])[name])
    if array.ndim != len(key):
        raise ValueError(f"{name} holds an array of shape {array.shape}")
    return array[key]


def _fields(path: Path, name: str) -> list[Variable]:
    io = library("scipy.io", "", "a MATLAB file")
    record: Any = io.loadmat(path, variable_names=[name])[name]
    found = []
    for field in record.dtype.names or ():
        array = record[field][0, 0]
        if isinstance(array, np.ndarray) and kind_of(array.dtype) == "number":
            found.append(Variable.of_array(f"{name}.{field}", array, has_parts=False))
    return found
