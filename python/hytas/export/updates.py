"""Check a model whose update was rounded, on pixels that no training saw."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import LabelledData, Scene
from hytas.deploy import DeployedModel
from hytas.deploy.tiles import read_tile
from hytas.errors import InputError
from hytas.export.evidence import in_few_rows, judge_predictions, predicted_of_rows

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
        pixels, agreement of the labels, OA and OA_torch, which is that of the exact file; of values
        R2 and R2_torch.
    """
    if not isinstance(scene, Scene):
        raise InputError("check", rule="must be a run on a scene; this one is on images")
    models = [
        DeployedModel.from_bytes(content, Path(name), "cpu")
        for name, content in (("rounded", rounded), ("exact", exact))
    ]
    if models[0].card.graph != "patch":
        pixels = pixels[in_few_rows(pixels, scene.width)]
    (after, before), name = (_predictions(model, scene, pixels) for model in models), f"{bits}bit"
    return judge_predictions(name, after, before, scene.targets(pixels), models[1].task)


def _predictions(
    model: DeployedModel, scene: Scene, pixels: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Return class indices, or values (pixels, T)."""
    model.check_scene(scene.bands, scene.wavelengths, scene.name)
    if model.card.graph == "patch":
        read = scene.reader(model.card.patch_size)
        parts = (pixels[at : at + _BATCH] for at in range(0, len(pixels), _BATCH))
        return np.concatenate([model.task.chosen(model.predict_patches(read(p))) for p in parts])
    return predicted_of_rows(model, lambda *rows: read_tile(scene.cube, *rows), pixels, scene.width)
