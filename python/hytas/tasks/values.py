"""Values: a sample has T continuous targets, some of which may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hytas.data.palette import palette
from hytas.metrics import value_report
from hytas.spaces.names import SHARE_FITS, VALUE_FITS
from hytas.tasks.classes import largest_gap
from hytas.types import Array, Floats, Logits

if TYPE_CHECKING:
    from torch import Tensor, nn

    from hytas.data.samples import Samples
    from hytas.data.scene import Scene
    from hytas.model_card import ModelCard
    from hytas.models.linear import LinearSkip
    from hytas.tasks.protocol import Held

DELTA = 1.0
"""Standardised error from which on the Huber loss grows linearly (Huber, Annals of Mathematical
Statistics 35, 1964)."""
CARD = ("units", "centre", "scale", "low", "high")
"""Facts that a card holds of each target."""
LEAST_FOR_SLOPE = 5
"""Samples of another instrument that a slope is fitted to."""
R2_DROP = 0.01
"""What a file of reduced precision loses, at most, of R2."""
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Of conformal intervals."""
METHODS = ("plsr", "ridge", "svr", "forest")


@dataclass(frozen=True)
class Values:
    """The task of T continuous targets: see `hytas.tasks.PredictionTask`.

    Networks learn standardised values, `(value - centre) / scale`; or shares as they are.

    Attributes:
        centre, scale: (T,) mean and deviation of the training samples.
        low, high: (T,) range of the training samples.
        fractions: whether the targets are shares that sum to one.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    fractions: bool = False

    scaling: ClassVar[str | None] = "common"
    has_probabilities, counts_groups = False, True
    figure, ranking = "R2", "rmse"
    unit = 10.0
    output_name, maps = "values", ("values",)
    scales_outputs, is_fine_tuned = True, False

    @classmethod
    def of_data(cls, data: Samples) -> Self | None:
        targets = data.continuous
        if targets is None:
            return None
        return cls(targets.names, targets.units, fractions=targets.fractions)

    def relabelled(self, scene: Scene, card: ModelCard, owner: str) -> Scene:
        return scene

    def fitted(self, targets: Array) -> Self:
        centre, scale = np.nanmean(targets, axis=0), np.nanstd(targets, axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        ends = np.nanmin(targets, axis=0), np.nanmax(targets, axis=0)
        moments = [tuple(map(float, each)) for each in (centre, scale, *ends)]
        return replace(self, centre=moments[0], scale=moments[1], low=moments[2], high=moments[3])

    @property
    def told(self) -> str:
        return f"targets {', '.join(self.names)}"

    def recalibrated(self, predicted: Array, targets: Array) -> Self:
        """Return the task with centre and scale of a model for another instrument.

        Slope and bias are those of least squares; of few samples, the bias alone.

        Args:
            predicted, targets: (n, T) in units.
        """
        if self.fractions:
            return self
        centre, scale = np.array(self.centre), np.array(self.scale)
        for at, (given, true) in enumerate(zip(predicted.T, targets.T, strict=True)):
            known = np.isfinite(true)
            given, true, slope = given[known], true[known], 1.0
            if len(true) >= LEAST_FOR_SLOPE and (spread := given.var()) > 0:
                slope = float(((given - given.mean()) * true).mean() / spread)
            slope = slope if slope > 0 else 1.0
            if len(true):
                centre[at] = slope * (centre[at] - given.mean()) + true.mean()
                scale[at] *= slope
        own = self.fitted(targets)
        low, high = np.minimum(self.low, own.low), np.maximum(self.high, own.high)
        moments = [tuple(each.tolist()) for each in (centre, scale, low, high)]
        return replace(self, centre=moments[0], scale=moments[1], low=moments[2], high=moments[3])

    @property
    def outputs(self) -> int:
        return len(self.names)

    @property
    def fits(self) -> tuple[str, ...]:
        return SHARE_FITS if self.fractions else VALUE_FITS

    @property
    def methods(self) -> Mapping[str, tuple[str, ...]]:
        names = (*METHODS, "fcls") if self.fractions else METHODS
        return {"scene": names, "table": names}

    # Files of models

    def described(self, card: ModelCard) -> ModelCard:
        facts = {name: list(getattr(self, name)) for name in CARD}
        return replace(
            card,
            targets={**facts, "fractions": self.fractions},
            class_names=self.names,
            class_ids=tuple(range(1, self.outputs + 1)),
            palette=tuple((int(r), int(g), int(b)) for r, g, b in palette(self.outputs)),
        )

    @classmethod
    def of_card(cls, card: ModelCard) -> Self | None:
        if card.targets is None:
            return None
        facts = dict(card.targets)
        numbers = {name: tuple(facts[name]) for name in CARD}
        return cls(tuple(card.class_names), fractions=bool(facts["fractions"]), **numbers)

    def with_intervals(self, card: ModelCard, records: Sequence[Held]) -> ModelCard:
        if not records or card.targets is None:
            return card
        gaps = [np.abs(self.decoded(one.predicted) - self.decoded(one.targets)) for one in records]
        widths = conformal_widths(np.concatenate(gaps))
        return replace(card, targets={**card.targets, "intervals": widths})

    def read_out(self) -> nn.Module | None:
        from hytas.models.regression import ReadOut

        return ReadOut(self.centre, self.scale, fractions=self.fractions)

    def chosen(self, outputs: Array) -> NDArray[Any]:
        return np.asarray(outputs, np.float64)

    def of_maps(self, maps: Sequence[Array], ids: Array) -> NDArray[Any]:
        return self.chosen(maps[0])

    def compare_maps(self, maps: Sequence[Array], expected: Array, ids: Array) -> tuple[float, int]:
        return self.gap(maps[0], expected) / self.unit, 0

    def judged(
        self, predicted: Array, expected: Array, targets: Array
    ) -> tuple[dict[str, Any], str]:
        aims = self.coded(targets)
        merits = [self.merits(self.coded(each), aims).mean() for each in (predicted, expected)]
        after, before = (float(np.nan_to_num(each, nan=-np.inf)) for each in merits)
        error = np.sqrt(((predicted - expected) ** 2).mean(axis=0))
        figures = {
            "pixels": len(predicted),
            self.figure: after,
            f"{self.figure}_torch": before,
            "RMSE_of_torch": [float(one) for one in error],
            "max_difference": self.gap(predicted, expected),
        }
        if before - after <= R2_DROP:
            return figures, ""
        rule = f"must lose at most {R2_DROP:g} of R2, which goes from {before:.4f} to {after:.4f}"
        return figures, rule

    def changed(self, output: Array, expected: Array) -> int:
        return 0

    def gap(self, output: Array, expected: Array) -> float:
        return largest_gap(output / np.array(self.scale), expected / np.array(self.scale))

    def outside(self, outputs: Array) -> NDArray[Any]:
        return np.asarray((outputs < np.array(self.low)) | (outputs > np.array(self.high)))

    def table(
        self, names: Sequence[str], outputs: Array, truth: Sequence[Any] | None
    ) -> dict[str, Sequence[str]]:
        columns: dict[str, Sequence[str]] = {}
        for at, name in enumerate(names):
            columns[name] = [_text(value) for value in outputs[:, at]]
            if truth is not None:
                columns[f"{name} observed"] = [_text(row[at]) for row in truth]
        return columns

    # Learning

    def coded(self, targets: Array) -> NDArray[Any]:
        if self.fractions:
            return np.asarray(targets, np.float32)
        return np.asarray((targets - np.array(self.centre)) / np.array(self.scale), np.float32)

    def decoded(self, values: Array) -> Floats:
        """Return values (n, T) as networks learn them in units."""
        if self.fractions:
            return np.asarray(values, np.float64)
        return np.asarray(values * np.array(self.scale) + np.array(self.centre), np.float64)

    def aims(self, targets: Tensor) -> Tensor:
        return targets

    def draws(self, targets: NDArray[Any]) -> NDArray[np.float64] | None:
        return None

    def labels(self, targets: NDArray[Any], names: Sequence[str]) -> Sequence[Any]:
        return list(targets)

    def weights(self, targets: NDArray[Any], exponent: float) -> NDArray[Any] | None:
        return None

    def loss(
        self, logits: Tensor, aims: Tensor, weights: Tensor | None, smoothing: float
    ) -> Tensor:
        import torch
        import torch.nn.functional as F

        values, wanted = self.terms(logits, aims)
        losses = F.huber_loss(values, wanted, reduction="none", delta=DELTA)
        known = ~torch.isnan(aims)
        return (losses * known).sum() / known.sum().clamp_min(1)

    def terms(self, logits: Tensor, aims: Tensor) -> tuple[Tensor, Tensor]:
        if not self.fractions:
            return logits, logits.detach().where(aims.isnan(), aims)
        scale = logits.new_tensor(self.scale)
        return logits.softmax(1) / scale, aims / scale

    def sums(self, logits: Tensor, targets: Tensor) -> Tensor:
        import torch

        values, wanted = self.terms(logits, targets)
        squared = torch.where(targets.isnan(), targets, (values - wanted) ** 2).nanmean(1)
        merits = (1.0 - squared.nan_to_num(0.0)).sum()
        loss = self.loss(logits, targets, None, 0.0) * len(logits)
        return torch.stack([loss, merits, merits])

    def begin_skip(
        self, skip: LinearSkip, head: nn.Linear, spectra: Tensor, targets: Tensor
    ) -> None:
        from hytas.models.regression import begin_ridge_skip

        if not self.fractions:
            begin_ridge_skip(skip, head, spectra, targets)

    # Reading networks out, and judging them

    def predicted(self, logits: Logits) -> NDArray[Any]:
        if not self.fractions:
            return logits
        from scipy.special import softmax

        return self.coded(softmax(logits, axis=1))

    def merits(self, predicted: NDArray[Any], targets: NDArray[Any]) -> NDArray[Any]:
        squared = np.asarray(predicted, np.float64) - targets
        if self.fractions:
            squared /= np.array(self.scale)
        squared *= squared
        known = ~np.isnan(squared)
        total = np.where(known, squared, 0.0).sum(axis=1)
        return np.asarray(1.0 - total / np.maximum(known.sum(axis=1), 1), np.float32)

    def race_figures(self, epoch: Sequence[float]) -> dict[str, float]:
        return {"R2": epoch[0], "rmse": float(max(0.0, 1.0 - epoch[0]) ** 0.5)}

    def mean(self, logits: Sequence[Logits]) -> Logits:
        each = [self.predicted(one) for one in logits]
        mean = np.asarray(np.mean(each, axis=0, dtype=np.float32))
        mean = np.log(np.maximum(self.decoded(mean), 1e-6)) if self.fractions else mean
        return np.asarray(mean, np.float32)

    def test_figures(
        self, card: ModelCard, truth: Array, predicted: Array, uncalibrated: Array
    ) -> dict[str, Any]:
        return coverage(card, truth, predicted)

    def report(
        self,
        truth: NDArray[Any],
        predicted: NDArray[Any],
        names: tuple[str, ...],
        probabilities: NDArray[Any] | None = None,
        groups: NDArray[Any] | None = None,
    ) -> dict[str, Any]:
        return value_report(truth, predicted, self.names, self.units, groups)


def _text(value: float) -> str:
    return f"{value:.7g}" if np.isfinite(value) else ""


def conformal_widths(gaps: Floats) -> dict[str, list[float | None]]:
    """Return level -> half width of the interval of each target.

    A sample from where the held-out ones come lies inside with at least the probability of its
    level (Vovk et al., Algorithmic Learning in a Random World, 2005; by folds, Barber et al.,
    Annals of Statistics 49, 2021).

    Args:
        gaps: (n, T) absolute errors of held-out samples; NaN where a target is missing.

    Returns:
        The width is None where samples are too few for a level.
    """
    columns = [np.sort(column[np.isfinite(column)]) for column in gaps.T]
    widths: dict[str, list[float | None]] = {}
    for level in LEVELS:
        places = [int(np.ceil(level * (len(column) + 1))) - 1 for column in columns]
        widths[f"{level:g}"] = [
            float(column[at]) if at < len(column) else None
            for column, at in zip(columns, places, strict=True)
        ]
    return widths


def coverage(card: ModelCard, truth: Array, predicted: Array) -> dict[str, Any]:
    """Return level -> share (T,) of samples inside the intervals of a card, as "coverage".

    Args:
        truth, predicted: (n, T), in units.
    """
    widths = (card.targets or {}).get("intervals", {})
    inside = {}
    for level, row in widths.items():
        gaps = np.abs(predicted - truth)
        inside[level] = [
            None if width is None else float((gap[np.isfinite(gap)] <= width).mean())
            for gap, width in zip(gaps.T, row, strict=True)
        ]
    return {"coverage": inside}
