"""Join scenes of one sensor into one scene, in which each of them is a part."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.bands import finite, measured_bands
from hytas.data.cube import zeros
from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.interpret.nodata import as_stored
from hytas.data.interpret.wavelengths import farthest_band
from hytas.data.labels.names import is_unnamed, number_findings
from hytas.data.patches import Part, sample_spectra
from hytas.data.scene import Scene, distinct_colours, numbered
from hytas.data.targets import Targets
from hytas.types import Array, Floats

GAP = 64
"""Unlabelled rows between two parts: more than guard bands and smoothing reach."""
MOST_NAME = 60
_SOME_MAPS = note("not-used", case="split-of-one-scene")
MOST_RATIO = 30.0
"""Of the levels of two scenes; reflectance is stored as 0 to 1, 0 to 100 or 0 to 10000."""


def join_scenes(training: Sequence[Scene], tested: Sequence[Scene] = ()) -> Scene:
    """Return one scene with the given ones below each other, `GAP` rows between them.

    Classes are those of all training scenes, and wavelengths those of the first. Pixels of a test
    scene of any other class are left out. Patches, splits and maps keep the parts apart.

    Args:
        training: scenes whose pixels are split into training, validation and test pixels.
        tested: scenes whose labelled pixels are only tested on, and reported separately.

    Raises:
        InputError: a scene has other bands, or all training scenes together hold fewer than two
            classes.
    """
    scenes = [*training, *tested]
    first = scenes[0]
    for scene in scenes[1:]:
        check_same_bands(scene, first.bands, first.wavelengths, first.name)
    parts = _parts(scenes, len(training))
    shape = (parts[-1].top + parts[-1].height, max(part.width for part in parts))
    ids, class_names = union_of_classes(training)
    if len(ids) < first.least_classes:
        given = " and ".join(scene.name for scene in training)
        raise refusal("classes-few", "labels", given, classes=class_names)
    matched = [class_indices(scene, ids, class_names) for scene in scenes]
    indices = [index for index, _ in matched]
    nodata, laid = _common_nodata(scenes), partial(_laid, parts=parts, shape=shape)
    labels = [index[scene.labels] for index, scene in zip(indices, scenes, strict=True)]
    maps = [(scene.train, scene.test) for scene in training]
    train = [index[one] for index, (one, _) in zip(indices, maps, strict=False) if one is not None]
    test = [index[one] for index, (_, one) in zip(indices, maps, strict=False) if one is not None]
    fixed = len(train) == len(training)
    known, owner = dict(zip(ids, class_names, strict=True)), "+".join(one.name for one in training)
    findings = (
        *(one.at(scene.name) for scene in scenes for one in scene.findings),
        *([_SOME_MAPS] if train and not fixed else []),
        *_of_other_scale(scenes),
        *_of_classes(scenes, matched, known, owner),
    )
    return replace(
        first,
        class_ids=ids,
        class_names=class_names,
        class_colours=_colours(training, indices, len(ids)),
        name="+".join(part.name for part in parts)[:MOST_NAME],
        cube=_cube(scenes, parts, shape, nodata),
        labels=laid(labels),
        train=laid(train) if fixed else None,
        test=laid(test) if fixed else None,
        valid=laid([scene.valid for scene in scenes]),
        sources=tuple(dict.fromkeys(source for scene in scenes for source in scene.sources)),
        fingerprint=_fingerprint(scenes, parts, indices, nodata),
        findings=findings,
        train_counts=None,
        bad_bands=_unusable(training, tested),
        nodata=nodata,
        polygons=_polygons(training, parts, shape),
        joined=parts,
        continuous=_targets(scenes, parts, shape[1]),
    )


def _parts(scenes: Sequence[Scene], training: int) -> tuple[Part, ...]:
    tops = np.cumsum([0, *(scene.height + GAP for scene in scenes[:-1])]).tolist()
    names = numbered([scene.name for scene in scenes])
    return tuple(
        Part(name, top, scene.height, scene.width, at < training, scene.cube_digest)
        for at, (scene, name, top) in enumerate(zip(scenes, names, tops, strict=True))
    )


def _of_classes(
    scenes: Sequence[Scene],
    matched: Sequence[tuple[npt.NDArray[np.int32], list[str]]],
    known: Mapping[int, str],
    owner: str,
) -> Iterator[Finding]:
    """Yield findings on classes that no scene trains, and on those that numbers identify."""
    for scene, (index, unknown) in zip(scenes, matched, strict=True):
        if unknown:
            lost = int(((scene.labels > 0) & (index[scene.labels] == 0)).sum())
            yield warning("classes-untrained", scene.name, count=lost, classes=unknown)
    own_names = [dict(zip(one.class_ids, one.class_names, strict=True)) for one in scenes]
    named = [pair for pair in zip(scenes, own_names, strict=True) if pair[1]]
    for scene, own in named[1:]:
        yield from number_findings(own, owner, known, scene.name)
        # Numbers of the first may count from 0, too.
        yield from number_findings(named[0][1], scene.name, own, named[0][0].name)


def _targets(scenes: Sequence[Scene], parts: Sequence[Part], width: int) -> Targets | None:
    """Return the continuous targets of all scenes by pixels of the joined one; or None."""
    kinds = {(one.names, one.units) if (one := scene.continuous) else ((), ()) for scene in scenes}
    if len(kinds) > 1:
        own, *others = (scene.told for scene in scenes)
        raise refusal("sizes-differ", "labels", case="targets", own=own, size="; ".join(others))
    all_targets = [scene.continuous for scene in scenes if scene.continuous is not None]
    if not all_targets:
        return None
    pixels = []
    for targets, scene, part in zip(all_targets, scenes, parts, strict=True):
        rows, columns = np.divmod(targets.pixels, scene.width)
        pixels.append((rows + part.top) * width + columns)
    values = np.concatenate([targets.values for targets in all_targets])
    return replace(all_targets[0], pixels=np.concatenate(pixels), values=values)


def _of_other_scale(scenes: Sequence[Scene]) -> Iterator[Finding]:
    """Yield a finding on each scene with far larger or smaller values than the first one."""
    first, level = scenes[0], _level(scenes[0])
    for scene in scenes[1:]:
        own = _level(scene)
        if level and own and not 1 / MOST_RATIO < own / level < MOST_RATIO:
            facts: dict[str, Any] = {"own": own, "first": first.name, "level": level}
            yield warning("values-of-other-scale", scene.name, **facts)


def _level(scene: Scene) -> float:
    """Return the 95 % quantile of the absolute values in a sample; 0 without any."""
    values = sample_spectra(scene.cube)
    kept = finite(values) if scene.nodata is None else finite(values) & (values != scene.nodata)
    return float(np.quantile(np.abs(values[kept].astype(np.float64)), 0.95)) if kept.any() else 0.0


def _common_nodata(scenes: Sequence[Scene]) -> float | None:
    """Return a no-data value for all scenes, which none of them has as a measurement.

    It is the value of one of the scenes if that is possible, else an end of the type's range or
    the lowest number of floats.
    """
    nodata_values = list(
        dict.fromkeys(scene.nodata for scene in scenes if scene.nodata is not None)
    )
    if not nodata_values:
        return None
    kind = np.result_type(*(scene.cube.dtype for scene in scenes))
    limits = np.finfo(np.float32) if kind.kind == "f" else np.iinfo(kind)
    for value in (*nodata_values, float(limits.min), float(limits.max)):
        others = [scene for scene in scenes if scene.nodata != value]
        if as_stored(value, kind) is None:
            continue
        if not any((line == value).any() for scene in others for line in scene.cube):
            return value
    return nodata_values[0]


def check_same_bands(scene: Scene, bands: int, wavelengths: Floats | None, owner: str) -> None:
    """Refuse a scene whose bands are not those of another scene or of a model.

    Args:
        bands: number of them that the other has.
        wavelengths: of the other; they are compared where both are known.

    Raises:
        InputError: another number of bands, or a band that is more than a spacing away.
    """
    if scene.bands != bands:
        facts: dict[str, Any] = {"bands": scene.bands, "other": owner, "size": bands}
        raise refusal("sizes-differ", "data", scene.name, "bands", **facts)
    if scene.wavelengths is None or wavelengths is None:
        return
    if (farthest := farthest_band(scene.wavelengths, wavelengths)) is not None:
        band, spacing = farthest
        facts = {"band": band + 1, "own": scene.wavelengths[band], "at": wavelengths[band]}
        facts |= {"other": owner, "spacing": spacing}
        raise refusal("sizes-differ", "data", scene.name, "wavelengths", **facts)


def _cube(
    scenes: Sequence[Scene], parts: Sequence[Part], shape: tuple[int, int], nodata: float | None
) -> Array:
    kind = np.result_type(*(scene.cube.dtype for scene in scenes))
    cube = zeros((*shape, scenes[0].bands), kind)
    for scene, part in zip(scenes, parts, strict=True):
        into = cube[part.window]
        for row, line in enumerate(scene.cube):
            into[row] = line
            if scene.nodata is not None and scene.nodata != nodata:
                into[row][line == scene.nodata] = nodata
    return cube


def _colours(
    scenes: Sequence[Scene], indices: Sequence[npt.NDArray[np.int32]], count: int
) -> tuple[tuple[int, int, int], ...] | None:
    colours: dict[int, tuple[int, int, int]] = {}
    for scene, index in zip(scenes, indices, strict=False):
        for number, colour in zip(index[1:].tolist(), scene.class_colours or (), strict=False):
            colours.setdefault(number, colour)
    own = distinct_colours(colours, range(1, count + 1))
    return own if own is not None and len(own) == count else None


def _laid(maps: Sequence[Array], parts: Sequence[Part], shape: tuple[int, int]) -> Array:
    result = np.zeros(shape, maps[0].dtype)
    for values, part in zip(maps, parts, strict=False):
        result[part.window] = values
    return result


def _polygons(training: Sequence[Scene], parts: Sequence[Part], shape: tuple[int, int]) -> Any:
    """Return the numbers of the polygons, each number once; None if a scene has a label map."""
    maps, most = [], 0
    for scene in training:
        if scene.polygons is None:
            return None
        maps.append(np.where(scene.polygons > 0, scene.polygons + most, 0).astype(np.int32))
        most = int(maps[-1].max(initial=most))
    return _laid(maps, parts, shape)


def _unusable(training: Sequence[Scene], tested: Sequence[Scene]) -> tuple[int, ...]:
    bad = {band for scene in (*training, *tested) for band in scene.bad_bands}
    for scene in (scene for scene in training if scene.classes):
        alive = measured_bands(scene.cube, scene.labels > 0, scene.nodata)
        bad |= set(range(scene.bands)) - set(alive.tolist())
    return tuple(sorted(bad))


def _fingerprint(
    scenes: Sequence[Scene],
    parts: Sequence[Part],
    indices: Sequence[npt.NDArray[np.int32]],
    nodata: float | None,
) -> str:
    facts = [
        (scene.fingerprint, part.trains, index.tolist())
        for scene, part, index in zip(scenes, parts, indices, strict=True)
    ]
    return hashlib.sha256(repr((facts, nodata)).encode()).hexdigest()


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
        raise refusal("classes-unknown", "labels", scene.name, names=unknown, owner=owner)
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
