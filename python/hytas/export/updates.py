"""Check a model whose update was rounded, on pixels that no training saw."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import LabelledData, Scene
from hytas.deploy import DeployedModel
from hytas.deploy.tiles import read_tile
from hytas.errors import InputError
from hytas.export.evidence import classes_of_rows, in_few_rows, judge_labels

_BATCH = 256


def check_rounded(
    rounded: bytes, exact: bytes, scene: LabelledData, pixels: npt.NDArray[np.int64], bits: int
) -> dict[str, Any]:
    """Compare a rounded model file with the exact one.

    Args:
        exact: content of the file that it was rounded from.
        pixels: flat indices of pixels that no training saw.
        bits: of the rounded differences, for the message.

    Returns:
        pixels, agreement of the labels, OA and OA_torch, which is that of the exact file.
    """
    if not isinstance(scene, Scene):
        raise InputError("check", rule="must be a run on a scene; this one is on images")
    models = [
        DeployedModel.from_bytes(content, Path(name), "cpu")
        for name, content in (("rounded", rounded), ("exact", exact))
    ]
    if models[0].card.graph != "patch":
        pixels = pixels[in_few_rows(pixels, scene.width)]
    predicted, expected = (_classes(model, scene, pixels) for model in models)
    return judge_labels(f"{bits}bit", predicted, expected, scene.targets(pixels))


def _classes(
    model: DeployedModel, scene: Scene, pixels: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    model.check_scene(scene.bands, scene.wavelengths, scene.name)
    if model.card.graph == "patch":
        read = scene.reader(model.card.patch_size)
        parts = (pixels[at : at + _BATCH] for at in range(0, len(pixels), _BATCH))
        classes = [model.predict_patches(read(part)).argmax(1) for part in parts]
        return np.concatenate(classes)
    return classes_of_rows(model, lambda *rows: read_tile(scene.cube, *rows), pixels, scene.width)
