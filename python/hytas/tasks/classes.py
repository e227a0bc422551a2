"""Classes: a sample is of one of C classes, whose probabilities a network gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hytas.metrics import accuracy_report, calibration, log_mean
from hytas.spaces.names import FITS
from hytas.types import Array, Logits

if TYPE_CHECKING:
    from torch import Tensor, nn

    from hytas.data.samples import Samples
    from hytas.data.scene import Scene
    from hytas.model_card import ModelCard
    from hytas.models.linear import LinearSkip
    from hytas.tasks.protocol import Held

TIE = 1e-5  # ten times the largest measured difference between torch and onnxruntime
AGREEMENT, OA_DROP = 0.99, 0.005
"""What a file of reduced precision keeps, at least, of labels, and loses, at most, of OA."""
RACE_METHODS = ("svm", "rf")
"""Reference methods whose accuracy is shown beside that of racing networks."""


@dataclass(frozen=True)
class Classes:
    """The task of C classes: see `hytas.tasks.PredictionTask`.

    Attributes:
        outputs: C.
    """

    outputs: int

    fits = FITS
    methods: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "images": RACE_METHODS,
        "scene": (*RACE_METHODS, "lda", "logistic"),
        "table": (*RACE_METHODS, "lda", "logistic", "plsda"),
    }
    has_probabilities, counts_groups = True, False
    figure, ranking = "OA", "probability"
    unit = 1.0
    scaling: ClassVar[str | None] = None
    output_name, maps = "probabilities", ("classes", "confidence")
    scales_outputs, is_fine_tuned = False, True
    told = "classes"

    @classmethod
    def of_data(cls, data: Samples) -> Self | None:
        return cls(data.classes)

    @classmethod
    def of_card(cls, card: ModelCard) -> Self | None:
        return cls(len(card.class_ids))

    def relabelled(self, scene: Scene, card: ModelCard, owner: str) -> Scene:
        from hytas.data.join import with_classes

        return with_classes(scene, card.class_ids, card.class_names, owner)

    def fitted(self, targets: Array) -> Classes:
        return self

    def recalibrated(self, predicted: Array, targets: Array) -> Classes:
        return self

    def coded(self, targets: Array) -> NDArray[Any]:
        return targets

    def decoded(self, predicted: Array) -> NDArray[Any]:
        return predicted

    # Files of models

    def described(self, card: ModelCard) -> ModelCard:
        return card

    def with_intervals(self, card: ModelCard, records: Sequence[Held]) -> ModelCard:
        return card

    def read_out(self) -> nn.Module | None:
        return None

    def chosen(self, outputs: Array) -> NDArray[Any]:
        usable = np.isfinite(outputs).all(axis=1)
        return np.where(usable, outputs.argmax(axis=1), -1)

    def of_maps(self, maps: Sequence[Array], ids: Array) -> NDArray[Any]:
        order = np.argsort(ids)
        return np.asarray(order[np.searchsorted(ids, maps[0], sorter=order)])

    def compare_maps(self, maps: Sequence[Array], expected: Array, ids: Array) -> tuple[float, int]:
        classes, confidence = maps
        gap = largest_gap(confidence, expected.max(axis=1))
        return gap, int((classes != ids[expected.argmax(axis=1)]).sum())

    def judged(
        self, predicted: Array, expected: Array, targets: Array
    ) -> tuple[dict[str, Any], str]:
        agreement = float((predicted == expected).mean())
        accuracy = float((predicted == targets).mean())
        reference = float((expected == targets).mean())
        figures = {
            "pixels": len(predicted),
            "agreement": agreement,
            "OA": accuracy,
            "OA_torch": reference,
        }
        if agreement >= AGREEMENT and reference - accuracy <= OA_DROP:
            return figures, ""
        rule = (
            f"must give {100 * AGREEMENT:g} % of the exact labels and lose at most {OA_DROP:g} of "
            f"OA; {100 * agreement:.2f} % of {len(predicted)} labels agree and OA goes from "
            f"{reference:.4f} to {accuracy:.4f}"
        )
        return figures, rule

    def changed(self, output: Array, expected: Array) -> int:
        # Without ties that float32 cannot decide: torch itself may give another class there.
        rows = np.arange(len(expected))
        chosen, given = output.argmax(1), expected.argmax(1)
        lead = expected[rows, given] - expected[rows, chosen]
        return int(((chosen != given) & (lead > TIE)).sum())

    def gap(self, output: Array, expected: Array) -> float:
        return largest_gap(output, expected)

    def outside(self, outputs: Array) -> NDArray[Any]:
        return np.zeros(outputs.shape, np.bool_)

    def table(
        self, names: Sequence[str], outputs: Array, truth: Sequence[Any] | None
    ) -> dict[str, Sequence[str]]:
        best, confidence = outputs.argmax(axis=1), outputs.max(axis=1)
        valid = confidence > 0
        columns: dict[str, Sequence[str]] = {
            "class": [names[n] if has else "" for n, has in zip(best, valid, strict=True)],
            "confidence": [f"{value:.6f}" if value > 0 else "" for value in confidence],
        }
        return columns if truth is None else columns | {"label": list(truth)}

    # Learning

    def aims(self, targets: Tensor) -> Tensor:
        import torch.nn.functional as F

        return F.one_hot(targets, self.outputs).float()

    def draws(self, targets: NDArray[Any]) -> NDArray[np.float64] | None:
        return None

    def labels(self, targets: NDArray[Any], names: Sequence[str]) -> Sequence[Any]:
        return [names[target] for target in targets]

    def weights(self, targets: NDArray[Any], exponent: float) -> NDArray[np.float32] | None:
        if not exponent:
            return None
        counts = np.bincount(targets, minlength=self.outputs).astype(np.float64)
        weights = np.where(counts > 0, counts, 1.0) ** -exponent
        weights *= counts.sum() / (counts * weights).sum()
        return weights.astype(np.float32)

    def loss(
        self, logits: Tensor, aims: Tensor, weights: Tensor | None, smoothing: float
    ) -> Tensor:
        import torch.nn.functional as F

        return F.cross_entropy(logits, aims, weight=weights, label_smoothing=smoothing)

    def terms(self, logits: Tensor, aims: Tensor) -> tuple[Tensor, Tensor]:
        return logits, aims

    def sums(self, logits: Tensor, targets: Tensor) -> Tensor:
        import torch
        import torch.nn.functional as F

        losses = F.cross_entropy(logits, targets, reduction="none")
        hits = (logits.argmax(1) == targets).sum()
        return torch.stack([losses.sum(), hits.float(), torch.exp(-losses).sum()])

    def begin_skip(
        self, skip: LinearSkip, head: nn.Linear, spectra: Tensor, targets: Tensor
    ) -> None:
        from hytas.models.linear import begin_skip

        begin_skip(skip, head, spectra, targets)

    # Reading networks out, and judging them

    def predicted(self, logits: Logits) -> NDArray[Any]:
        return np.asarray(logits.argmax(axis=1), np.uint16)

    def merits(self, predicted: NDArray[Any], targets: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(predicted == targets)

    def race_figures(self, epoch: Sequence[float]) -> dict[str, float]:
        accuracy, probability = epoch
        return {"accuracy": accuracy, "probability": probability}

    def mean(self, logits: Sequence[Logits]) -> Logits:
        return log_mean(logits)

    def test_figures(
        self, card: ModelCard, truth: Array, predicted: Array, uncalibrated: Array
    ) -> dict[str, Any]:
        return {"ECE_before": calibration(truth, predicted, uncalibrated)["ECE"]}

    def report(
        self,
        truth: NDArray[Any],
        predicted: NDArray[Any],
        names: tuple[str, ...],
        probabilities: NDArray[Any] | None = None,
        groups: NDArray[Any] | None = None,
    ) -> dict[str, Any]:
        return accuracy_report(truth, predicted, names, probabilities)


def largest_gap(given: Array, expected: Array) -> float:
    """Return the largest absolute difference; infinite where a value is not finite."""
    gap = np.abs(given - expected)
    return float(gap.max()) if np.isfinite(gap).all() else float("inf")
