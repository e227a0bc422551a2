"""Match the classes of one scene with those of another."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

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
            if _unnamed(name, own) or _unnamed(names[same], own):
                place = same
        if place is None:
            rule = f"has class {own} ({name}), which {owner} does not have"
            raise InputError("labels", scene.name, rule, "classes need the same names or ids")
        indices.append(place + 1)
    return np.array(indices, np.int32)


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


def _unnamed(name: str, number: int) -> bool:
    return name in (f"class {number}", f"label {number - 1}")
