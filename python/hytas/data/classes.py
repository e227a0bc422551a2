"""Match the classes of one scene with those of another."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding
from hytas.data.labels.names import by_number, from_0, is_unnamed
from hytas.data.scene import Scene
from hytas.errors import InputError


def class_indices(
    scene: Scene, ids: Sequence[int], names: Sequence[str], owner: str
) -> npt.NDArray[np.int32]:
    """Return the index from 1 in `names` of each class 0..C of a scene; 0 stays unlabelled.

    Classes are the same if their names are; where one of them has no name of its own, if their
    ids are.
    """
    indices = [0]
    for own, name in zip(scene.class_ids, scene.class_names, strict=True):
        place = names.index(name) if name in names else None
        if place is None and own in ids:
            same = ids.index(own)
            if is_unnamed(name, own) or is_unnamed(names[same], own):
                place = same
        if place is None:
            rule = f"has class {own} ({name}), which {owner} does not have"
            hint = "classes need the same names or ids"
            if has_no_names(scene) and {*scene.class_ids} == {number + 1 for number in ids}:
                hint = f"its ids are those of {owner} plus 1: subtract 1, or name the classes"
            raise InputError("labels", scene.name, rule, hint)
        indices.append(place + 1)
    return np.array(indices, np.int32)


def has_no_names(scene: Scene) -> bool:
    """Return whether the names of a scene's classes are made from their numbers."""
    own = zip(scene.class_ids, scene.class_names, strict=True)
    return all(is_unnamed(name, number) for number, name in own)


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


def number_findings(
    scene: Scene, ids: Sequence[int], names: Sequence[str], owner: str
) -> tuple[Finding, ...]:
    """Return findings on a scene that does not name its classes: numbers match them."""
    if not has_no_names(scene):
        return ()
    matched = by_number(owner, dict(zip(ids, names, strict=True)), scene.name)
    return (*matched, *from_0(scene.name, scene.class_ids, owner, ids))


def with_classes(scene: Scene, ids: Sequence[int], names: Sequence[str], owner: str) -> Scene:
    """Return a scene with other classes, which must include its own.

    Raises:
        InputError: as `class_indices`.
    """
    index = class_indices(scene, ids, names, owner)
    return replace(
        scene,
        labels=index[scene.labels],
        train=None if scene.train is None else index[scene.train],
        test=None if scene.test is None else index[scene.test],
        class_ids=tuple(ids),
        class_names=tuple(names),
        class_colours=None,
        train_counts=None,
    )
