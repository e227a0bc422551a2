"""What a method reaches in each scene of a joined one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.data import LabelledData, Scene
from hytas.metrics import accuracy_report


def figures_by_scene(
    scene: LabelledData,
    pixels: NDArray[np.int64],
    predicted: NDArray[np.int64],
    confidence: NDArray[Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the accuracy in each part of a joined scene; nothing for one scene, or for images.

    Args:
        scene: whose parts are reported.
        pixels: flat indices (n,) of tested pixels.
        predicted: their class indices (n,).
        confidence: their probabilities (n, C), or None.

    Returns:
        For each part "name", "learnt" (whether it may train), and "test": a report of
        `accuracy_report`, or None where none of its pixels is tested.
    """
    found: list[dict[str, Any]] = []
    if not isinstance(scene, Scene):
        return found
    for part in scene.joined:
        inside = np.isin(pixels, part.pixels(scene.width))
        report = None
        if inside.any():
            sure = None if confidence is None else confidence[inside]
            truth = scene.targets(pixels[inside])
            report = accuracy_report(truth, predicted[inside], scene.class_names, sure)
        found.append({"name": part.name, "learnt": part.learnt, "test": report})
    return found
