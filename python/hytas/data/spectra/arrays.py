"""Tables in arrays: spectra (N, bands) or series (N, dates, bands), and lists of N labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hytas.data.findings import note
from hytas.data.options import SceneOptions
from hytas.data.record import Contents, Variable, load
from hytas.data.spectra.table import Parts
from hytas.errors import InputError
from hytas.types import Array

SUFFIXES = (".npy", ".npz", ".mat", ".h5", ".hdf5")
"""Of files of arrays without names of axes, of which some are tables."""


def read_arrays(contents: Contents, label_file: Contents, options: SceneOptions) -> Parts | None:
    """Return the parts of the table in arrays; None if they are none.

    Without a named column, an array is a table if its axes have no names, there is no cube or map,
    and one list of whole numbers has a value for each of its rows.
    """
    label_name, group_name = options.label_column, options.group_column
    lists = [one for one in label_file.variables if one.kind in ("number", "text") and _length(one)]
    arrays = [one for one in contents.variables if one.kind == "number" and not _length(one)]
    arrays = [one for one in arrays if len(one.shape) in (2, 3) and np.prod(one.shape[1:]) > 1]
    cubes = [one for one in arrays if len(one.shape) == 3]
    maps = [one for one in (*arrays, *label_file.variables) if len(one.shape) == 2]
    counts = {one.shape[0] for one in arrays}
    named = None if label_name is None else label_file.get(label_name, "label_column")
    group = None if group_name is None else label_file.get(group_name, "group_column")
    labels = 0 if named is None else _length(named)
    for array in arrays if labels and labels not in counts else ():
        if labels in array.shape[1:]:
            rule = f"has a value for each column of {array}"
            hint = "a spectrum is a row: transpose"
            raise InputError("label_column", label_name, rule, hint)
    for array in sorted(arrays, key=lambda one: -one.size):
        rows, is_series = array.shape[0], len(array.shape) == 3
        if named is None:
            if any(array.dims) or (maps if is_series else cubes):
                continue
            label = _only_label(array, [one for one in lists if one is not group], label_file)
            if label is None:
                continue
        else:
            if rows != _length(named) and _length(named) in counts:
                continue
            label = _checked("label_column", named, [e for e in lists if _length(e) == rows])
        facts: dict[str, Any] = {"array": str(array), "rows": rows, "labels": str(label)}
        findings = [note("table-in-arrays", **facts)]
        groups = None
        if group is not None:
            groups = load(_checked("group_column", group, lists), label_file, "data").ravel()
            findings.append(note("groups-in-array", groups=str(group)))
        if is_series:
            steps, bands = array.shape[1:]
            findings.append(note("series-as-bands", steps=steps, bands=bands))
        if groups is not None and len(groups) != rows:
            raise InputError("group_column", group_name, f"{group} has not {rows} values")
        values = load(array, contents, "data").reshape(rows, -1)
        targets = load(label, label_file, "data").ravel()
        return Parts(values, targets, groups, None, findings, label_file.files)
    return None


def _only_label(
    array: Variable, lists: Sequence[Variable], label_file: Contents
) -> Variable | None:
    """Return the only list that may label the rows of an array."""
    rows = array.shape[0]
    fitting = [one for one in lists if _length(one) == rows]
    fitting = [one for one in fitting if _may_label(load(one, label_file, "data").ravel())]
    if len(fitting) > 1 and len(array.shape) == 2:
        names = " and ".join(map(str, fitting))
        rule = f"missing: {array} holds {rows} spectra, and {names} could be labels"
        raise InputError("label_column", rule=rule)
    return fitting[0] if len(fitting) == 1 else None


def _checked(argument: str, variable: Variable, fitting: Sequence[Variable]) -> Variable:
    if variable not in fitting:
        rule = f"{variable} is no list with a value for each spectrum"
        raise InputError(argument, variable.name, rule)
    return variable


def _may_label(values: Array) -> bool:
    if values.dtype.kind == "f" and (values != np.round(values)).any():
        return False
    return 2 * len(np.unique(values)) <= len(values)


def _length(variable: Variable) -> int:
    """Return the length of a list of values; 0 for an array of two axes or more."""
    long = [size for size in variable.shape if size > 1]
    return long[0] if len(long) == 1 and len(variable.shape) <= 2 else 0
