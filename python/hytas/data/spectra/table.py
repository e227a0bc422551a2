"""A table of spectra as a scene of one column."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, note, refusal, warning
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


class Parts(NamedTuple):
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


def table_of(path: Path, parts: Parts, options: SceneOptions) -> Spectra:
    """Check the parts of a table, and return it."""
    if options.target_column:
        return _with_values(path, parts, options)
    unlabelled = options.labels.unlabelled.given
    ids, texts, remarks = _classes(parts.targets, None if unlabelled is None else str(unlabelled))
    if len(texts) < 2:
        rule = f"holds {'the single class ' + texts[0] if texts else 'no labels'}"
        raise InputError("label_column", rule=rule, hint="2 classes are needed")
    labelled, groups = ids > 0, parts.groups
    remarks += _copies(parts.values[labelled], None if groups is None else groups[labelled])
    names = options.labels.names
    scene = scene_from_arrays(
        parts.values[:, None],
        ids[:, None],
        name=path.stem,
        wavelengths=parts.wavelengths,
        class_names={number: names.get(text, text) for number, text in enumerate(texts, start=1)},
        sources=[str(path), *(str(one) for one in parts.sources if one != path)],
        findings=[*parts.findings, *remarks],
        nodata=options.nodata_of(None, parts.values),
        bands=options.bands,
    )
    return as_spectra(scene, groups)


def _with_values(path: Path, parts: Parts, options: SceneOptions) -> Spectra:
    """Return a table with continuous targets."""
    targets, labelled = checked_targets(
        "target_column",
        options.target_column,
        parts.targets,
        options.units,
        fractions=options.fractions,
    )
    lost, groups = int((~labelled).sum()), parts.groups
    remarks = [note("rows-unlabelled", count=lost)] if lost else []
    remarks += _copies(parts.values[labelled], None if groups is None else groups[labelled])
    scene = scene_from_arrays(
        parts.values[:, None],
        labelled.astype(np.int32)[:, None],
        name=path.stem.removesuffix(".csv"),
        wavelengths=parts.wavelengths,
        sources=[str(path)],
        findings=[*parts.findings, *remarks],
        nodata=options.nodata_of(None, parts.values),
        bands=options.bands,
        targets=targets,
    )
    return as_spectra(scene, groups)


def _copies(values: Array, groups: Array | None) -> list[Finding]:
    owners: dict[int, set[Any]] = {}
    keys = [hash(row.tobytes()) for row in values]
    for key, group in zip(keys, range(len(keys)) if groups is None else groups, strict=True):
        owners.setdefault(key, set()).add(group)
    copies = sum(len(owners[key]) > 1 for key in keys)
    return [warning("rows-repeated", count=copies)] if copies else []


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
) -> tuple[npt.NDArray[np.int32], list[str], list[Finding]]:
    """Return the class number of each row, from 1, the classes as texts, and findings."""
    texts: Array
    if targets.dtype.kind == "f":
        missing = ~np.isfinite(targets)
        whole = np.where(missing, 0, targets)
        if (whole != np.round(whole)).any() or (np.abs(whole) > 2**53).any():
            raise refusal("labels-with-decimals", "label_column")
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
    lost = int(missing.sum())
    findings = [note("rows-unlabelled", count=lost)] if lost else []
    if "0" in classes.astype(str) and len(classes) > 2:
        findings.append(warning("mark-is-a-class", name="0", mark="0"))
    return ids, [str(one) for one in classes], findings


def metadata_texts(values: Array) -> Array:
    """Return values as texts without spaces around them; empty where a value is missing."""
    texts = []
    for one in values.tolist():
        if isinstance(one, bytes):
            one = one.decode("utf-8", errors="backslashreplace")
        texts.append("" if one is None or one != one else str(one).strip())
    return np.array(texts, np.str_)
