"""The checks of a scene: a table of rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hytas.data.bands import Bands, finite, format_bands
from hytas.data.findings import ERROR, NOTE, WARNING, Check
from hytas.data.labels.maps import Labels
from hytas.types import Array, Mask

USUAL_MARKS = (255, 65535)
"""Ids that other programs often use for unlabelled pixels."""
Facts = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class CheckedScene:
    """A cube and its labels, before they are a scene.

    Attributes:
        cube: (H, W, B).
        maps: name and values (H, W) of each label map, as given.
        labels: the maps without empty pixels.
        empty, finite: (H, W), where no band in use has data; where all have.
        alive, used: bands with data in a labelled pixel; those of them that are in use.
        least_classes: that must have pixels.
    """

    cube: Array
    maps: Sequence[tuple[str, Array]]
    labels: Labels
    empty: Mask
    finite: Mask
    alive: Bands
    used: Bands
    least_classes: int

    @property
    def lost(self) -> int:
        """Labels of empty pixels."""
        return sum(int((values[self.empty] != 0).sum()) for _, values in self.maps)


def _lost(scene: CheckedScene, are_all: bool) -> Facts:
    labels = sum(int((values != 0).sum()) for _, values in scene.maps)
    facts = {"count": scene.lost, "of": labels}
    return [facts] if scene.lost and (labels == scene.lost) == are_all else []


def _not_finite(scene: CheckedScene) -> Facts:
    wrong = np.argwhere(~(scene.finite | scene.empty) & (scene.labels.labels > 0))
    for row, column in wrong[:1].tolist():
        spectrum = scene.cube[row, column]
        band = int(scene.used[~finite(spectrum[scene.used])][0])
        place = {"row": row, "column": column, "band": band + 1, "value": float(spectrum[band])}
        yield {"count": len(wrong), **place}


def _marks(scene: CheckedScene) -> Facts:
    ids = scene.labels.ids
    marks = (i for i in ids[-1:] if i in USUAL_MARKS and i - 1 not in ids)
    return [{"name": str(i), "mark": str(i)} for i in marks]


def _dead(scene: CheckedScene) -> Facts:
    dead = np.setdiff1d(np.arange(scene.cube.shape[2]), scene.alive)
    return [{"count": dead.size, "bands": format_bands(dead)}] if dead.size else []


def _masked(scene: CheckedScene) -> Facts:
    masked = ~np.logical_or.reduce([scene.finite, *(values != 0 for _, values in scene.maps)])
    return [{"count": int(masked.sum()), "of": masked.size}] if masked.any() else []


def _of_one_name(names: Mapping[int, str]) -> Facts:
    for name, count in Counter(names.values()).items():
        if count > 1:
            yield {"ids": [i for i, own in names.items() if own == name], "name": name}


def _map_names(scene: CheckedScene) -> str:
    return " and ".join(name for name, _ in scene.maps)


def _classes_missing(scene: CheckedScene) -> Facts:
    return [{}] if scene.least_classes and not scene.labels.ids else []


def _single(scene: CheckedScene) -> Facts:
    ids = scene.labels.ids
    facts = {"classes": [f"class {number}" for number in ids], "zero": "zero_is_a_class"}
    return [facts] if len(ids) == 1 < scene.least_classes else []


SCENE_CHECKS: tuple[Check[CheckedScene], ...] = (
    Check("left-out", ERROR, partial(_lost, are_all=True), argument="data", case="labels"),
    Check("empty", ERROR, _classes_missing, _map_names, case="labels"),
    Check("classes-few", ERROR, _single, _map_names),
    Check("labelled-pixels-not-finite", ERROR, _not_finite, argument="data"),
    Check("left-out", WARNING, partial(_lost, are_all=False), case="labels"),
    Check("mark-is-a-class", WARNING, _marks, _map_names),
    Check("left-out", NOTE, _dead, case="bands-without-data"),
    Check("pixels-masked", NOTE, _masked),
)
NAME_CHECKS: tuple[Check[Mapping[int, str]], ...] = (
    Check("classes-of-one-name", WARNING, _of_one_name),
)
