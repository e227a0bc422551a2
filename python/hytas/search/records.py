"""The records of a run's store, and how its rows are read.

A damaged row raises ValueError, TypeError or LookupError.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.files import parse_json
from hytas.search.ranks import kind_of


@dataclass(frozen=True)
class Evaluation:
    """A scored candidate; a failed score is NaN, with its reason."""

    id: int
    generation: int
    architecture: dict[str, Any]
    costs: dict[str, int]
    scores: dict[str, float]
    reasons: dict[str, str]
    seconds: float

    @cached_property
    def kind(self) -> str:
        """The kind of network, and its depth (`kind_of`)."""
        return kind_of(self.architecture)

    @cached_property
    def kind_of_any_depth(self) -> str:
        """The kind of network (`kind_of`)."""
        return kind_of(self.architecture, depths=False)


@dataclass(frozen=True)
class Training:
    """One training of a finalist, in a rung of the race.

    Attributes:
        id: of its evaluation.
        recipe: name of the recipe that it was trained by.
        steps: optimiser steps, those of earlier rungs among them.
        fold: number of the fold that it was validated on.
        pixels: number of validation pixels of that fold.
        figures: name -> figure on these pixels; empty if the training failed.
        seconds: duration.
        reason: why it failed; empty if it did not.
        predictions: classes of the unlabelled pixels (`pack_classes`); may be empty.
        right: which validation pixels are classified correctly (`pack_flags`); may be empty.
    """

    id: int
    recipe: str
    steps: int
    fold: int
    pixels: int
    figures: dict[str, float]
    seconds: float
    reason: str = ""
    predictions: bytes = b""
    right: bytes = b""


@dataclass(frozen=True)
class MethodVote:
    """The predictions of a reference method, fitted without one fold.

    Attributes:
        method: its name.
        fold: number of the fold that is held out.
        pixels: number of validation pixels of that fold.
        right: number of these that are classified correctly.
        predictions: classes of the unlabelled pixels (`pack_classes`).
        held_out: classes of the validation pixels.
    """

    method: str
    fold: int
    pixels: int
    right: int
    predictions: bytes
    held_out: bytes = b""


@dataclass(frozen=True)
class FinalTraining:
    """The final training of the winner or a given architecture, and its ONNX file's accuracy.

    Attributes:
        architecture: its genes; an architecture that the user gave was never a candidate.
        seed: of weights and training.
        epochs: passes over the training pixels.
        pixels: training pixels.
        test_oa, test_aa, test_kappa: on the test pixels; no choice depends on them.
    """

    architecture: dict[str, Any]
    seed: int
    epochs: int
    pixels: int
    test_oa: float
    test_aa: float
    test_kappa: float


def read_evaluation(row: tuple[Any, ...]) -> Evaluation:
    """Return a row of `evaluations` as a candidate."""
    architecture, costs, scores, reasons = map(_object, row[2:6])
    for name, cost in costs.items():
        _whole(cost, name)
    number, generation = _whole(row[0], "id"), _whole(row[1], "generation")
    seconds = _number(row[6], "seconds")
    return Evaluation(number, generation, architecture, costs, _numbers(scores), reasons, seconds)


def read_final_training(row: tuple[Any, ...]) -> FinalTraining:
    """Return a row of `final_trainings` as a final training."""
    names = ("seed", "epochs", "pixels", "test_oa", "test_aa", "test_kappa")
    counts = [_whole(value, name) for name, value in zip(names, row[1:4], strict=False)]
    figures = [_number(value, name) for name, value in zip(names[3:], row[4:7], strict=True)]
    return FinalTraining(_object(row[0]), counts[0], counts[1], counts[2], *figures)


def read_training(row: tuple[Any, ...]) -> Training:
    """Return a row of `trainings` as a training."""
    names = ("id", "steps", "fold", "pixels")
    number, steps, fold, pixels = (
        _whole(value, name) for name, value in zip(names, (row[0], *row[2:5]), strict=True)
    )
    figures, seconds = _numbers(_object(row[5])), _number(row[6], "seconds")
    for name, value in (("recipe", row[1]), ("reason", row[7])):
        if not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}, a text needed")
    for name, value in (("classes", row[8]), ("right", row[9])):
        if not isinstance(value, bytes):
            raise TypeError(f"{name} is {str(value)[:40]!r}; bytes are needed")
    return Training(number, row[1], steps, fold, pixels, figures, seconds, row[7], *row[8:10])


def read_vote(row: tuple[Any, ...]) -> MethodVote:
    """Return a row of `ballots` as a vote."""
    method, *numbers, predictions, held_out = row
    names = ("fold", "pixels", "right")
    fold, pixels, right = (_whole(value, name) for name, value in zip(names, numbers, strict=True))
    if not (
        isinstance(method, str) and isinstance(predictions, bytes) and isinstance(held_out, bytes)
    ):
        raise TypeError(f"method {str(method)[:40]!r}: a text, and classes in bytes, are needed")
    return MethodVote(method, fold, pixels, right, predictions, held_out)


def pack_classes(classes: NDArray[np.int64]) -> bytes:
    """Return class indices (n,) as a store keeps them."""
    return classes.astype("<u2").tobytes()


def unpack_classes(packed: bytes) -> NDArray[np.int64]:
    """Return the class indices (n,) that `pack_classes` packed."""
    return np.frombuffer(packed, "<u2").astype(np.int64)


def pack_flags(flags: NDArray[np.bool_]) -> bytes:
    """Return flags (n,) as a store keeps them: a bit each."""
    return np.packbits(flags).tobytes()


def unpack_flags(packed: bytes, count: int) -> NDArray[np.bool_]:
    """Return the flags (count,) that `pack_flags` packed; none if there are fewer."""
    flags = np.unpackbits(np.frombuffer(packed, np.uint8)).astype(np.bool_)
    return flags[:count] if len(flags) >= count else flags[:0]


def _object(text: Any) -> dict[str, Any]:
    """Return the JSON object in a column of text."""
    values = parse_json(text, "a column") if isinstance(text, str) else text
    if not isinstance(values, dict):
        raise TypeError(f"{str(values)[:40]!r} is not a JSON object")
    return values


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {str(value)[:40]!r}; a whole number is needed")
    return value


def _number(value: Any, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is {str(value)[:40]!r}; a number is needed")
    return value


def finite_or_null(values: Mapping[str, float]) -> dict[str, float | None]:
    """Replace NaN and infinity by null, as JSON does not have them."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    """Return the numbers that `finite_or_null` wrote; null becomes NaN."""
    return {
        name: math.nan if value is None else _number(value, name) for name, value in values.items()
    }
