"""What a change of a model does: accuracy before and after, on the old scene and on the new."""

from pathlib import Path
from typing import Any

import numpy as np

from hytas.data import Scene, Split, as_scene
from hytas.deploy import DeployedModel
from hytas.errors import InputError, one_line
from hytas.metrics import accuracy_report
from hytas.run.folder import RunFolder
from hytas.types import Pixels

MOST_PIXELS = 20_000
"""Test pixels of a scene that are compared; of more, as many, evenly spread."""
READ_PIXELS = 1024  # at a time


def changes(before: RunFolder, scene: Scene, pixels: Pixels, onnx: Path) -> dict[str, Any]:
    """Return the accuracy of a model, and of the model that it was trained further to.

    Args:
        pixels: flat indices of the test pixels of that scene.

    Returns:
        "from": the folder's name; "scenes": for each scene "name", "role" ("new" or "old"), and the
        reports "before" and "after"; "reason": why the old scene is missing, or "".
    """
    result: dict[str, Any] = {"from": before.path.resolve().name, "scenes": [], "reason": ""}
    try:
        models = [DeployedModel.load(path, "cpu") for path in (before.onnx, onnx)]
        result["scenes"].append(_compare(scene, pixels, models, "new"))
        result["scenes"].append(_compare(*_old(before), models, "old"))
    except (InputError, OSError) as error:
        result["reason"] = one_line(error)
    return result


def _old(folder: RunFolder) -> tuple[Scene, Pixels]:
    config, fingerprint = folder.read_config()
    scene = as_scene(config.load_scene(), "updates of a model")
    if scene.fingerprint != fingerprint:
        raise InputError(f"{config.first_data} is another scene than that of {folder.path}")
    return scene, Split.load(folder.split).test


def _compare(
    scene: Scene, pixels: Pixels, models: list[DeployedModel], role: str
) -> dict[str, Any]:
    if len(pixels) > MOST_PIXELS:
        pixels = pixels[np.linspace(0, len(pixels) - 1, MOST_PIXELS).astype(np.int64)]
    read, truth = scene.reader(models[0].card.patch_size), scene.targets(pixels)
    reports = []
    for model in models:
        parts = np.array_split(pixels, max(1, len(pixels) // READ_PIXELS))
        chances = np.concatenate([model.predict_patches(read(part)) for part in parts])
        names = model.card.class_names
        reports.append(accuracy_report(truth, chances.argmax(axis=1), names, chances))
    return {"name": scene.name, "role": role, "before": reports[0], "after": reports[1]}
