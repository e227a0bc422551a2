"""Decide how the winner ships: its temperature, smoothing and self-training.

Every decision is a pure function of records (`hytas.decide.records`): no network, no folder and
no label of a test pixel. So it needs no torch, and can be tried on arrays.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from hytas.decide.records import HeldOut
from hytas.deploy.smoothing import as_probabilities
from hytas.deploy.unknown import MOST_CLASSES, UnknownGround
from hytas.metrics import LEAST_PROBABILITY, calibration, compare_predictions
from hytas.results import Calibration, SelfTraining, SmoothingChoice
from hytas.temperature import LIMITS, fit_temperature, is_chance, meet_accuracy
from hytas.types import Logits, Smoother

LEAST_PIXELS = 10
"""Held-out pixels that a decision needs. With few pixels, confidence stays lower."""
LEAST_PIXELS_UNKNOWN = 50
"""Held-out pixels that the threshold for unknown ground needs."""
LEAST_UNLABELLED = 100
"""Unlabelled pixels that an expected accuracy needs."""
MOST_SURER = 2.0
"""Factor by which an expected accuracy may lower the temperature of held-out pixels."""


class Conditions(NamedTuple):
    """What decides next to the records.

    Attributes:
        smooth: "auto", "guided" or "none", as the user asked.
        kept_smoothing: the method of the model that the run began with, which "auto" keeps; or
            None.
        disjoint: whether the split is spatially disjoint.
        no_self_training: why the run cannot train with unlabelled pixels; or "".
        folds: networks that were trained for their record; 0 if the record is the winner's.
        pixels: labelled pixels that could be held out.
        has_probabilities: whether outputs are probabilities, which have a confidence.
    """

    smooth: str = "auto"
    kept_smoothing: str | None = None
    disjoint: bool = True
    no_self_training: str = ""
    folds: int = 0
    pixels: int = 0
    has_probabilities: bool = True


class Decisions(NamedTuple):
    """How the winner ships; `smoothing` is None for images.

    `unknown` is the score for ground of no class of the model; None with few held-out pixels.
    """

    calibration: Calibration
    smoothing: SmoothingChoice | None
    self_training: SelfTraining
    unknown: UnknownGround | None = None

    def unknown_of(self, records: Sequence[HeldOut]) -> UnknownGround | None:
        """Return the score for unknown ground by other records of the same networks."""
        return fit_unknown(records, self.self_training.used, self.calibration.temperature)


def decide(
    records: Sequence[HeldOut], smoother: Smoother | None, conditions: Conditions
) -> Decisions:
    """Decide on self-training, then on the temperature and the smoothing of what it leaves.

    Args:
        records: of all folds, or the winner's; empty if too few pixels could be held out.
        smoother: the filter of the scene; None for images.
        conditions: what else decides.
    """
    self_training = _decide_self_training(records, smoother, conditions)
    if not conditions.has_probabilities:
        pixels = sum(len(record.pixels) for record in records)
        none = Calibration(pixels=pixels, reason="values have an interval in its place")
        return Decisions(none, None, self_training)
    temperature = calibrate(records, self_training.used, conditions)
    if smoother is None:
        return Decisions(temperature, None, self_training)
    maps = maps_of(records, self_training.used, smoother, temperature.temperature)
    # Held-out pixels may be harder than those on which confidence meets the agreement of networks.
    most = LIMITS[1] if temperature.agreement is None else 1.0
    smoothing = choose_smoothing(conditions.smooth, maps, conditions.kept_smoothing, most)
    unknown = fit_unknown(records, self_training.used, temperature.temperature)
    return Decisions(temperature, smoothing, self_training, unknown)


def fit_unknown(
    records: Sequence[HeldOut], self_trained: bool, temperature: float
) -> UnknownGround | None:
    """Fit the score for unknown ground on the held-out pixels of all records."""
    if sum(len(record.pixels) for record in records) < LEAST_PIXELS_UNKNOWN:
        return None
    logits = np.concatenate([record.final_logits(self_trained)[0] for record in records])
    targets = np.concatenate([record.targets for record in records])
    if not 2 <= logits.shape[1] <= MOST_CLASSES:
        return None
    return UnknownGround.fit(tempered(logits, temperature), targets)


def calibrate(
    records: Sequence[HeldOut], self_trained: bool, conditions: Conditions
) -> Calibration:
    """Fit the temperature on the logits of all records together.

    Where test pixels lie apart, held-out pixels may be much easier or harder than these. There the
    mean confidence on unlabelled pixels is to meet the accuracy that is expected of them.
    """
    pixels = sum(len(record.pixels) for record in records) if records else conditions.pixels
    if pixels < LEAST_PIXELS or not records:
        return Calibration(pixels=pixels, reason=f"the split has {_too_few(pixels)}")
    logits = np.concatenate([record.final_logits(self_trained)[0] for record in records])
    targets = np.concatenate([record.targets for record in records])
    temperature = fit_temperature(logits, targets)
    if is_chance(temperature):
        why = "after this short training, accuracy on held-out pixels is not above chance"
        return Calibration(pixels=pixels, folds=conditions.folds, reason=why)
    unlabelled = [record.final_logits(self_trained)[2] for record in records]
    agreement = expected_accuracy(unlabelled)
    count = 0 if agreement is None else len(unlabelled[0])
    if agreement is not None:
        # Networks may agree and be wrong: held-out pixels limit how sure they may be.
        wanted = meet_accuracy(np.concatenate(unlabelled), agreement)
        temperature = max(wanted, temperature / MOST_SURER)
    before, after = (_error(logits, targets, number) for number in (1.0, temperature))
    folds = conditions.folds
    return Calibration(temperature, pixels, folds, before, after, "", count, agreement)


def expected_accuracy(logits: Sequence[Logits]) -> float | None:
    """Return the share of unlabelled pixels at which two networks agree, in the mean of all pairs.

    Networks of one kind that were trained on other pixels agree about as often as they are right
    (Jiang et al., Assessing Generalization of SGD via Disagreement, ICLR 2022). No label is read.

    Args:
        logits: (n, C) of each network, on the same pixels.

    Returns:
        A share in 0..1; None for one network, or for few pixels.
    """
    predicted = [each.argmax(axis=1) for each in logits]
    if len(predicted) < 2 or min(map(len, predicted)) < LEAST_UNLABELLED:
        return None
    return float(np.mean([(one == other).mean() for one, other in combinations(predicted, 2)]))


class Maps(NamedTuple):
    """Class probabilities of compared pixels in a raw and in a smoothed map.

    Attributes:
        targets: (n,) true classes.
        raw: (n, C) probabilities, at the temperature of the model.
        smoothed: (n, C) smoothed probabilities.
    """

    targets: NDArray[np.int64]
    raw: NDArray[np.float32]
    smoothed: NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the pixels of all parts."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def raw_calibrated(self) -> NDArray[np.float32]:
        """The raw probabilities (n, C) at the temperature that fits these pixels best."""
        values = np.log(np.maximum(self.raw, LEAST_PROBABILITY))
        return tempered(values, fit_temperature(values, self.targets))

    def right(self, method: str) -> NDArray[np.bool_]:
        """Return which pixels (n,) a map has right, smoothed if the method is "guided"."""
        chances = self.smoothed if method == "guided" else self.raw
        return np.asarray(chances.argmax(axis=1) == self.targets)

    def at(self, temperature: float) -> NDArray[np.float64]:
        """Return the smoothed probabilities (n, C) at a temperature.

        In float32, the powers of a low temperature would all be 0.
        """
        chances: NDArray[np.float64] = as_probabilities(
            self.smoothed.T.astype(np.float64), temperature
        )
        return chances.T

    def calibrated(self, most: float = LIMITS[1]) -> tuple[float, float, float]:
        """Fit the temperature of smoothed probabilities.

        Args:
            most: largest temperature; 1 leaves probabilities at least as sure as the filter does.

        Returns:
            The temperature, 1 if they are not above chance; and the expected calibration error
            without and with it.
        """
        values = np.log(np.maximum(self.smoothed.astype(np.float64), LEAST_PROBABILITY))
        temperature = fit_temperature(values, self.targets)
        if is_chance(temperature):
            temperature = 1.0
        temperature = min(temperature, most)
        predicted = self.smoothed.argmax(axis=1)
        before, after = (
            calibration(self.targets, predicted, self.at(number)) for number in (1.0, temperature)
        )
        return temperature, before["ECE"], after["ECE"]


def choose_smoothing(
    smooth: str, maps: Maps, kept: str | None = None, most: float = LIMITS[1]
) -> SmoothingChoice:
    """Choose by held-out pixels, unless a method was asked for, and calibrate what it gives.

    Args:
        smooth: "auto", "guided" or "none".
        maps: of held-out pixels.
        kept: the method of the model that the run began with, which "auto" keeps; or None.
        most: largest temperature of smoothed probabilities.
    """
    pixels = len(maps.targets)
    enough = pixels >= LEAST_PIXELS
    method, reason = smooth, f"smooth {smooth} was asked for"
    if smooth == "auto" and kept is not None:
        method, reason = kept, "as the model that the run began with"
    elif smooth == "auto" and not enough:
        method, reason = "none", _too_few(pixels)
    if not pixels:
        return SmoothingChoice(method, reason=reason)
    before, after = (float(maps.right(each).mean()) for each in ("none", "guided"))
    choice = SmoothingChoice(method, pixels, before, after, reason)
    if not enough:
        return choice
    temperature, unsure, sure = maps.calibrated(most)
    choice = replace(choice, temperature=temperature, ECE_before=unsure, ECE_after=sure)
    if smooth != "auto" or kept is not None:
        return choice
    return choose_by_brier_score(choice, maps)


def choose_by_brier_score(
    choice: SmoothingChoice, maps: Maps, weights: NDArray[np.float64] | None = None
) -> SmoothingChoice:
    """Choose between the raw and the smoothed map by their Brier scores, the lower one first.

    A few pixels decide which map has more of them right. The squared error of all probabilities
    depends less on chance. Each map has the temperature that fits these pixels. If few pixels have
    most of the weight, the choice stays.

    Source: Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly Weather
    Review 78, 1950.

    Args:
        choice: so far; its temperature is that of smoothed probabilities.
        maps: of held-out pixels.
        weights: (C,) of the pixels of each class; None are equal weights.
    """
    own = np.ones(len(maps.targets)) if weights is None else weights[maps.targets]
    if own.sum() ** 2 < LEAST_PIXELS * (own**2).sum():  # Kish's effective number of pixels
        return choice
    truth = np.eye(maps.raw.shape[1])[maps.targets]
    raw, smoothed = (
        float(np.average(((chances - truth) ** 2).sum(axis=1), weights=own))
        for chances in (maps.raw_calibrated, maps.at(choice.temperature))
    )
    method = "guided" if smoothed < raw else "none"
    why = f"Brier score {raw:.3f} raw, {smoothed:.3f} smoothed"
    choice = replace(choice, method=method, reason=why)
    if weights is None:
        return choice
    return replace(choice, reason=f"{why}, by class shares", OA_raw=None, OA_smoothed=None)


def choose_self_training(smooth: str, disjoint: bool, before: Maps, after: Maps) -> SelfTraining:
    """Use self-training unless it loses held-out pixels; or if it gains more than chance would.

    Args:
        smooth: how maps are smoothed, "auto", "guided" or "none"; such maps are compared.
        disjoint: whether the split is spatially disjoint: then it is used unless it loses a pixel.
            Else it must gain more pixels than chance (`hytas.metrics.compare_predictions`).
        before, after: of the same networks without and with it, on the same pixels.
    """
    pixels = len(before.targets)
    if pixels < LEAST_PIXELS:
        return SelfTraining(False, reason=_too_few(pixels))
    old, new = (maps.right(choose_smoothing(smooth, maps).method) for maps in (before, after))
    gained, lost, beyond_chance = compare_predictions(old, new)
    used = gained >= lost if disjoint else beyond_chance
    reason = "" if used or gained < lost else "no more than chance would give"
    return SelfTraining(used, pixels, float(old.mean()), float(new.mean()), reason)


def _too_few(pixels: int) -> str:
    return f"{pixels or 'no'} validation pixels; at least {LEAST_PIXELS} are needed"


def _decide_self_training(
    records: Sequence[HeldOut], smoother: Smoother | None, conditions: Conditions
) -> SelfTraining:
    if conditions.no_self_training or smoother is None:
        return SelfTraining(False, reason=conditions.no_self_training)
    if not all(record.self_trained for record in records):
        return SelfTraining(False, reason="the self-training of a fold diverged")

    def maps(self_trained: bool) -> Maps:
        temperature = calibrate(records, self_trained, conditions).temperature
        return maps_of(records, self_trained, smoother, temperature)

    return choose_self_training(conditions.smooth, conditions.disjoint, maps(False), maps(True))


def maps_of(
    records: Sequence[HeldOut], self_trained: bool, smoother: Smoother, temperature: float
) -> Maps:
    """Return the probabilities of the compared pixels of all records."""
    parts = [Maps(np.zeros(0, np.int64), *(np.zeros((0, 1), np.float32),) * 2)]
    for record in records:
        if not len(record.compared):
            continue
        _, logits, _ = record.final_logits(self_trained)
        raw = tempered(logits, temperature)
        smoothed, at = (
            smoother(record.neighbours, raw),
            np.searchsorted(record.neighbours, record.compared),
        )
        parts.append(Maps(record.compared_targets, raw[at], smoothed[at]))
    return Maps.joined(parts[1:] or parts)


def tempered(logits: Logits, temperature: float) -> NDArray[np.float32]:
    """Return class probabilities (n, C) of logits (n, C)."""
    chances: NDArray[np.float32] = softmax(logits / np.float32(temperature), axis=1)
    return chances


def _error(logits: Logits, targets: NDArray[np.int64], temperature: float) -> float:
    """Return the expected calibration error at a temperature."""
    chances = softmax(logits.astype(np.float64) / temperature, axis=1)
    return float(calibration(targets, logits.argmax(axis=1), chances)["ECE"])
