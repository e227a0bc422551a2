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
Cases = Iterable[Mapping[str, Any]]


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


def _lost(scene: CheckedScene, are_all: bool) -> Cases:
    labels = sum(int((values != 0).sum()) for _, values in scene.maps)
    reason = "hold no data (NaN, infinite values, or the no-data value)"
    reason = f"{reason} in the bands in use, which `bands` selects"
    facts = {"count": scene.lost, "what": f"of {labels} labelled pixels", "reason": reason}
    return [facts] if scene.lost and (labels == scene.lost) == are_all else []


def _not_finite(scene: CheckedScene) -> Cases:
    wrong = np.argwhere(~(scene.finite | scene.empty) & (scene.labels.labels > 0))
    for row, column in wrong[:1].tolist():
        spectrum = scene.cube[row, column]
        band = int(scene.used[~finite(spectrum[scene.used])][0])
        place = {"row": row, "column": column, "band": band + 1, "value": float(spectrum[band])}
        yield {"count": len(wrong), **place}


def _marks(scene: CheckedScene) -> Cases:
    ids = scene.labels.ids
    marks = (i for i in ids[-1:] if i in USUAL_MARKS and i - 1 not in ids)
    return [{"name": str(i), "mark": str(i)} for i in marks]


def _dead(scene: CheckedScene) -> Cases:
    dead = np.setdiff1d(np.arange(scene.cube.shape[2]), scene.alive)
    reason = f"({format_bands(dead)}) hold no finite value in a labelled pixel"
    return [{"count": dead.size, "what": "bands", "reason": reason}] if dead.size else []


def _masked(scene: CheckedScene) -> Cases:
    masked = ~np.logical_or.reduce([scene.finite, *(values != 0 for _, values in scene.maps)])
    return [{"count": int(masked.sum()), "of": masked.size}] if masked.any() else []


def _of_one_name(names: Mapping[int, str]) -> Cases:
    for name, count in Counter(names.values()).items():
        if count > 1:
            yield {"ids": [i for i, own in names.items() if own == name], "name": name}


def _map_names(scene: CheckedScene) -> str:
    return " and ".join(name for name, _ in scene.maps)


def _classes_missing(scene: CheckedScene) -> Cases:
    return [{"what": "labelled pixel"}] if scene.least_classes and not scene.labels.ids else []


def _single(scene: CheckedScene) -> Cases:
    ids = scene.labels.ids
    facts = {"classes": [f"class {number}" for number in ids], "zero": "zero_is_a_class"}
    return [facts] if len(ids) == 1 < scene.least_classes else []


SCENE_CHECKS: tuple[Check[CheckedScene], ...] = (
    Check("left-out", ERROR, partial(_lost, are_all=True), argument="data"),
    Check("empty", ERROR, _classes_missing, _map_names),
    Check("classes-few", ERROR, _single, _map_names),
    Check("labelled-pixels-not-finite", ERROR, _not_finite, argument="data"),
    Check("left-out", WARNING, partial(_lost, are_all=False)),
    Check("mark-is-a-class", WARNING, _marks, _map_names),
    Check("left-out", NOTE, _dead),
    Check("pixels-masked", NOTE, _masked),
)
NAME_CHECKS: tuple[Check[Mapping[int, str]], ...] = (
    Check("classes-of-one-name", WARNING, _of_one_name),
)
