"""Read the scenes of a run: training scenes and test-only scenes."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

from hytas.data.findings import warning
from hytas.data.join import join_scenes
from hytas.data.load import load_scene
from hytas.data.mapped import MappedCube, OwnScaling, Resampling
from hytas.data.scene import Scene
from hytas.data.spectra.table import Spectra
from hytas.errors import InputError
from hytas.settings import SCALE_BY

Files = tuple[str, str | tuple[str, ...] | None]
"""A scene's file, and the files of its labels, if they are others."""


def load_scenes(
    training: Sequence[Files],
    tested: Sequence[Files] = (),
    *,
    resample: bool = False,
    scale_by: str = "training",
    **how: Any,
) -> Scene:
    """Read scenes as one; a single scene without tests stays as `load_scene` reads it.

    Args:
        training: files of the scenes whose pixels may train.
        tested: files of the scenes that are only tested on.
        resample: take the bands of all scenes to those of the first one.
        scale_by: "scene" scales each scene by its own pixels first.
        how: arguments of `load_scene` that hold for every scene.

    Raises:
        InputError: a file is no scene, or the scenes do not fit each other.
    """
    if scale_by not in SCALE_BY:
        raise InputError("scale_by", scale_by, f"must be one of {', '.join(SCALE_BY)}")
    if len(training) + len(tested) == 1:
        scenes = [load_scene(data, labels, **how) for data, labels in training]
    else:  # one of several scenes may lack classes, and one that trains may lack labels
        scenes = [load_scene(*files, least_classes=0, **how) for files in training]
        scenes += [load_scene(*files, least_classes=1, **how) for files in tested]
        if not any(scene.classes for scene in scenes[: len(training)]):
            load_scene(*training[0], **how)  # says why it has no labels
    _refuse_leak(scenes[: len(training)], scenes[len(training) :])
    if resample:
        scenes = [scenes[0], *(resampled(scene, scenes[0]) for scene in scenes[1:])]
    if scale_by == "scene":
        scenes = [scaled_by_itself(scene) for scene in scenes]
    if len(scenes) == 1:
        return scenes[0]
    for scene in scenes:
        if isinstance(scene, Spectra):
            rule = "is a table of spectra, and a table trains alone"
            raise InputError("data", scene.name, rule, "put all spectra into one table")
    return join_scenes(scenes[: len(training)], scenes[len(training) :])


def _refuse_leak(training: Sequence[Scene], tested: Sequence[Scene]) -> None:
    for scene, other in combinations(training, 2):
        if _is_same(scene, other):
            rule = "is given twice, so its pixels would train and test"
            raise InputError("data", scene.name, rule, "give it once")
    for scene, other in product(tested, training):
        if _is_same(scene, other):
            rule = "is also a training scene"
            hint = "a split, or a training and a test map, divides the pixels of one scene"
            raise InputError("test_data", scene.name, rule, hint)


def _is_same(scene: Scene, other: Scene) -> bool:
    same_file = scene.sources[:1] == other.sources[:1] != ()
    return same_file or scene.cube_digest == other.cube_digest


def scaled_by_itself(scene: Scene) -> Scene:
    """Return the scene with float32 values of zero mean and unit deviation; no label is read."""
    cube = OwnScaling.fit(scene.cube, scene.nodata).of(scene.cube)
    return _changed(scene, cube, "scaled by itself", bad_bands=scene.bad_bands)


def resampled(scene: Scene, first: Scene) -> Scene:
    """Return a scene with the bands of the first one; a scene that has them stays as it is."""
    for one in (scene, first):
        if one.wavelengths is None:
            raise InputError("resample", rule=f"{one.name} has no wavelengths")
    assert scene.wavelengths is not None
    assert first.wavelengths is not None
    if np.array_equal(scene.wavelengths, first.wavelengths):
        return scene
    change = Resampling.between(
        scene.wavelengths,
        first.wavelengths,
        first.fwhm,
        bad_bands=scene.bad_bands,
        nodata=scene.nodata,
    )
    lacking = tuple(change.lacking.tolist())
    cube = MappedCube(scene.cube, change, first.bands)
    changed = _changed(scene, cube, f"resampled {first.wavelengths.tolist()}", bad_bands=lacking)
    findings = changed.findings
    if lacking:
        findings += (warning("left-out", scene.name, "bands-beyond", count=len(lacking)),)
    return replace(changed, wavelengths=first.wavelengths, fwhm=first.fwhm, findings=findings)


def _changed(scene: Scene, cube: MappedCube, how: str, bad_bands: tuple[int, ...]) -> Scene:
    digest = hashlib.sha256(f"{scene.fingerprint} {how}".encode()).hexdigest()
    return replace(scene, cube=cube.whole(), nodata=None, bad_bands=bad_bands, fingerprint=digest)
