"""Whether a model's maps are smoothed: what validation pixels say, and what it does to the test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from hytas.deploy.smoothing import around, as_probabilities, smooth_pixels
from hytas.metrics import calibration, compare_answers
from hytas.models.layers import probabilities
from hytas.results import SmoothingChoice
from hytas.run.prepared import Pixels, PreparedScene
from hytas.train import LabelledPixels, fit_temperature
from hytas.train.temperature import is_chance

LEAST_JUDGED = 10
"""Validation pixels that a choice needs."""
LEAST_PROBABILITY = 1e-12
"""The filter cuts some probabilities to 0, whose logarithm is not finite."""
MOST_NEIGHBOURS = 20_000
"""Pixels that a network of a fold classifies to judge smoothing; rather fewer are judged."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What smoothing does to pixels that a network was not trained on.

    Attributes:
        targets: (n,) true classes.
        raw: (n, C) their probabilities, at the temperature of the model.
        smoothed: (n, C) their smoothed probabilities.
    """

    targets: NDArray[np.int64]
    raw: NDArray[np.float32]
    smoothed: NDArray[np.float32]

    @classmethod
    def none(cls, classes: int) -> Self:
        """Return what is known without a pixel."""
        nothing = np.zeros((0, classes), np.float32)
        return cls(np.zeros(0, np.int64), nothing, nothing)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the pixels of all networks."""
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def accuracies(self) -> tuple[float, float] | None:
        """Overall accuracy raw and smoothed; None without a pixel."""
        if not len(self.targets):
            return None
        before, after = (
            float((one.argmax(axis=1) == self.targets).mean()) for one in (self.raw, self.smoothed)
        )
        return before, after

    def losses(self) -> tuple[float, float]:
        """Return the mean negative log likelihood raw and smoothed, both calibrated."""
        temperature, _, _ = self.calibrated()
        places = np.arange(len(self.targets)), self.targets
        before, after = (
            float(-np.log(np.maximum(one[places], LEAST_PROBABILITY)).mean())
            for one in (self.raw, as_probabilities(self.smoothed.T, temperature).T)
        )
        return before, after

    def calibrated(self) -> tuple[float, float, float]:
        """Fit the temperature of smoothed probabilities.

        Returns:
            The temperature, 1 if they are not above chance; and the expected calibration error
            without and with it.
        """
        values = np.log(np.maximum(self.smoothed.astype(np.float64), LEAST_PROBABILITY))
        temperature = fit_temperature(values, self.targets)
        if is_chance(temperature):
            temperature = 1.0
        predicted = self.smoothed.argmax(axis=1)
        before, after = (
            calibration(self.targets, predicted, as_probabilities(self.smoothed.T, number).T)
            for number in (1.0, temperature)
        )
        return temperature, before["ECE"], after["ECE"]


def choose_smoothing(asked: str, judged: Judged, kept: str | None = None) -> SmoothingChoice:
    """Choose by validation pixels, unless a method was asked for, and calibrate what it gives.

    Args:
        asked: "auto", "guided" or "none".
        judged: what networks say of pixels that they were not trained on.
        kept: the method of the model that the run began with, which "auto" keeps; or None.
    """
    pixels = len(judged.targets)
    found, enough = judged.accuracies, pixels >= LEAST_JUDGED
    method, reason = asked, f"--smooth {asked} asks for it"
    if asked == "auto" and kept is not None:
        method, reason = kept, "as the model that the run began with"
    elif asked == "auto" and enough:
        method, reason = _better(judged)
    elif asked == "auto":
        few = f"{pixels or 'no'} validation pixels"
        method, reason = "none", f"{few} to judge by; at least {LEAST_JUDGED} are needed"
    before, after = found or (None, None)
    choice = SmoothingChoice(method, pixels, before, after, reason)
    if not enough:
        return choice
    temperature, unsure, sure = judged.calibrated()
    return replace(choice, temperature=temperature, ECE_before=unsure, ECE_after=sure)


def _better(judged: Judged) -> tuple[str, str]:
    """Return the method that pixels speak for, and a reason where it is not their number alone.

    Smoothing must not have fewer pixels right. A lead beyond chance counts by itself
    (`hytas.metrics.compare_answers`). Few pixels often tell no more than chance. Then their
    likelihood, which all of them have a part in, must speak for smoothing as well.
    """
    raw, smoothed = (one.argmax(axis=1) == judged.targets for one in (judged.raw, judged.smoothed))
    gained, lost, beyond_chance = compare_answers(raw, smoothed)
    if gained < lost or beyond_chance:
        return ("guided" if gained > lost else "none"), ""
    before, after = judged.losses()
    equal = "as many are right either way" if gained == lost else "the lead is within chance"
    why = f"{equal}; negative log likelihood {before:.3f} raw and {after:.3f} smoothed"
    return ("guided" if after < before else "none"), why


def judge_smoothing(
    data: PreparedScene,
    held_out: Pixels,
    logits: Callable[[LabelledPixels], NDArray[np.float32]],
    temperature: float,
) -> Judged:
    """Compare raw and smoothed answers of a network on pixels that it was not trained on.

    The network classifies all pixels that smoothing reads around them. Of those the labels are not
    looked at.

    Args:
        data: the scene.
        held_out: flat indices of labelled pixels that the network did not learn.
        logits: from pixels (n,) to the network's logits (n, C).
        temperature: of the model, which its maps smooth probabilities at.
    """
    if not data.scene.has_map:
        return Judged.none(data.shape.classes)
    smoothing, held = data.guide, data.held
    judged = held_out[held.flat[held_out]]
    near = around(judged, held, 2 * smoothing.radius)
    while len(near) > MOST_NEIGHBOURS and len(judged) > LEAST_JUDGED:
        judged = judged[:: max(2, len(near) // MOST_NEIGHBOURS)]
        near = around(judged, held, 2 * smoothing.radius)
    if not len(judged):
        return Judged.none(data.shape.classes)
    blind = LabelledPixels(
        data.labelled(near).patches, near, np.zeros(len(near), np.int64), data.shape.classes
    )
    found, at, truth = logits(blind), np.searchsorted(near, judged), data.targets(judged)
    chances = probabilities(torch.from_numpy(found), temperature).numpy()
    smoothed = smooth_pixels(smoothing, data.pixel_scene.cube, data.preprocessing, near, chances)
    return Judged(truth, chances[at], smoothed[at])
