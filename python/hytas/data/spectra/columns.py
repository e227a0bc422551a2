"""Files of columns, by pandas: CSV, TSV and Parquet."""

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import Finding, note, refusal
from hytas.data.interpret.columns import (
    bands_of,
    by_stem,
    is_transposed,
    numeric_of,
    texts_of,
    waves_in,
    without_codes,
)
from hytas.data.labels.points_csv import TEXT_SUFFIXES
from hytas.data.options import SceneOptions
from hytas.data.record import reading
from hytas.data.spectra.table import Parts
from hytas.errors import InputError
from hytas.files import open_text
from hytas.types import Array, Floats

TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".pq")
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?\n')
"""First line of tables that are written for Excel."""
ROW_NAMES = "row names"
"""Column of the names of rows, which R and pandas write before the first column that has a name."""
MOST_LINE = 2**20
"""Characters of the first line that are read."""
SHOWN = 12
"""Names of columns in a message, at most."""


def read_columns(path: Path, labels: Any, options: SceneOptions) -> Parts:
    """Return the parts of the table in a file of columns."""
    label, group = options.label_column, options.group_column
    if labels is not None:
        raise InputError("labels", labels, "a table has its labels", "name `label_column`")
    frame = frame_of(path)
    refuse_transposed("data", path, frame)
    header = list(frame.columns)
    named = waves_in(header).numbers
    column_names = some_of(sorted(header, key=lambda name: name in named))
    targets = list(options.target_column)
    if label is None and not targets:
        raise InputError("label_column", rule="missing", hint=f"{path.name} has {column_names}")
    if label is not None and targets:
        raise InputError("label_column", label, "is for classes, and `target_column` names values")
    chosen = [("label_column", label), ("group_column", group)]
    for argument, name in (*chosen, *(("target_column", name) for name in targets)):
        if name is not None and name not in header:
            rule = f"no column of {path.name}, which has {column_names}"
            is_headless = sum(len(own.numbers) for own in by_stem(header).values()) == len(header)
            hint = "if these are values, write a line of names above them" if is_headless else ""
            raise InputError(argument, name, rule, hint)
    if group is not None and group in (label, *targets):
        raise InputError("group_column", group, "is the label column, too")
    no_bands = (label, group, *targets)
    others = [name for name in header if name not in no_bands]
    numeric = without_codes(frame, numeric_of(frame, others), (label, group))
    bands, wavelengths, findings = bands_of(numeric)
    refuse_text("data", path, frame[others])
    if left := [name for name in others if name not in bands]:
        findings.append(note("columns-no-bands", columns=left))
    if len(bands) < 2:
        rule = f"has {len(bands)} columns of numbers; a table needs 2 bands"
        raise InputError("data", path, rule)
    values = column_numbers(frame[bands])
    if values.dtype.kind not in "iu":
        values = values.astype(np.float32)
    facts = {"labels": label or some_of(targets), "first": bands[0], "last": bands[-1]}
    findings.insert(0, note("table" if wavelengths is None else "table-with-wavelengths", **facts))
    if group is not None:
        findings.insert(1, note("groups-in-column", column=group))
    groups = None if group is None else _values_of(frame[group])
    if targets:
        findings += _may_group(frame, others) if group is None else []
        labels = np.stack([_target(frame[name]) for name in targets], axis=1)
    else:
        labels = _values_of(frame[label])
    return Parts(values, labels, groups, wavelengths, findings, (path,))


def _target(column: Any) -> Floats:
    """Return a column of numbers, NaN where one is missing."""
    import pandas

    if column.dtype.kind not in "iufb":
        numbers = pandas.to_numeric(column, errors="coerce")
        odd = column[numbers.isna() & column.notna()]
        if len(odd):
            rule = f"holds {odd.iloc[0]!r}, which is no number"
            raise InputError("target_column", column.name, rule)
        column = numbers
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan))


def _may_group(frame: Any, names: Iterable[str]) -> list[Finding]:
    """Return a finding on columns with several rows of each value, such as samples or days."""
    found = [
        name
        for name in names
        if frame[name].dtype.kind not in "fb" and 2 <= frame[name].nunique() <= len(frame) // 2
    ]
    if not found:
        return []
    return [note("rows-may-group", columns=found)]


def refuse_transposed(argument: str, path: Path, frame: Any) -> None:
    """Refuse a table whose columns are spectra."""
    if is_transposed(frame):
        raise refusal("table-transposed", argument, path, column=frame.columns[0])


def describe_columns(path: Path, no_bands: Sequence[str] = ()) -> dict[str, Any]:
    """Return a description of a file of columns.

    Args:
        no_bands: columns of labels and groups.
    """
    frame = frame_of(path)
    refuse_transposed("path", path, frame)
    numeric = [name for name in numeric_of(frame, frame.columns) if name not in no_bands]
    kept = without_codes(frame, numeric, [*texts_of(frame), *no_bands])
    bands, wavelengths, findings = bands_of(kept)
    if codes := [name for name in numeric if name not in kept]:
        findings.append(note("columns-of-codes", columns=codes))
    if not no_bands:
        findings.append(note("columns-unnamed"))
    others = {name: frame[name] for name in frame.columns if name not in bands}
    return {
        "what": "table",
        "path": str(path),
        "rows": len(frame),
        "bands": f"{len(bands)} columns of numbers: {some_of(bands)}",
        "wavelengths": None
        if wavelengths is None
        else f"{wavelengths.min():.1f} to {wavelengths.max():.1f} nm",
        "other columns": [f"{name}, {one.nunique()} values" for name, one in others.items()],
        "findings": findings,
    }


def frame_of(path: Path) -> Any:
    """Read a file of columns with pandas."""
    import pandas

    is_text = path.name.lower().endswith(TEXT_SUFFIXES)
    try:
        with reading("data", path, "table"):
            frame = _read_text(path) if is_text else pandas.read_parquet(path)
            frame = frame if frame.index.names == [None] else frame.reset_index()
    except ImportError:
        hint = "pip install 'hytas[parquet]'"
        raise InputError("data", path, "Parquet needs pyarrow", hint) from None
    if not len(frame):
        raise InputError("data", path, "has no rows")
    names = [str(name).strip() for name in frame.columns]
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError("data", path, f"has {count} columns with the name {name!r}")
    return frame.set_axis(names, axis=1)


def _read_text(path: Path) -> Any:
    """Read a file of columns as text, with decimal commas if these make more numbers."""
    import pandas

    def read(decimal: str, index: bool | None = False) -> Any:
        sep, skipped = (declared[1], 1) if declared else (usual, 0)
        # Without an index, pandas takes a delimiter at the end of a row, and warns of more.
        form = {"engine": "python", "encoding": "utf-8-sig", "index_col": index}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            return pandas.read_csv(path, sep=sep, skiprows=skipped, decimal=decimal, **form)

    def numbers(frame: Any) -> int:
        return sum(kind.kind in "iufb" for kind in frame.dtypes)

    def has_commas(column: Any) -> bool:
        texts = column.dropna().astype(str)
        return column.dtype.kind == "O" and bool(texts.str.contains(r"\d,\d").any())

    def with_decimals(index: bool | None = False) -> Any:
        frame = read(".", index)
        with_commas = any(has_commas(column) for _, column in frame.items())
        return max(frame, read(",", index), key=numbers) if with_commas else frame

    if not path.stat().st_size:
        raise InputError("data", path, "is empty")
    with open_text(path, "replace") as file:
        first_line = file.readline(MOST_LINE)
    declared = _SEPARATOR.match(first_line)
    usual = "\t" if re.search(r"\.tsv(\.\w+)?$", path.name.lower()) else None
    unquoted = re.sub('"[^"]*"', "", first_line)
    # Names of columns, such as 450,5, have one decimal comma at most.
    if unquoted.count(";") >= max(1, unquoted.count(","), unquoted.count("\t")):
        usual = ";"
    try:
        try:
            frame = with_decimals()
        except pandas.errors.ParserWarning:
            frame = with_decimals(index=None)
            if not _are_row_names(path, frame.index):
                raise
            frame = frame.reset_index(names="Unnamed: 0")
        first = frame.columns[0]
        if not str(first).startswith("Unnamed: "):  # by pandas
            return frame
        return frame.rename(columns={first: ROW_NAMES}).astype({ROW_NAMES: str})
    except csv.Error:
        hint = "separate these by commas, semicolons or tabs"
        raise InputError("data", path, "its first line has no names of columns", hint) from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning):
        rule = "a row has more values than the first line has names"
        hint = "name the column of row numbers, or delete it; delete delimiters at the ends of rows"
        raise InputError("data", path, rule, hint) from None
    except UnicodeDecodeError:
        raise InputError("data", path, "is no text in UTF-8", "save it as CSV UTF-8") from None


def _are_row_names(path: Path, index: Any) -> bool:
    """Return whether the values before the first named column are names of rows.

    R writes them in quotes, and never twice. Without quotes, a value at the end of the rows may be
    the one too many.
    """
    with open_text(path) as file:
        next(file)
        return index.nlevels == 1 and bool(index.is_unique) and next(file).startswith('"')


def refuse_text(argument: str, path: Path, frame: Any) -> None:
    import pandas

    named = frame[list(waves_in(frame.columns).numbers)]
    texts = [name for name in named.columns if named[name].dtype.kind not in "iufb"]
    numeric = len(named.columns) - len(texts)
    if texts and len(named.columns) > 1 and numeric < max(2, len(texts)):
        values = named[texts[0]].dropna()
        numbers = pandas.to_numeric(values.astype(str).str.replace(",", "."), errors="coerce")
        odd = next(iter([*values[numbers.isna()], *values]), None)
        raise InputError(argument, path, f"{texts[0]} holds {odd!r}, which is no number")


def some_of(names: Sequence[str]) -> str:
    named = ", ".join(names[:SHOWN])
    return f"{named} and {len(names) - SHOWN} more" if len(names) > SHOWN else named


def _values_of(column: Any) -> Array:
    kind = column.dtype.kind
    if kind not in "iuf":
        return np.asarray(column.astype(object).where(column.notna(), None), object)
    if kind == "f" or column.hasnans:
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    return np.asarray(column, f"{kind}8")


def column_numbers(columns: Any) -> Array:
    values: Array = columns.to_numpy()
    return values if values.dtype.kind in "iufb" else columns.to_numpy(float, na_value=np.nan)
