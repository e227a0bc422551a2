"""A table of spectra as a scene of one column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.findings import NOTE, WARNING, Check, Finding, found, refusal
from hytas.data.labels.maps import LabelMap
from hytas.data.options import SceneOptions
from hytas.data.scene import Scene, scene_from_arrays
from hytas.data.targets import checked_targets
from hytas.errors import InputError
from hytas.types import Array, Floats


@dataclass(frozen=True, eq=False)
class Spectra(Scene):
    """A table as a scene of N rows and one column, whose pixels have no neighbours.

    Attributes:
        polygons: (N, 1) number of the group of each row, from 1; None without groups.
    """

    has_map: ClassVar[bool] = False

    @property
    def groups(self) -> LabelMap | None:
        return self.polygons

    def side_of(self, patch_size: int) -> int:
        return 1

    def describe(self, used: int) -> str:
        groups = "" if self.polygons is None else f" in {self.polygons.max()} groups"
        return (
            f"table {self.name}: {self.height} spectra{groups}, {self.bands} bands "
            f"({used} used), {self.told}, {self.dtype}"
        )


class TableArrays(NamedTuple):
    """The parts of a table, as its file has them.

    Attributes:
        values: (N, bands).
        targets: (N,) labels, numbers or texts; or (N, T) continuous targets.
        groups: (N,), or None.
        wavelengths: (bands,) in nm, or None.
    """

    values: Array
    targets: Array
    groups: Array | None
    wavelengths: Floats | None
    findings: Sequence[Finding]
    sources: Sequence[Path]


def table_of(path: Path, parts: TableArrays, options: SceneOptions) -> Spectra:
    """Check the parts of a table, and return it."""
    targets, class_names = None, None
    if options.target_column:
        named = "target_column", options.target_column, parts.targets, options.units
        targets, labelled = checked_targets(*named, fractions=options.fractions)
        ids = labelled.astype(np.int32)
    else:
        unlabelled, names = options.unlabelled.given, options.class_names
        ids, texts = _classes(parts.targets, None if unlabelled is None else str(unlabelled))
        if len(texts) < 2:
            raise refusal("classes-few", "label_column", classes=texts)
        class_names = {number: names.get(text, text) for number, text in enumerate(texts, 1)}
    scene = scene_from_arrays(
        parts.values[:, None],
        ids[:, None],
        name=path.stem.removesuffix(".csv"),
        wavelengths=parts.wavelengths,
        class_names=class_names,
        sources=[str(path), *(str(file) for file in parts.sources if file != path)],
        findings=[*parts.findings, *found(TABLE_CHECKS, CheckedTable(parts, ids, class_names))],
        nodata=options.nodata_of(None, parts.values),
        bands=options.bands,
        targets=targets,
    )
    return as_spectra(scene, parts.groups)


class CheckedTable(NamedTuple):
    """A table with a class number (N,) for each row, 0 without a label; names of the classes."""

    parts: TableArrays
    ids: npt.NDArray[np.int32]
    class_names: Mapping[int, str] | None


def _unlabelled(table: CheckedTable) -> Iterator[Mapping[str, Any]]:
    if lost := int((table.ids == 0).sum()):
        yield {"count": lost}


def _marks(table: CheckedTable) -> Iterator[Mapping[str, Any]]:
    names = (table.class_names or {}).values()
    if "0" in names and len(names) > 2:
        yield {"name": "0", "mark": "0"}


def _repeated(table: CheckedTable) -> Iterator[Mapping[str, Any]]:
    labelled, groups = np.flatnonzero(table.ids), table.parts.groups
    owners: dict[int, set[Any]] = {}
    keys = [hash(row.tobytes()) for row in table.parts.values[labelled]]
    for key, group in zip(keys, labelled if groups is None else groups[labelled], strict=True):
        owners.setdefault(key, set()).add(group)
    if copies := sum(len(owners[key]) > 1 for key in keys):
        yield {"count": copies}


TABLE_CHECKS: tuple[Check[CheckedTable], ...] = (
    Check("left-out", NOTE, _unlabelled, case="rows"),
    Check("mark-is-a-class", WARNING, _marks),
    Check("rows-repeated", WARNING, _repeated),
)


def as_spectra(scene: Scene, groups: Array | None = None) -> Spectra:
    """Return a scene of one column (N, 1, bands) as a table, whose rows may belong to groups.

    Raises:
        InputError: all rows are of one group, or a row with a label is of none.
    """
    table = Spectra(**{one.name: getattr(scene, one.name) for one in fields(scene)})
    if groups is None:
        return table
    named = metadata_texts(np.asarray(groups))
    if lost := int(((named == "") & (scene.labels.ravel() > 0)).sum()):
        rule = f"names no group of {lost} rows with a label"
        raise InputError("group_column", rule=rule)
    texts, numbers = np.unique(named, return_inverse=True)
    if len(texts) < 2:
        raise InputError("group_column", rule=f"holds one group, {texts[0]}; 2 are needed")
    return table.with_polygons((numbers.astype(np.int32) + 1)[:, None])


def _classes(
    targets: Array, unlabelled: str | None = None
) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return the class number of each row, from 1, and the classes as texts."""
    texts: Array
    if targets.dtype.kind == "f":
        missing = ~np.isfinite(targets)
        whole = np.where(missing, 0, targets)
        if (wrong := (whole != np.round(whole)) | (np.abs(whole) > 2**53)).any():
            row = int(wrong.argmax())
            place = {"number": whole[row], "row": row + 1}
            raise refusal("labels-not-whole", "label_column", case="row", **place)
        texts = whole.astype(np.int64)
    elif targets.dtype.kind in "iub":
        texts, missing = targets, np.zeros(len(targets), np.bool_)
    else:
        texts = metadata_texts(targets)
        missing = texts == ""
    if unlabelled is not None:
        missing = missing | (texts.astype(str) == unlabelled)
    classes, numbers = np.unique(texts[~missing], return_inverse=True)
    ids = np.zeros(len(targets), np.int32)
    ids[~missing] = numbers + 1
    return ids, [str(name) for name in classes]


def metadata_texts(values: Array) -> Array:
    """Return values as texts without spaces around them; empty where a value is missing."""
    texts = []
    for one in values.tolist():
        if isinstance(one, bytes):
            one = one.decode("utf-8", errors="backslashreplace")
        texts.append("" if one is None or one != one else str(one).strip())
    return np.array(texts, np.str_)
