"""Read tables: to train on, with their labels, or to classify."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas.data.bands import wavelength_text
from hytas.data.findings import Finding, note, refusal
from hytas.data.interpret.columns import (
    bands_of,
    numbered_kinds,
    numeric_of,
    refuse_texts,
    upright,
)
from hytas.data.limits import by, listed
from hytas.data.options import OF_TABLES, SceneOptions
from hytas.data.read.columns import TABLE_SUFFIXES, read_frame
from hytas.data.read.table import open_file
from hytas.data.record import Contents, load, reading
from hytas.data.spectra.table import Spectra, TableArrays, table_of
from hytas.errors import InputError
from hytas.types import Array, Floats

FARTHEST_NM = 0.5
"""Largest distance of a column's wavelength from a band of the model."""
_ARRAYS = (".npy", ".npz", ".mat", ".h5", ".hdf5")
"""Files of arrays, of which some are spectra."""


def load_spectra(data: Any, labels: Any, options: SceneOptions) -> Spectra | None:
    """Read a table; None if `data` is none.

    A file of columns is one. Of a file of arrays, `label_column` names the list with a label for
    each spectrum.

    Args:
        data: the file of the table, or of an array and its labels.
        labels: the file of the labels of an array, if it is another one.
    """
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return None
    path = Path(data)
    if path.name.lower().endswith(TABLE_SUFFIXES):
        return table_of(path, read_columns(path, labels, options), options)
    if options.label_column is None or path.suffix.lower() not in _ARRAYS:
        options.refuse(OF_TABLES, f"is for tables of spectra, and {path.name} is a scene")
        return None
    label_file = open_file(path) if labels is None else open_file(labels, "labels")
    frame = _frame_of_arrays(open_file(path), label_file, options)
    return table_of(path, _parts(frame, label_file.path, options, []), options)


def read_columns(path: Path, labels: Any, options: SceneOptions) -> TableArrays:
    """Return the parts of the table in a file of columns."""
    if labels is not None:
        raise InputError("labels", labels, "a table has its labels", "name `label_column`")
    label, group, targets = options.label_column, options.group_column, [*options.target_column]
    frame, findings = frame_of(path)
    header = list(frame.columns)
    if label is None and not targets:
        raise InputError("label_column", rule="missing", hint=f"{path.name} has {listed(header)}")
    if label is not None and targets:
        raise InputError("label_column", label, "is for classes, and `target_column` names values")
    chosen = [("label_column", label), ("group_column", group)]
    for argument, name in (*chosen, *(("target_column", name) for name in targets)):
        if name is not None and name not in header:
            raise refusal("missing", argument, name, "column", file=path.name, names=header)
    if group is not None and group in (label, *targets):
        raise InputError("group_column", group, "is the label column, too")
    return _parts(frame, path, options, findings)


def _parts(
    frame: Any, path: Path, options: SceneOptions, findings: Sequence[Finding]
) -> TableArrays:
    label, group, targets = options.label_column, options.group_column, [*options.target_column]
    header = list(frame.columns)
    others = [name for name in header if name not in (label, group, *targets)]
    refuse_texts("data", path, frame[others])
    bands, wavelengths, of_bands = bands_of(numeric_of(frame, others), options.band_columns)
    if len(bands) < 2:
        raise refusal("array-unfit", "data", path, "table", size=by((len(frame), len(bands))))
    values = column_numbers(frame[bands])
    values = values if values.dtype.kind in "iu" else values.astype(np.float32)
    groups = None if group is None else _values_of(frame[group])
    facts = {"labels": label or listed(targets)}
    facts |= {"groups": group} if group else {"case": "no-groups"}
    waves = wavelength_text(wavelengths) or "unknown"
    table = note("table", **facts, count=len(bands), first=bands[0], last=bands[-1], waves=waves)
    left = [name for name in others if name not in bands]
    more = [note("columns-no-bands", columns=left)] if left else []
    if targets:
        more += _may_group(frame, others) if group is None else []
        labels = np.stack([_target(frame[name]) for name in targets], axis=1)
    else:
        labels = _values_of(frame[label])
    findings = [table, *findings, *of_bands, *more]
    return TableArrays(values, labels, groups, wavelengths, findings, (path,))


def _target(column: Any) -> Floats:
    """Return a column of numbers, NaN where one is missing."""
    import pandas

    numbers = pandas.to_numeric(column, errors="coerce")
    odd = column[numbers.isna() & column.notna()]
    if len(odd):
        facts = {"row": odd.index[0] + 1, "text": repr(odd.iloc[0])}
        raise refusal("value-wrong", "target_column", column.name, "row", **facts)
    return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))


def _may_group(frame: Any, names: Iterable[str]) -> list[Finding]:
    """Return a finding on columns with several rows of each value, such as samples or days."""
    found = [
        name
        for name in names
        if frame[name].dtype.kind not in "fb" and 2 <= frame[name].nunique() <= len(frame) // 2
    ]
    return [note("rows-may-group", columns=found)] if found else []


def describe_columns(
    path: Path, no_bands: Sequence[str] = (), band_columns: str | None = None
) -> dict[str, Any]:
    """Return a description of a file of columns.

    Args:
        no_bands: columns of labels and groups.
    """
    frame, findings = frame_of(path)
    numeric = [name for name in numeric_of(frame, frame.columns) if name not in no_bands]
    bands, wavelengths, of_bands = bands_of(numeric, band_columns)
    others = {name: frame[name] for name in frame.columns if name not in bands}
    return {
        "what": "table",
        "path": str(path),
        "rows": len(frame),
        "bands": f"{len(bands)} columns of numbers: {listed(bands)}",
        "wavelengths": wavelength_text(wavelengths),
        "other columns": [f"{name}, {one.nunique()} values" for name, one in others.items()],
        "findings": [*findings, *of_bands],
    }


def frame_of(path: Path) -> tuple[Any, list[Finding]]:
    """Read a file of columns with pandas, a spectrum a row, and return findings."""
    return upright(read_frame(path))


def _values_of(column: Any) -> Array:
    kind = column.dtype.kind
    if kind not in "iuf":
        return np.asarray(column.astype(object).where(column.notna(), None), object)
    if kind == "f" or column.hasnans:
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    return np.asarray(column, f"{kind}8")


def column_numbers(columns: Any) -> Array:
    """Return columns of numbers (N, n); NaN where one is missing."""
    values: Array = columns.to_numpy()
    return values if values.dtype.kind in "iufb" else columns.to_numpy(float, na_value=np.nan)


def _frame_of_arrays(contents: Contents, label_file: Contents, options: SceneOptions) -> Any:
    """Return spectra (N, bands) or series (N, dates, bands), and their lists, as columns."""
    import pandas

    lists: dict[str, Array] = {}
    for argument in ("label_column", "group_column"):
        if (name := getattr(options, argument)) is not None:
            variable = label_file.get(name, argument)
            if sum(size > 1 for size in variable.shape) != 1:
                rule = f"{variable} is no list with a value for each spectrum"
                raise InputError(argument, name, rule)
            lists[name] = load(variable, label_file, "data").ravel()
    rows = [len(values) for values in lists.values()]
    if rows[0] != rows[-1]:
        raise InputError("group_column", options.group_column, f"has not {rows[0]} values")
    fitting = [
        one
        for one in contents.variables
        if one.kind == "number" and len(one.shape) in (2, 3) and one.shape[0] == rows[0]
        if np.prod(one.shape[1:]) > 1
    ]
    if len(fitting) != 1:
        rule = f"{contents.path.name} has {len(fitting)} arrays of {rows[0]} spectra; one is needed"
        raise InputError("label_column", options.label_column, rule, "a spectrum is a row")
    values = load(fitting[0], contents, "data").reshape(rows[0], -1)
    bands = pandas.DataFrame(values, columns=[f"b{n}" for n in range(1, values.shape[1] + 1)])
    return pandas.DataFrame(lists).join(bands)


def is_table(path: Path, bands: int) -> bool:
    """Return whether a file holds spectra and no scene: columns, or one array (N, bands)."""
    if path.name.lower().endswith(TABLE_SUFFIXES):
        return path.is_file()
    if path.suffix.lower() not in _ARRAYS or not path.is_file():
        return False
    shapes = [one.shape for one in open_file(path, "scene").variables if one.kind == "number"]
    flat = [len(shape) for shape in shapes if len(shape) > 1 and np.prod(shape[1:]) == bands]
    return flat in ([2], [3]) and not any(len(s) == 3 and s[-1] == bands for s in shapes)


class TableRows(NamedTuple):
    """The spectra of a table to classify.

    Attributes:
        values: (N, bands).
        wavelengths: of the bands in nm; None if the table names none.
    """

    values: Array
    wavelengths: Floats | None
    findings: tuple[Finding, ...] = ()


def read_rows(
    path: Path,
    card_bands: int,
    wavelengths: Sequence[float] | None,
    no_bands: Collection[str | None] = (),
) -> TableRows:
    """Return the spectra of a table that a model classifies; labels are not needed.

    Args:
        path: CSV, TSV or Parquet, whose columns are found by wavelength, or are all columns of
            numbers, or those with names such as b1, b2, b3; or an array (N, bands).
        wavelengths: of these in nm, or None.
        no_bands: names of columns that are no bands: those of the labels and groups.
    """
    if not path.name.lower().endswith(TABLE_SUFFIXES):
        variables = [one for one in open_file(path, "scene").variables if one.kind == "number"]
        fitting = [one for one in variables if np.prod(one.shape[1:]) == card_bands]
        if len(fitting) != 1:
            raise InputError("scene", path, f"holds no array of spectra with {card_bands} bands")
        with reading("scene", path, "array"):
            return TableRows(fitting[0].values().reshape(-1, card_bands), None)
    frame, findings = frame_of(path)
    others = [name for name in frame.columns if name not in no_bands]
    refuse_texts("scene", path, frame[others])
    numeric = numeric_of(frame, others)
    bands, centres, _ = bands_of(numeric)
    if centres is not None and wavelengths is not None:
        gaps = np.abs(centres[:, None] - np.asarray(wavelengths))
        nearest, far = gaps.argmin(axis=0), gaps.min(axis=0) > FARTHEST_NM
        if far.any():
            count, first = int(far.sum()), wavelengths[int(far.argmax())]
            rule = f"has {len(bands)} bands, and none at {count} of the {card_bands} of the model"
            raise InputError("scene", path, f"{rule}, such as {first:g} nm")
        bands, centres = [bands[index] for index in nearest], centres[nearest]
    else:
        kinds = [list(kind.numbers) for kind in numbered_kinds(numeric)]
        fit = [names for names in (bands, *kinds, numeric) if len(names) == card_bands]
        if not fit:
            rule = f"has {len(bands)} bands, and the model takes {card_bands}: {listed(bands)}"
            raise InputError("scene", path, rule)
        bands, centres = fit[0], None
        findings.append(note("bands-guessed", case="by-order", columns=bands))
    if left := [name for name in frame.columns if name not in bands]:
        findings.insert(0, note("columns-no-bands", columns=left))
    return TableRows(column_numbers(frame[bands]), centres, tuple(findings))
