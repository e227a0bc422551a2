"""What a model reaches in each scene of a run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.metrics import accuracy_report
from hytas.run.prepared import Pixels, PreparedScene


def figures_by_scene(
    data: PreparedScene,
    predicted: NDArray[np.int64],
    confidence: NDArray[Any] | None = None,
    pixels: Pixels | None = None,
) -> list[dict[str, Any]]:
    """Return the accuracy on the reported pixels of each scene, if there are several.

    Args:
        data: the scenes.
        predicted: class indices (n,) of the pixels.
        confidence: (n, C) probabilities, or None.
        pixels: flat indices (n,), ascending; None means all that are reported.

    Returns:
        For each scene "name", "learnt" (whether it was trained on), and "test": a report of
        `accuracy_report`, or None where none of its pixels is tested.
    """
    scene, found = data.scene, []
    pixels = data.split.reported if pixels is None else pixels
    for part in scene.joined:
        inside = np.isin(pixels, part.pixels(scene.width))
        report = None
        if inside.any():
            sure = None if confidence is None else confidence[inside]
            truth = data.targets(pixels[inside])
            report = accuracy_report(truth, predicted[inside], scene.class_names, sure)
        found.append({"name": part.name, "learnt": part.learnt, "test": report})
    return found
