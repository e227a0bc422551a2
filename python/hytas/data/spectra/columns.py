"""The parts of a table of spectra in a file of columns."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import Finding, note
from hytas.data.interpret.columns import bands_of, numeric_of, refuse_texts, upright
from hytas.data.limits import listed
from hytas.data.options import SceneOptions
from hytas.data.read.columns import read_frame
from hytas.data.spectra.table import Parts
from hytas.errors import InputError
from hytas.types import Array, Floats


def read_columns(path: Path, labels: Any, options: SceneOptions) -> Parts:
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
            rule = f"no column of {path.name}, which has {listed(header)}"
            raise InputError(argument, name, rule)
    if group is not None and group in (label, *targets):
        raise InputError("group_column", group, "is the label column, too")
    others = [name for name in header if name not in (label, group, *targets)]
    refuse_texts("data", path, frame[others])
    bands, wavelengths, of_bands = bands_of(numeric_of(frame, others), options.band_columns)
    if len(bands) < 2:
        rule = f"has {len(bands)} columns of numbers; a table needs 2 bands"
        raise InputError("data", path, rule)
    values = column_numbers(frame[bands])
    values = values if values.dtype.kind in "iu" else values.astype(np.float32)
    groups = None if group is None else _values_of(frame[group])
    facts = {"labels": label or listed(targets), "groups": group or "no column"}
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
    return Parts(values, labels, groups, wavelengths, findings, (path,))


def _target(column: Any) -> Floats:
    """Return a column of numbers, NaN where one is missing."""
    import pandas

    numbers = pandas.to_numeric(column, errors="coerce")
    odd = column[numbers.isna() & column.notna()]
    if len(odd):
        rule = f"holds {odd.iloc[0]!r}, which is no number"
        raise InputError("target_column", column.name, rule)
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


def wavelength_text(wavelengths: Floats | None) -> str | None:
    """Return the first and the last wavelength for people."""
    if wavelengths is None:
        return None
    return f"{wavelengths.min():.1f} to {wavelengths.max():.1f} nm"


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
