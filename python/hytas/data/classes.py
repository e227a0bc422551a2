"""Match the classes of one scene with those of another."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hytas.data.labels.names import is_unnamed, number_findings
from hytas.data.scene import Scene
from hytas.errors import InputError


def class_indices(
    scene: Scene, ids: Sequence[int], names: Sequence[str]
) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return the index from 1 in `names` of each class 0..C of a scene, and unknown classes.

    Classes are the same if their names are; where one of them has no name of its own, if their
    ids are. Index 0 is of unlabelled pixels and of classes that are not among them.
    """
    indices, unknown = [0], []
    for own, name in zip(scene.class_ids, scene.class_names, strict=True):
        place = names.index(name) if name in names else None
        if place is None and own in ids:
            same = ids.index(own)
            if is_unnamed(name, own) or is_unnamed(names[same], own):
                place = same
        if place is None:
            unknown.append(name)
        indices.append(0 if place is None else place + 1)
    return np.array(indices, np.int32), unknown


def union_of_classes(scenes: Sequence[Scene]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return ids, ascending, and names of the classes of all scenes.

    Classes are the same as in `class_indices`. The first scene that has a class gives its id and
    its name; if another class has that id, the class gets the next free one.
    """
    names: dict[int, str] = {}
    for scene in scenes:
        for own, name in zip(scene.class_ids, scene.class_names, strict=True):
            if name in names.values():
                continue
            if own not in names or is_unnamed(names[own], own):
                names[own] = name
            elif not is_unnamed(name, own):
                names[max(names) + 1] = name
    return tuple(sorted(names)), tuple(names[number] for number in sorted(names))


def with_classes(scene: Scene, ids: Sequence[int], names: Sequence[str], owner: str) -> Scene:
    """Return a scene with other classes, which must include its own.

    Raises:
        InputError: they do not.
    """
    index, unknown = class_indices(scene, ids, names)
    if unknown:
        rule = f"has the class {unknown[0]}, which {owner} does not have"
        raise InputError("labels", scene.name, rule, "classes need the same names or ids")
    own = dict(zip(scene.class_ids, scene.class_names, strict=True))
    of_numbers = number_findings(own, owner, dict(zip(ids, names, strict=True)), scene.name)
    return replace(
        scene,
        labels=index[scene.labels],
        train=None if scene.train is None else index[scene.train],
        test=None if scene.test is None else index[scene.test],
        class_ids=tuple(ids),
        class_names=tuple(names),
        class_colours=None,
        train_counts=None,
        findings=(*scene.findings, *of_numbers),
    )
