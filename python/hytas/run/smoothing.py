"""Whether a model's maps are smoothed: what validation pixels say, and what it does to the test."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hytas.deploy.smoothing import Smoothing, around, smooth_pixels
from hytas.models.layers import probabilities
from hytas.run.prepared import Pixels, PreparedScene
from hytas.train import LabelledPixels, fit_temperature

LEAST_JUDGED = 10
"""Validation pixels that a choice needs."""
MOST_NEIGHBOURS = 20_000
"""Pixels that a network of a fold classifies to judge smoothing; rather fewer are judged."""


@dataclass(frozen=True)
class SmoothingChoice:
    """How maps are smoothed, and why.

    Attributes:
        method: "guided" or "none".
        pixels: validation pixels that were judged.
        OA_raw, OA_smoothed: accuracy on them of networks that were not trained on them.
        reason: where it was not these pixels that decided; else empty.
    """

    method: str
    pixels: int = 0
    OA_raw: float | None = None
    OA_smoothed: float | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)

    def describe(self) -> str:
        """Return one line to print."""
        found = ""
        if self.OA_raw is not None and self.OA_smoothed is not None:
            found = (
                f"OA on {self.pixels} validation pixels {self.OA_raw:.4f} raw and "
                f"{self.OA_smoothed:.4f} smoothed"
            )
        why = "; ".join(part for part in (self.reason, found) if part)
        return f"maps are {'smoothed' if self.method == 'guided' else 'not smoothed'}: {why}"


def choose_smoothing(
    asked: str, counts: NDArray[np.int64], kept: str | None = None
) -> SmoothingChoice:
    """Choose by validation pixels, unless a method was asked for.

    Args:
        asked: "auto", "guided" or "none".
        counts: (3,): pixels judged, right answers raw, right answers smoothed.
        kept: the method of the model that the run began with, which "auto" keeps; or None.
    """
    pixels, raw, smoothed = (int(number) for number in counts)
    before, after = (raw / pixels, smoothed / pixels) if pixels else (None, None)
    if asked != "auto":
        return SmoothingChoice(asked, pixels, before, after, f"--smooth {asked} asks for it")
    if kept is not None:
        why = "as the model that the run began with"
        return SmoothingChoice(kept, pixels, before, after, why)
    if pixels < LEAST_JUDGED:
        why = f"{pixels or 'no'} validation pixels to judge by; at least {LEAST_JUDGED} are needed"
        return SmoothingChoice("none", pixels, before, after, why)
    return SmoothingChoice("guided" if smoothed > raw else "none", pixels, before, after)


def fit_guide(data: PreparedScene) -> Smoothing:
    """The guide of a prepared scene, fitted on its pixels without a look at labels."""
    scene = data.scene
    return Smoothing.fit(scene.cube, data.preprocessing, scene.nodata, pixels=scene.learnt_pixels)


def held_pixels(data: PreparedScene) -> NDArray[np.bool_]:
    """(H, W), the pixels that hold data in a band in use."""
    return data.scene.holds_data(data.preprocessing.bands)


def count_right(
    data: PreparedScene,
    held_out: Pixels,
    logits: Callable[[LabelledPixels], NDArray[np.float32]],
) -> NDArray[np.int64]:
    """Right answers of a network for pixels that it was not trained on, raw and smoothed.

    The network classifies all pixels that smoothing reads around them. Of those the labels are not
    looked at. Probabilities are at the temperature that the judged pixels ask for.

    Args:
        data: the scene.
        held_out: flat indices of labelled pixels that the network did not learn.
        logits: from pixels (n,) to the network's logits (n, C).

    Returns:
        (3,): pixels judged, right raw, right smoothed.
    """
    smoothing, held = fit_guide(data), held_pixels(data)
    judged = held_out[held.flat[held_out]]
    near = around(judged, held, 2 * smoothing.radius)
    while len(near) > MOST_NEIGHBOURS and len(judged) > LEAST_JUDGED:
        judged = judged[:: max(2, len(near) // MOST_NEIGHBOURS)]
        near = around(judged, held, 2 * smoothing.radius)
    if not len(judged):
        return np.zeros(3, np.int64)
    blind = LabelledPixels(
        data.labelled(near).patches, near, np.zeros(len(near), np.int64), data.shape.classes
    )
    found, at, truth = logits(blind), np.searchsorted(near, judged), data.targets(judged)
    temperature = fit_temperature(found[at], truth) if len(judged) >= LEAST_JUDGED else 1.0
    chances = probabilities(torch.from_numpy(found), temperature).numpy()
    smoothed = smooth_pixels(smoothing, data.scene.cube, data.preprocessing, near, chances)
    answers = (one[at].argmax(axis=1) for one in (chances, smoothed))
    return np.array([len(judged), *(int((one == truth).sum()) for one in answers)], np.int64)
