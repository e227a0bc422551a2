"""Read tables: to train on, with their labels, or to classify."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas.data.findings import Finding, note
from hytas.data.interpret.columns import (
    bands_of,
    by_stem,
    numeric_of,
    texts_of,
    waves_in,
    without_codes,
)
from hytas.data.labels.formats import format_of
from hytas.data.options import OF_TABLES, SceneOptions
from hytas.data.read.table import open_file
from hytas.data.record import reading
from hytas.data.spectra import arrays
from hytas.data.spectra.columns import (
    TABLE_SUFFIXES,
    column_numbers,
    frame_of,
    read_columns,
    refuse_text,
    refuse_transposed,
    some_of,
)
from hytas.data.spectra.table import Spectra, table_of
from hytas.errors import InputError
from hytas.types import Array, Floats

FARTHEST_NM = 0.5
"""Largest distance of a column's wavelength from a band of the model."""


def load_spectra(data: Any, labels: Any, options: SceneOptions) -> Spectra | None:
    """Read a table; None if `data` is none.

    Args:
        data: the file of the table, or of an array and its labels.
        labels: the file of the labels of an array, if it is another one.
    """
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return None
    path = Path(data)
    is_named = options.label_column is not None or options.group_column is not None
    if path.name.lower().endswith(TABLE_SUFFIXES):
        return table_of(path, read_columns(path, labels, options), options)
    if not is_named and path.suffix.lower() not in arrays.SUFFIXES:
        return None
    contents = open_file(path)
    label_file = contents if labels is None or _is_shapes(labels) else open_file(labels, "labels")
    parts = arrays.read_arrays(contents, label_file, options)
    if parts is None:
        options.refuse(OF_TABLES, f"is for tables of spectra, and {path.name} is a scene")
        return None
    return table_of(path, parts, options)


def _is_shapes(labels: Any) -> bool:
    if not isinstance(labels, str | Path) or not Path(labels).is_file():
        return True
    return format_of(Path(labels)) is not None


def is_table(path: Path, bands: int) -> bool:
    """Return whether a file holds spectra and no scene: columns, or one array (N, bands)."""
    if path.name.lower().endswith(TABLE_SUFFIXES):
        return path.is_file()
    if path.suffix.lower() not in arrays.SUFFIXES or not path.is_file():
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
    frame = frame_of(path)
    refuse_transposed("scene", path, frame)
    numeric = numeric_of(frame, frame.columns)
    refuse_text("scene", path, frame[[one for one in frame.columns if one not in no_bands]])
    numbered = waves_in(numeric)
    waves, numbers = list(numbered.numbers), list(numbered.numbers.values())
    centres = numbered.wavelengths if len(waves) >= 2 else None
    if centres is None and len(waves) > card_bands:  # one that is no band spoils their unit
        centres = np.array(numbers, np.float64)
    if centres is None or wavelengths is None:
        bands, centres = _counted(path, frame, numeric, waves, card_bands, no_bands), None
    else:
        gaps = np.abs(centres[:, None] - np.asarray(wavelengths))
        nearest, far = gaps.argmin(axis=0), gaps.min(axis=0) > FARTHEST_NM
        if far.any():
            count, first = int(far.sum()), wavelengths[int(far.argmax())]
            rule = f"has {len(waves)} bands, and none at {count} of the {card_bands} of the model"
            raise InputError("scene", path, f"{rule}, such as {first:g} nm")
        bands, centres = [waves[index] for index in nearest], centres[nearest]
    left = [name for name in frame.columns if name not in bands]
    findings = [note("columns-no-bands", columns=left)] if left else []
    if centres is None:
        findings.append(note("bands-by-order", columns=bands))
    return TableRows(column_numbers(frame[bands]), centres, tuple(findings))


def _counted(
    path: Path,
    frame: Any,
    numeric: Sequence[str],
    waves: Sequence[str],
    count: int,
    no_bands: Collection[str | None],
) -> list[str]:
    """Return the only columns of a table that can be the bands of a model without wavelengths."""
    kept = [name for name in numeric if name not in no_bands]
    kept = without_codes(frame, kept, no_bands)
    # The columns of labels and groups are unknown if the model lies elsewhere than its run.
    by_text = [without_codes(frame, kept, [name]) for name in texts_of(frame)]
    kinds = [list(own.numbers) for own in by_stem(kept).values()]
    for columns in (bands_of(kept).names, waves, kept, *kinds, *by_text):
        if len(columns) == count:
            return list(columns)
    bands = waves if len(waves) >= 2 else kept
    rule = f"has {len(bands)} bands, and the model takes {count}: {some_of(bands)}"
    raise InputError("scene", path, rule)
