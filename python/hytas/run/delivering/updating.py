"""What a change of a model does: accuracy before and after, on the old scene and on the new."""

from typing import Any

import numpy as np

from hytas.data import Scene, Split, as_scene
from hytas.deploy import DeployedModel
from hytas.errors import InputError, one_line
from hytas.metrics import accuracy_report
from hytas.run.context import Run
from hytas.run.folder import RunFolder
from hytas.run.prepared import Pixels

MOST_PIXELS = 20_000
"""Test pixels of a scene that are compared; of more, as many, evenly spread."""
READ_PIXELS = 1024  # at a time


def changes(run: Run) -> dict[str, Any] | None:
    """Return the accuracy of the model that the run began with, and of the run's own.

    Returns:
        None for a run that began with no model. "from": its folder's name; "scenes": for each
        scene "name", "role" ("new" or "old"), and the reports "before" and "after"; "reason": why
        the old scene is missing, or "".
    """
    start, data = run.context.start, run.context.data
    if start is None:
        return None
    found: dict[str, Any] = {"from": start.folder.path.resolve().name, "scenes": [], "reason": ""}
    try:
        models = [DeployedModel.load(each.onnx, "cpu") for each in (start.folder, run.folder)]
        found["scenes"].append(_compare(data.pixel_scene, data.split.reported, models, "new"))
        found["scenes"].append(_compare(*_old(start.folder), models, "old"))
    except (InputError, OSError) as error:
        found["reason"] = one_line(error)
    return found


def _old(folder: RunFolder) -> tuple[Scene, Pixels]:
    """Return the scene of a run and its test pixels."""
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
