"""Tables of spectra: labelled samples that are no pixels of a map.

A table is a CSV or Parquet file with a label column; or an array (N, bands), or series
(N, dates, bands), with N labels. Rows may belong to groups, such as the fields that they were
measured in. No group lies on two sides of a split.
"""

import csv
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.labels.formats import format_of
from hytas.data.no_data import check_nodata
from hytas.data.readers.table import open_file
from hytas.data.record import Contents, Variable, reading
from hytas.data.scene import Scene, scene_from_arrays
from hytas.data.splits.settings import SplitSettings
from hytas.data.splits.split import GROUPS, Split, group_folds
from hytas.data.splits.validation import take_validation
from hytas.data.wavelengths import nanometres
from hytas.errors import InputError
from hytas.types import Array, Pixels

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
ARRAYS = (".npy", ".npz", ".mat", ".h5", ".hdf5")
"""Files of arrays without names of axes, of which some are tables."""
KINDS = ("auto", "random", "folds", GROUPS)
"""Kinds of split that a table has."""
USUAL_FRACTION = 0.8
FARTHEST_NM = 0.5
"""Largest distance of a column's wavelength from a band of the model."""
SHOWN = 12
"""Names of columns in a message, at most."""


@dataclass(frozen=True, eq=False)
class Spectra(Scene):
    """A table as a scene of N rows and one column, whose pixels have no neighbours.

    Attributes:
        polygons: (N, 1) number of the group of each row, from 1; None without groups.
    """

    has_map: ClassVar[bool] = False

    def describe(self, used: int) -> str:
        """Return one line about the table; `used` bands enter the network."""
        groups = "" if self.polygons is None else f" in {self.polygons.max()} groups"
        return (
            f"table {self.name}: {self.height} spectra{groups}, {self.bands} bands "
            f"({used} used), {self.classes} classes, {self.dtype}"
        )


@dataclass(frozen=True)
class Columns:
    """The columns of a table, as the user names them: arguments of `load_scene`."""

    label: str | None = None
    group: str | None = None

    def __bool__(self) -> bool:
        return self.label is not None or self.group is not None

    def refuse(self, data: str) -> None:
        """Refuse column options for data that are not a table."""
        for argument, name in (("label_column", self.label), ("group_column", self.group)):
            if name is not None:
                raise InputError(argument, name, f"is for tables of spectra, and {data} is a scene")


@dataclass(frozen=True)
class Reading:
    """The options of a table: arguments of `load_scene`."""

    nodata: float | None = None
    bands: str | None = None
    unlabelled: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)


def load_spectra(
    data: Any, labels: Any, columns: Columns, wanted: Reading = Reading()
) -> Spectra | None:
    """Read a table; None if `data` is none.

    Args:
        data: the file of the table, or of an array and its labels.
        labels: the file of the labels of an array, if it is another one.
        columns: of labels and groups; of arrays their variables.
        wanted: options of the table.
    """
    if not isinstance(data, str | Path) or Path(data).is_dir():
        return None
    path = Path(data)
    if path.suffix.lower() in SUFFIXES and path.is_file():
        return _of_frame(path, labels, columns, wanted)
    if not path.is_file() or not (columns or path.suffix.lower() in ARRAYS):
        return None
    contents = open_file(path)
    label_file = contents if labels is None or _is_shapes(labels) else open_file(labels, "labels")
    table = _arrays(contents, label_file, columns)
    if table is None:
        columns.refuse(path.name)
        return None
    values, targets, groups, notes = table
    return _spectra(path, values, targets, groups, None, notes, wanted, label_file.files)


def _is_shapes(labels: Any) -> bool:
    if not isinstance(labels, str | Path) or not Path(labels).is_file():
        return True
    return format_of(Path(labels)) is not None


def _of_frame(path: Path, labels: Any, columns: Columns, wanted: Reading) -> Spectra:
    if labels is not None:
        raise InputError("labels", labels, "a table has its labels", "name `label_column`")
    frame = _frame(path)
    header = list(frame.columns)
    known = _some(sorted(header, key=lambda name: _wave(name) is not None))
    if columns.label is None:
        raise InputError("label_column", rule="missing", hint=f"{path.name} has {known}")
    for argument, name in (("label_column", columns.label), ("group_column", columns.group)):
        if name is not None and name not in header:
            raise InputError(argument, name, f"no column of {path.name}, which has {known}")
    if columns.label == columns.group:
        raise InputError("group_column", columns.group, "is the label column, too")
    others = [name for name in header if name not in (columns.label, columns.group)]
    bands, wavelengths, notes = _bands(frame, others)
    _refuse_text("data", path, frame[others])
    if left := [name for name in others if name not in bands]:
        notes.append(f"columns that are no bands: {_some(left)}")
    if len(bands) < 2:
        raise InputError(
            "data", path, f"has {len(bands)} columns of numbers; a table needs 2 bands"
        )
    values = _numbers(frame[bands])
    if values.dtype.kind not in "iu":
        values = values.astype(np.float32)
    groups = None if columns.group is None else _values_of(frame[columns.group])
    note = (
        f"understood as a table: labels in {columns.label}"
        + (f", groups in {columns.group}" if columns.group else "")
        + f", bands {bands[0]} to {bands[-1]}"
        + ("" if wavelengths is None else ", whose names are wavelengths")
    )
    targets = _values_of(frame[columns.label])
    return _spectra(path, values, targets, groups, wavelengths, [note, *notes], wanted, (path,))


def _bands(
    frame: Any, others: Sequence[str]
) -> tuple[list[str], npt.NDArray[np.float64] | None, list[str]]:
    numeric = [name for name in others if frame[name].dtype.kind in "iufb"]
    waves = {name: wave for name in numeric if (wave := _wave(name)) is not None}
    bands, wavelengths = numeric, None
    notes: list[str] = []
    if len(waves) >= 2:
        bands = list(waves)
        numbers = list(waves.values())
        wavelengths, why = nanometres(numbers)
        counted = np.array_equal(np.diff(numbers), np.ones(len(numbers) - 1)) and min(numbers) < 2
        if counted:
            wavelengths = None
        elif wavelengths is None:
            notes.append(f"names of bands are no wavelengths: {why}")
    return bands, wavelengths, notes


def describe_columns(path: Path) -> dict[str, Any]:
    """Return a description of a file of columns, JSON-ready."""
    frame = _frame(path)
    bands, wavelengths, notes = _bands(frame, list(frame.columns))
    others = {name: frame[name] for name in frame.columns if name not in bands}
    return {
        "what": "table",
        "path": str(path),
        "rows": len(frame),
        "bands": f"{len(bands)} columns of numbers: {_some(bands)}",
        "wavelengths": None
        if wavelengths is None
        else f"{wavelengths.min():.1f} to {wavelengths.max():.1f} nm",
        "other columns": [f"{name}, {one.nunique()} values" for name, one in others.items()],
        "notes": [
            *notes,
            "labels and groups are no bands, once their columns are named",
        ],
    }


def _frame(path: Path) -> Any:
    """Read a file of columns with pandas."""
    import pandas

    parquet = path.suffix.lower() in (".parquet", ".pq")
    try:
        with reading("data", path, "table"):
            frame = pandas.read_parquet(path) if parquet else _read_text(path)
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

    def read(decimal: str) -> Any:
        tab = "\t" if path.suffix.lower() == ".tsv" else None
        return pandas.read_csv(
            path, sep=tab, engine="python", encoding="utf-8-sig", decimal=decimal
        )

    def numbers(frame: Any) -> int:
        return sum(kind.kind in "iufb" for kind in frame.dtypes)

    def has_commas(column: Any) -> bool:
        texts = column.dropna().astype(str)
        return column.dtype.kind == "O" and bool(texts.str.contains(r"\d,\d").any())

    if not path.stat().st_size:
        raise InputError("data", path, "is empty")
    try:
        frame = read(".")
        with_commas = any(has_commas(column) for _, column in frame.items())
        return max(frame, read(","), key=numbers) if with_commas else frame
    except csv.Error:
        hint = "separate these by commas, semicolons or tabs"
        raise InputError("data", path, "its first line has no names of columns", hint) from None
    except UnicodeDecodeError:
        raise InputError("data", path, "is no text in UTF-8", "save it as CSV UTF-8") from None


def _refuse_text(argument: str, path: Path, frame: Any) -> None:
    named = frame[[name for name in frame.columns if _wave(name) is not None]]
    texts = [name for name in named.columns if named[name].dtype.kind not in "iufb"]
    numeric = len(named.columns) - len(texts)
    if texts and len(named.columns) > 1 and numeric < max(2, len(texts)):
        known = named[texts[0]].dropna().tolist() or [None]
        odd = next((one for one in known if _wave(str(one)) is None), known[0])
        raise InputError(argument, path, f"{texts[0]} holds {odd!r}, which is no number")


def _wave(name: str) -> float | None:
    """Return the number in the name of a column, such as 450.5, "X450" or "450 nm"."""
    text = name.strip().lower().removesuffix("nm").strip().removeprefix("x").removeprefix("wl")
    try:
        value = float(text.lstrip("_").replace(",", "."))
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _some(names: Sequence[str]) -> str:
    named = ", ".join(names[:SHOWN])
    return f"{named} and {len(names) - SHOWN} more" if len(names) > SHOWN else named


def _arrays(
    contents: Contents, label_file: Contents, columns: Columns
) -> tuple[Array, Array, Array | None, list[str]] | None:
    """Return the values, labels and groups of a table in arrays, and notes; None if it is none.

    Without a named column, an array is a table if its axes have no names, there is no cube or map,
    and one list of whole numbers has a value for each of its rows.
    """
    lists = [one for one in label_file.variables if one.kind in ("number", "text") and _length(one)]
    arrays = [one for one in contents.variables if one.kind == "number" and not _length(one)]
    arrays = [one for one in arrays if len(one.shape) in (2, 3) and np.prod(one.shape[1:]) > 1]
    cubes = [one for one in arrays if len(one.shape) == 3]
    maps = [one for one in (*arrays, *label_file.variables) if len(one.shape) == 2]
    named = None if columns.label is None else label_file.get(columns.label, "label_column")
    long = 0 if named is None else _length(named)
    for one in arrays:
        if long and long not in {each.shape[0] for each in arrays} and long in one.shape[1:]:
            rule = f"has a value for each column of {one}"
            raise InputError("label_column", columns.label, rule, "a spectrum is a row: transpose")
    grouping = None if columns.group is None else label_file.get(columns.group, "group_column")
    for wanted in sorted(arrays, key=lambda one: -one.size):
        rows, is_series = wanted.shape[0], len(wanted.shape) == 3
        fitting = [one for one in lists if _length(one) == rows]
        other = maps if is_series else cubes
        if columns.label is None and (any(wanted.dims) or other):
            continue
        if columns.label is None:
            fitting = [one for one in fitting if one is not grouping]
            fitting = [one for one in fitting if _may_label(_values(one, label_file))]
            if len(fitting) > 1 and not is_series:
                names = " and ".join(map(str, fitting))
                raise InputError(
                    "label_column",
                    rule=f"missing: {wanted} holds {rows} spectra, and {names} could be labels",
                )
        if columns.label is None and len(fitting) != 1:
            continue
        if named is not None and wanted.shape[0] != _length(named) in {a.shape[0] for a in arrays}:
            continue
        label = _chosen("label_column", columns.label, fitting, label_file)
        group, note = None, f"understood as a table: {wanted} holds {rows} spectra, {label} labels"
        if columns.group is not None:
            group = _chosen("group_column", columns.group, [*lists], label_file)
            note += f", {group} groups"
        if is_series:
            steps, bands = wanted.shape[1:]
            note += f"; the {steps} x {bands} values of a series are its bands"
        groups = None if group is None else _values(group, label_file)
        values = _values(wanted, contents).reshape(rows, -1)
        if groups is not None and len(groups) != rows:
            raise InputError("group_column", columns.group, f"{group} has not {rows} values")
        return values, _values(label, label_file), groups, [note]
    return None


def _values(variable: Variable, contents: Contents) -> Array:
    with reading("data", contents.path, f"{contents.format} file"):
        return variable.values().ravel()


def _may_label(values: Array) -> bool:
    if values.dtype.kind == "f" and (values != np.round(values)).any():
        return False
    return 2 * len(np.unique(values)) <= len(values)


def _length(variable: Variable) -> int:
    """Return the length of a list of values; 0 for an array of two axes or more."""
    long = [size for size in variable.shape if size > 1]
    return long[0] if len(long) == 1 and len(variable.shape) <= 2 else 0


def _chosen(
    argument: str, name: str | None, fitting: Sequence[Variable], contents: Contents
) -> Variable:
    if name is None:
        return fitting[0]
    variable = contents.get(name, argument)
    if variable not in fitting:
        raise InputError(argument, name, f"{variable} is no list with a value for each spectrum")
    return variable


def _spectra(
    path: Path,
    values: Array,
    targets: Array,
    groups: Array | None,
    wavelengths: npt.NDArray[np.float64] | None,
    notes: Sequence[str],
    wanted: Reading,
    sources: Sequence[Path],
) -> Spectra:
    ids, texts, remarks = _classes(targets, wanted.unlabelled)
    if len(texts) < 2:
        rule = f"holds {'the single class ' + texts[0] if texts else 'no labels'}"
        raise InputError("label_column", rule=rule, hint="2 classes are needed")
    labelled = ids > 0
    remarks += _copies(values[labelled], None if groups is None else groups[labelled])
    titles = {number: wanted.names.get(text, text) for number, text in enumerate(texts, start=1)}
    scene = scene_from_arrays(
        values[:, None],
        ids[:, None],
        name=path.stem,
        wavelengths=wavelengths,
        class_names=titles,
        sources=[str(path), *(str(one) for one in sources if one != path)],
        notes=[*notes, *remarks],
        nodata=None if wanted.nodata is None else check_nodata(wanted.nodata, values.dtype),
        bands=wanted.bands,
    )
    return as_spectra(scene, groups)


def _copies(values: Array, groups: Array | None) -> list[str]:
    owners: dict[int, set[Any]] = {}
    keys = [hash(row.tobytes()) for row in values]
    for key, group in zip(keys, range(len(keys)) if groups is None else groups, strict=True):
        owners.setdefault(key, set()).add(group)
    copies = sum(len(owners[key]) > 1 for key in keys)
    if not copies:
        return []
    of = "another row" if groups is None else "a row of another group"
    return [f"{copies} rows hold the values of {of}: a split may test on what was trained on"]


def as_spectra(scene: Scene, groups: Array | None = None) -> Spectra:
    """Return a scene of one column (N, 1, bands) as a table, whose rows may belong to groups.

    Raises:
        InputError: all rows are of one group, or a row with a label is of none.
    """
    table = Spectra(**{one.name: getattr(scene, one.name) for one in fields(scene)})
    if groups is None:
        return table
    named = _texts(np.asarray(groups))
    if lost := int(((named == "") & (scene.labels.ravel() > 0)).sum()):
        rule = f"names no group of {lost} rows with a label"
        raise InputError("group_column", rule=rule)
    texts, numbers = np.unique(named, return_inverse=True)
    if len(texts) < 2:
        raise InputError("group_column", rule=f"holds one group, {texts[0]}; 2 are needed")
    return table.with_polygons((numbers.astype(np.int32) + 1)[:, None])


def is_table(path: Path, bands: int) -> bool:
    """Return whether a file holds spectra and no scene: columns, or one array (N, bands)."""
    if path.suffix.lower() in SUFFIXES:
        return path.is_file()
    if path.suffix.lower() not in ARRAYS or not path.is_file():
        return False
    arrays = [one.shape for one in open_file(path, "scene").variables if one.kind == "number"]
    flat = [len(shape) for shape in arrays if len(shape) > 1 and np.prod(shape[1:]) == bands]
    return flat in ([2], [3]) and not any(len(s) == 3 and s[-1] == bands for s in arrays)


class Rows(NamedTuple):
    """The spectra of a table to classify.

    Attributes:
        values: (N, bands).
        wavelengths: of the bands in nm; None if the table names none.
        notes: one-line remarks.
    """

    values: Array
    wavelengths: npt.NDArray[np.float64] | None
    notes: tuple[str, ...] = ()


def read_rows(
    path: Path,
    card_bands: int,
    wavelengths: Sequence[float] | None,
    no_bands: Collection[str | None] = (),
) -> Rows:
    """Return the spectra of a table that a model classifies; labels are not needed.

    Args:
        path: CSV, TSV or Parquet, whose columns are found by wavelength, or are all columns of
            numbers, or those with names such as b1, b2, b3; or an array (N, bands).
        card_bands: bands of the model.
        wavelengths: of these in nm, or None.
        no_bands: names of columns that are no bands, such as that of the labels.
    """
    if path.suffix.lower() not in SUFFIXES:
        arrays = [one for one in open_file(path, "scene").variables if one.kind == "number"]
        fitting = [one for one in arrays if np.prod(one.shape[1:]) == card_bands]
        if len(fitting) != 1:
            raise InputError("scene", path, f"holds no array of spectra with {card_bands} bands")
        with reading("scene", path, "array"):
            return Rows(fitting[0].values().reshape(-1, card_bands), None)
    frame = _frame(path)
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "iufb"]
    _refuse_text("scene", path, frame[[one for one in frame.columns if one not in no_bands]])
    waves = [name for name in numeric if _wave(name) is not None]
    numbers = [_wave(name) for name in waves]
    centres = nanometres(numbers)[0] if len(waves) >= 2 else None
    if centres is None and len(waves) > card_bands:  # one that is no band spoils their unit
        centres = np.array(numbers, np.float64)
    if centres is None or wavelengths is None:
        bands, centres = _counted(path, numeric, waves, card_bands, no_bands), None
    else:
        gaps = np.abs(centres[:, None] - np.asarray(wavelengths))
        nearest, far = gaps.argmin(axis=0), gaps.min(axis=0) > FARTHEST_NM
        if far.any():
            count, first = int(far.sum()), wavelengths[int(far.argmax())]
            rule = f"has {len(waves)} bands, and none at {count} of the {card_bands} of the model"
            raise InputError("scene", path, f"{rule}, such as {first:g} nm")
        bands, centres = [waves[index] for index in nearest], centres[nearest]
    left = [name for name in frame.columns if name not in bands]
    notes = [f"columns that are no bands: {_some(left)}"] if left else []
    if centres is None:
        notes.append(f"bands by their order: {_some(bands)}")
    return Rows(_numbers(frame[bands]), centres, tuple(notes))


def _counted(
    path: Path,
    numeric: Sequence[str],
    waves: Sequence[str],
    count: int,
    no_bands: Collection[str | None],
) -> list[str]:
    """Return the only columns of a table that can be the bands of a model without wavelengths."""
    kept = [name for name in numeric if name not in no_bands]
    stems: dict[str, list[str]] = {}
    for name in kept:
        if (numbered := re.fullmatch(r"(.*?)\d+", name)) is not None:
            stems.setdefault(numbered[1], []).append(name)
    for columns in (waves, kept, *stems.values()):
        if len(columns) == count:
            return list(columns)
    bands = waves if len(waves) >= 2 else kept
    rule = f"has {len(bands)} bands, and the model takes {count}: {_some(bands)}"
    raise InputError("scene", path, rule)


def _values_of(column: Any) -> Array:
    """Return a column as numbers, NaN where one is missing, or as objects, None where one is."""
    kind = column.dtype.kind
    if kind not in "iuf":
        return np.asarray(column.astype(object).where(column.notna(), None), object)
    if kind == "f" or column.hasnans:
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    return np.asarray(column, f"{kind}8")


def _numbers(columns: Any) -> Array:
    values: Array = columns.to_numpy()
    return values if values.dtype.kind in "iufb" else columns.to_numpy(float, na_value=np.nan)


def _classes(
    targets: Array, unlabelled: str | None = None
) -> tuple[npt.NDArray[np.int32], list[str], list[str]]:
    """Return the class number of each row, from 1, the classes as texts, and notes."""
    texts: Array
    if targets.dtype.kind == "f":
        missing = ~np.isfinite(targets)
        whole = np.where(missing, 0, targets)
        if (whole != np.round(whole)).any() or (np.abs(whole) > 2**53).any():
            raise InputError(
                "label_column",
                rule="holds numbers with decimals, or larger than 2^53; a class is a name or a "
                "whole number",
            )
        texts = whole.astype(np.int64)
    elif targets.dtype.kind in "iub":
        texts, missing = targets, np.zeros(len(targets), np.bool_)
    else:
        texts = _texts(targets)
        missing = texts == ""
    if unlabelled is not None:
        missing = missing | (texts.astype(str) == unlabelled)
    classes, numbers = np.unique(texts[~missing], return_inverse=True)
    ids = np.zeros(len(targets), np.int32)
    ids[~missing] = numbers + 1
    lost = int(missing.sum())
    notes = [f"{lost} rows without a label are not used"] if lost else []
    return ids, [str(one) for one in classes], notes


def _texts(values: Array) -> Array:
    """Return values as texts without spaces around them; empty where a value is missing."""
    texts = []
    for one in values.tolist():
        if isinstance(one, bytes):
            one = one.decode("utf-8", errors="backslashreplace")
        texts.append("" if one is None or one != one else str(one).strip())
    return np.array(texts, np.str_)


def split_spectra(table: Spectra, settings: SplitSettings, seed: int) -> Split:
    """Split the rows of a table; no group lies on two sides.

    With groups, one of `folds` parts of the groups tests. Without them, 80 % of each class train,
    or as many as the settings say.
    """
    if settings.kind == "fixed" and table.train is not None and table.test is not None:
        chosen, test = np.flatnonzero(table.train), np.flatnonzero(table.test)
        taken = _validation(table, chosen, settings.validation_fraction, seed)
        return Split(*taken, test, GROUPS if table.polygons is not None else "random", seed, 0, 0.0)
    if settings.kind not in KINDS:
        rule = "is for scenes; the rows of a table have no place"
        raise InputError("split", settings.kind, rule, f"use {', '.join(KINDS)}")
    grouped = table.polygons is not None
    if grouped and settings.kind == "random":
        rule = "would put spectra of one group on both sides"
        raise InputError("split", "random", rule, f"use {GROUPS}, or leave out `group_column`")
    if settings.kind == GROUPS and not grouped:
        raise InputError("split", GROUPS, "needs groups", "name their column with `group_column`")
    generator = np.random.default_rng(seed)
    labels, rows = table.labels.ravel(), np.flatnonzero(table.labels)
    if grouped or settings.kind == "folds":
        parts = group_folds(table, rows, settings.folds, seed)
        if len(parts) < settings.folds:
            rule = f"must be at most {len(parts)}, the groups that hold the classes"
            raise InputError("folds", settings.folds, rule)
        chosen, test = parts[settings.fold]
        fraction = settings.train_fraction or 1.0
    else:
        chosen, test, fraction = rows, rows[:0], settings.train_fraction or USUAL_FRACTION
    kept = []
    for label in range(1, table.classes + 1):
        own = generator.permutation(chosen[labels[chosen] == label])
        count = settings.train_per_class or max(1, round(fraction * len(own)))
        kept.append(own[: count if grouped or len(own) < 2 else min(count, len(own) - 1)])
    chosen, sampled = np.sort(np.concatenate(kept)), chosen
    if not grouped and settings.kind != "folds":
        test = np.setdiff1d(sampled, chosen)
    both = np.intersect1d(labels[chosen], labels[test])
    if len(both) < 2:
        raise InputError(
            "split",
            settings.kind,
            "leaves fewer than 2 classes both to train and to test on",
            "use other `folds`, or more groups of each class",
        )
    notes = [
        f"{name} has no {'test' if label in labels[chosen] else 'training'} spectra"
        for label, name in enumerate(table.class_names, start=1)
        if label not in both
    ]
    test = test[np.isin(labels[test], labels[chosen])]
    train, validation = _validation(table, chosen, settings.validation_fraction, seed)
    kind = GROUPS if grouped else "random"
    return Split(train, validation, test, kind, seed, 0, 0.0, tuple(notes))


def _validation(table: Spectra, chosen: Pixels, share: float, seed: int) -> tuple[Pixels, Pixels]:
    if table.polygons is None or share == 0:
        return take_validation(table, chosen, share, False, np.random.default_rng([seed, 1]))
    parts = group_folds(table, chosen, max(2, round(1 / share)), seed + 1)
    return parts[0] if parts else (chosen, chosen[:0])
