"""The protocol of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hytas.model_card import ModelCard
from hytas.types import Array, Logits

if TYPE_CHECKING:
    from torch import Tensor, nn

    from hytas.data.samples import Samples
    from hytas.data.scene import Scene
    from hytas.models.linear import LinearSkip


class Held(Protocol):
    """What networks gave on samples that they were not trained on."""

    @property
    def targets(self) -> Array:
        """(n, ...) as networks learn them."""

    @property
    def predicted(self) -> Array:
        """Predictions in the same form."""


class PredictionTask(Protocol):
    """What is predicted of a sample."""

    @property
    def outputs(self) -> int:
        """Outputs C of a network."""

    @property
    def fits(self) -> tuple[str, ...]:
        """How networks without a hidden layer are fitted (`hytas.models.linear.FUNCTIONS`)."""

    @property
    def methods(self) -> Mapping[str, tuple[str, ...]]:
        """Kind of the data ("images", "scene" or "table") -> reference methods in seconds."""

    @property
    def has_probabilities(self) -> bool:
        """Whether outputs are probabilities: only they can be calibrated or smoothed."""

    @property
    def counts_groups(self) -> bool:
        """Whether a group of samples, such as a day, counts as one held-out sample."""

    @property
    def figure(self) -> str:
        """Name of the mean merit of predictions."""

    @property
    def ranking(self) -> str:
        """Name of the ranking of finalists."""

    @property
    def unit(self) -> float:
        """How many tolerances of probabilities a difference of outputs may be (`gap`)."""

    @property
    def scaling(self) -> str | None:
        """The scaling of spectra that suits it; None is that of the configuration."""

    @property
    def output_name(self) -> str:
        """Name of the output of a model's graph."""

    @property
    def maps(self) -> tuple[str, ...]:
        """Names of what a scene graph gives of each pixel."""

    @property
    def scales_outputs(self) -> bool:
        """Whether a model holds a centre and a scale of each output."""

    @property
    def is_fine_tuned(self) -> bool:
        """Whether a model is trained further for another scene; values are only recalibrated."""

    @property
    def told(self) -> str:
        """What labels are: "classes", or the names of targets."""

    @classmethod
    def of_data(cls, data: Samples) -> Self | None:
        """Return the task, not fitted, of labelled data that it suits; None of others."""

    @classmethod
    def of_card(cls, card: ModelCard) -> Self | None:
        """Return the task of a model that it suits; None of others."""

    def relabelled(self, scene: Scene, card: ModelCard, owner: str) -> Scene:
        """Return a scene with the labels of a model.

        Args:
            owner: of the card, for the message.

        Raises:
            InputError: the scene has classes that the model lacks.
        """

    def fitted(self, targets: Array) -> PredictionTask:
        """Return the task as the targets of training samples decide it."""

    def recalibrated(self, predicted: Array, targets: Array) -> PredictionTask:
        """Return the task of a model of values with a slope and a bias for other samples."""

    def coded(self, targets: Array) -> NDArray[Any]:
        """Return targets as networks learn them."""

    def decoded(self, predicted: Array) -> NDArray[Any]:
        """Return predictions of networks in the form of targets."""

    def described(self, card: ModelCard) -> ModelCard:
        """Return the card of a model that has its outputs."""

    def with_intervals(self, card: ModelCard, records: Sequence[Held]) -> ModelCard:
        """Return the card with intervals by held-out samples, if outputs are values."""

    def read_out(self) -> nn.Module | None:
        """Return what follows the logits of a model; None for probabilities."""

    def chosen(self, outputs: Array) -> NDArray[Any]:
        """Return predictions in the form of targets, of outputs (n, C) of a model.

        Of outputs that are not finite, the class is -1.
        """

    def changed(self, output: Array, expected: Array) -> int:
        """Count samples for which a file predicts something else than it should."""

    def of_maps(self, maps: Sequence[Array], ids: Array) -> NDArray[Any]:
        """Return predictions, in the form of `chosen`, of what a scene graph gives of n pixels.

        Args:
            ids: (C,) of the classes of the model.
        """

    def compare_maps(self, maps: Sequence[Array], expected: Array, ids: Array) -> tuple[float, int]:
        """Return `gap` in tolerances of probabilities, and `changed`, of what a scene graph gives.

        Args:
            expected: outputs (n, C) of the model.
        """

    def judged(
        self, predicted: Array, expected: Array, targets: Array
    ) -> tuple[dict[str, Any], str]:
        """Return the figures of a model of reduced precision, and the rule that it breaks, or "".

        Args:
            predicted, expected: its predictions and those of the exact model, as by `chosen`.
        """

    def gap(self, output: Array, expected: Array) -> float:
        """Return the largest difference of outputs, in a unit that tells how far they may lie."""

    def outside(self, outputs: Array) -> NDArray[Any]:
        """Return which outputs (n, C) lie outside the range of the training samples."""

    def table(
        self, names: Sequence[str], outputs: Array, truth: Sequence[Any] | None
    ) -> dict[str, Sequence[str]]:
        """Return the columns of a table of predictions.

        Args:
            names: of the outputs.
            outputs: (n, C) of a model; where it is 0 or NaN throughout there is no data.
            truth: labels of the samples, or None.
        """

    def aims(self, targets: Tensor) -> Tensor:
        """Return what the loss aims at (n, C), from targets of samples."""

    def draws(self, targets: NDArray[Any]) -> NDArray[np.float64] | None:
        """Return the share (n,) of each training sample among those drawn for an epoch.

        None draws each once.
        """

    def labels(self, targets: NDArray[Any], names: Sequence[str]) -> Sequence[Any]:
        """Return targets as `table` takes them."""

    def weights(self, targets: NDArray[Any], exponent: float) -> NDArray[Any] | None:
        """Return the weights (C,) of outputs in the loss; None for equal ones."""

    def loss(
        self, logits: Tensor, aims: Tensor, weights: Tensor | None, smoothing: float
    ) -> Tensor:
        """Return the mean loss of logits (n, C)."""

    def terms(self, logits: Tensor, aims: Tensor) -> tuple[Tensor, Tensor]:
        """Return what another loss compares, both (n, C); an unknown aim is what is predicted."""

    def sums(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return sums (3,) over samples: loss, figure of an epoch, and what chooses the epoch."""

    def begin_skip(
        self, skip: LinearSkip, head: nn.Linear, spectra: Tensor, targets: Tensor
    ) -> None:
        """Start a linear skip, in place, and the head next to it at zero."""

    def predicted(self, logits: Logits) -> NDArray[Any]:
        """Return predictions of logits (n, C)."""

    def merits(self, predicted: NDArray[Any], targets: NDArray[Any]) -> NDArray[Any]:
        """Return the merit (n,) of each prediction; more is better."""

    def race_figures(self, epoch: Sequence[float]) -> dict[str, float]:
        """Return the figures of a finalist, of two of an epoch, for a ranking."""

    def mean(self, logits: Sequence[Logits]) -> Logits:
        """Return the logits (n, C) of the mean of networks."""

    def test_figures(
        self, card: ModelCard, truth: Array, predicted: Array, uncalibrated: Array
    ) -> dict[str, Any]:
        """Return figures of a model's card on test samples, next to those of `report`.

        Args:
            uncalibrated: (n,) confidence before the calibration.
        """

    def report(
        self,
        truth: NDArray[Any],
        predicted: NDArray[Any],
        names: tuple[str, ...],
        probabilities: NDArray[Any] | None = None,
        groups: NDArray[Any] | None = None,
    ) -> dict[str, Any]:
        """Return the figures of predictions of samples, JSON-ready."""
