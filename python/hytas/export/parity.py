"""Compare exported files with torch on real pixels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.export.c_source import open_c
from hytas.export.onnx_file import inference_copy
from hytas.export.quiet import quiet
from hytas.models import SensorModel
from hytas.models.layers import probabilities
from hytas.types import Array

TOLERANCE = 1e-4
TIE = 1e-5  # ten times the largest measured difference between torch and onnxruntime

Run = Callable[[Array], Array]


class ExportError(InputError):
    """An exported file gives other results than the model.

    Attributes:
        written: the formats that were written nevertheless, with their figures.
    """

    written: Mapping[str, Mapping[str, Any]] = {}


def refused(
    refusals: Sequence[InputError], written: Mapping[str, Mapping[str, Any]]
) -> ExportError:
    """Return one error for the refusals of several formats."""
    if len(refusals) == 1:
        only = refusals[0]
        fields = (only.argument, only.value, only.rule, only.hint)
        error = ExportError(*(fields if only.rule else fields[:1]))
    else:
        error = ExportError(
            "formats",
            ",".join(str(one.value) for one in refusals),
            "; ".join(f"{one.value}: {one.rule or one.argument}" for one in refusals),
            next((one.hint for one in refusals if one.hint), ""),
        )
    error.written = written
    return error


@dataclass(frozen=True)
class Difference:
    """The difference of one exported file from torch.

    Attributes:
        largest: largest absolute difference of a probability.
        changed: pixels whose most probable class differs.
    """

    largest: float
    changed: int


@dataclass(frozen=True)
class Parity:
    """The result of `check_parity`.

    Attributes:
        pixels: number of compared pixels.
        predicted: (pixels,) predicted class indices of the first format.
        confidence: (pixels,) probabilities of these classes in the first format.
        uncalibrated: (pixels,) probabilities of torch's predicted classes at temperature 1.
    """

    pixels: int
    differences: Mapping[str, Difference]
    predicted: npt.NDArray[np.int64]
    confidence: npt.NDArray[np.float32]
    uncalibrated: npt.NDArray[np.float32]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without the predictions."""
        return {
            "pixels": self.pixels,
            "formats": {
                name: {"max_difference": value.largest, "labels_changed": value.changed}
                for name, value in self.differences.items()
            },
        }


def open_torch(model: SensorModel) -> Run:
    """Return the model itself as a function of raw patches."""
    reference = inference_copy(model)

    def run(patches: Array) -> Array:
        with torch.no_grad():
            return np.asarray(reference(torch.from_numpy(patches)).numpy())

    return run


def open_onnx(path: str | Path) -> Run:
    """Return an ONNX file as a function of raw patches, on the CPU."""
    return DeployedModel.load(path, "cpu").predict_patches


def open_torchscript(path: str | Path) -> Run:
    """Return a TorchScript file as a function of raw patches."""
    with quiet():
        script = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]

    def run(patches: Array) -> Array:
        with torch.no_grad():
            return np.asarray(script(torch.from_numpy(patches)).numpy())

    return run


def open_program(path: str | Path) -> Run:
    """Return a .pt2 file as a function of raw patches."""
    with quiet():
        program = torch.export.load(str(path)).module()

    def run(patches: Array) -> Array:
        with torch.no_grad():
            return np.asarray(program(torch.from_numpy(patches)).numpy())

    return run


# Suffix -> how to run the file. (A scene graph takes no patches, and has its own check.)
OPENERS: dict[str, Callable[[str | Path], Run]] = {
    ".onnx": open_onnx,
    ".pt": open_torchscript,
    ".pt2": open_program,
    ".c": open_c,
}


def open_exported(path: str | Path) -> Run:
    """Return an exported file as a function of raw patches, on the CPU."""
    return OPENERS[Path(path).suffix](path)


def check_parity(
    model: SensorModel,
    files: Mapping[str, str | Path],
    batches: Iterable[Array],
    *,
    tolerance: float = TOLERANCE,
) -> Parity:
    """Compare exported files with the model on all given patches.

    Args:
        files: format ("onnx", "torchscript") -> its file.
        batches: micro-batches of raw patches (n, P, P, bands), small enough for torch.
        tolerance: a difference of a probability must be smaller than this.

    Raises:
        ExportError: a probability differs by the tolerance or more, or a label differs.
    """
    reference = inference_copy(model)
    runs = {name: open_exported(path) for name, path in files.items()}
    largest = dict.fromkeys(runs, 0.0)
    changed = dict.fromkeys(runs, 0)
    predicted = [np.empty(0, np.int64)]
    confidence = [np.empty(0, np.float32)]
    uncalibrated = [np.empty(0, np.float32)]
    for patches in batches:
        with torch.no_grad():
            logits = reference.logits(torch.from_numpy(patches))
            expected = probabilities(logits, reference.temperature).numpy()
            uncalibrated.append(probabilities(logits).amax(dim=1).numpy())
        answers = {name: run(patches) for name, run in runs.items()}
        for name, answer in answers.items():
            gap = np.abs(answer - expected)
            # A NaN compares false with everything, so it counts as an infinite difference.
            worst = float(gap.max()) if np.isfinite(gap).all() else float("inf")
            largest[name] = max(largest[name], worst)
            changed[name] += _changed_labels(answer, expected)
        first = next(iter(answers.values()))
        predicted.append(first.argmax(1))
        confidence.append(first.max(1).astype(np.float32))
    joined = np.concatenate(predicted)
    differences = {name: Difference(largest[name], changed[name]) for name in runs}
    _refuse_drift(differences, len(joined), tolerance)
    sure, unsure = np.concatenate(confidence), np.concatenate(uncalibrated)
    return Parity(len(joined), differences, joined, sure, unsure)


def _changed_labels(answer: Array, expected: Array) -> int:
    """Count pixels with another most probable class, without ties that float32 cannot decide.

    In a tie, torch's probabilities of the two classes differ by less than rounding errors. Then
    torch itself may give another class in a batch of another size.
    """
    rows = np.arange(len(expected))
    chosen, given = answer.argmax(1), expected.argmax(1)
    lead = expected[rows, given] - expected[rows, chosen]
    return int(((chosen != given) & (lead > TIE)).sum())


def _refuse_drift(differences: Mapping[str, Difference], pixels: int, tolerance: float) -> None:
    for name, difference in differences.items():
        if not difference.largest < tolerance or difference.changed:
            raise ExportError(
                "formats",
                name,
                f"must give what torch gives; differs by up to {difference.largest:.2g} in a "
                f"probability (allowed: under {tolerance:g}) and in the class of "
                f"{difference.changed} of {pixels} pixels (allowed: none)",
            )
