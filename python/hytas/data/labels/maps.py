"""Check label maps, and number their classes 1..C; 0 means unlabelled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, Noted, note, refusal
from hytas.data.labels.names import number_findings
from hytas.data.limits import by
from hytas.data.palette import Colour
from hytas.types import Array, Floats

LabelMap = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Labels:
    """Label maps of one scene with classes 1..C; `ids` are the numbers of the file."""

    labels: LabelMap
    train: LabelMap | None
    test: LabelMap | None
    ids: tuple[int, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, eq=False)
class LabelMaps(Noted):
    """Labels on the pixels of a cube.

    Attributes:
        maps: name and values (H, W) of the map, or of the training and the test map: class ids,
            0 unlabelled.
        names: of classes, by id; those that the file names.
        polygons: (H, W) the number of the polygon or point that labels a pixel, from 1; None if
            the labels are a raster.
        values: (H, W, T) continuous targets in place of classes, NaN without one; or None.
        value_names, value_units: of the targets.
    """

    maps: tuple[tuple[str, npt.NDArray[np.int64]], ...]
    names: Mapping[int, str] = field(default_factory=dict)
    colours: Mapping[int, Colour] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    polygons: LabelMap | None = None
    files: tuple[Path, ...] = ()
    values: Floats | None = None
    value_names: tuple[str, ...] = ()
    value_units: tuple[str, ...] = ()


def check_map(name: str, values: Array, argument: str = "labels") -> npt.NDArray[np.int64]:
    """Return a label map as int64; NaN is unlabelled."""
    if values.dtype.kind not in "iubf":
        raise refusal("array-unfit", argument, name, "numbers", array=str(values.dtype))
    is_float = values.dtype.kind == "f"
    if is_float:
        values = np.where(np.isnan(values), 0, values)
    wrong = (values < 0) | (values >= 2**31)  # maps hold 32 bits
    if is_float:
        wrong |= values != np.floor(values)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        place = {"number": values[row, column], "row": row, "column": column}
        raise refusal("labels-not-whole", argument, name, "pixel", **place)
    whole: npt.NDArray[np.int64] = values.astype(np.int64)
    return whole


def join(maps: Sequence[tuple[str, Array]]) -> Labels:
    """Join one map, or a training and a test map, into labels of the classes 1..C."""
    checked = [(name, check_map(name, values)) for name, values in maps]
    findings: list[Finding] = []
    union = checked[0][1]
    if len(checked) == 2:
        union = _unite(checked, findings)
    ids = np.unique(union[union > 0])
    names = " and ".join(name for name, _ in checked)
    whole = [np.where(m > 0, np.searchsorted(ids, m) + 1, 0).astype(np.int32) for _, m in checked]
    class_ids = tuple(int(i) for i in ids)
    if len(whole) == 1:
        return Labels(whole[0], None, None, class_ids, tuple(findings))
    train, test = whole
    findings += _shifted(checked)
    train = np.where(test > 0, 0, train).astype(np.int32)
    missing = np.setdiff1d(test, train)
    if missing.size:
        given = int((whole[0] == missing[0]).sum())
        first, number = checked[0][0], class_ids[missing[0] - 1]
        facts: dict[str, Any] = {"number": number, "train": first, "test": checked[1][0]}
        facts |= {"count": given, "shifted": "".join(map(str, _shifted(checked[::-1])))}
        raise refusal("class-not-to-train", "labels", names, **facts)
    return Labels(np.maximum(train, test), train, test, class_ids, tuple(findings))


def _shifted(maps: Sequence[tuple[str, npt.NDArray[np.int64]]]) -> tuple[Finding, ...]:
    """Return a finding if the second map may count from 0, where the first counts from 1."""
    (first, ids), (second, own) = [
        (name, {i: f"class {i}" for i in np.unique(m).tolist() if i}) for name, m in maps
    ]
    return number_findings(own, first, ids, second)


def _unite(
    maps: Sequence[tuple[str, npt.NDArray[np.int64]]], findings: list[Finding]
) -> npt.NDArray[np.int64]:
    (train_name, train), (test_name, test) = maps
    names = f"{train_name} and {test_name}"
    if train.shape != test.shape:
        facts = {"own": by(train.shape), "other": test_name, "size": by(test.shape)}
        raise refusal("sizes-differ", "labels", train_name, **facts)
    both = (train > 0) & (test > 0)
    torn = both & (train != test)
    if torn.any():
        row, column = (int(i) for i in np.argwhere(torn)[0])
        facts = {"first": train[row, column], "second": test[row, column]}
        raise refusal("two-classes", "labels", names, "pixel", row=row, column=column, **facts)
    if both.any():
        count = int(both.sum())
        findings.append(note("pixels-in-both", count=count, train=train_name, test=test_name))
    return np.maximum(train, test)
