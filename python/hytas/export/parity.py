"""Compare exported files with torch on real pixels."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.export.c_source import open_c
from hytas.export.onnx_file import inference_copy, quiet
from hytas.models import SensorModel
from hytas.models.layers import probabilities
from hytas.tasks import Classes, PredictionTask
from hytas.types import Array

TOLERANCE = 1e-4

_Run = Callable[[Array], Array]


class ExportError(InputError):
    """An exported file gives other results than the model.

    Attributes:
        written: the formats that were written nevertheless, with their figures.
        figures: of the check that failed.
    """

    written: Mapping[str, Mapping[str, Any]] = {}
    figures: Mapping[str, Any] = {}


def refused(
    refusals: Mapping[str, InputError], written: Mapping[str, Mapping[str, Any]]
) -> ExportError:
    """Return one error for the refusals of formats, by their names."""
    rules = {name: refusal.rule or refusal.argument for name, refusal in refusals.items()}
    hints = {name: refusal.hint for name, refusal in refusals.items() if refusal.hint}

    def of_formats(texts: Mapping[str, str]) -> str:
        several = len(refusals) > 1
        return "; ".join(f"{name}: {text}" if several else text for name, text in texts.items())

    error = ExportError("formats", ",".join(rules), of_formats(rules), of_formats(hints))
    error.written = written
    return error


@dataclass(frozen=True)
class Parity:
    """The result of `check_parity`.

    Attributes:
        formats: format -> the figures of its file, those of `compared`.
        predicted: (pixels,) predicted class indices, or (pixels, T) values, of the first format.
        confidence: (pixels,) probabilities of these classes in the first format.
        uncalibrated: (pixels,) probabilities of torch's predicted classes at temperature 1.
    """

    pixels: int
    formats: Mapping[str, Mapping[str, Any]]
    predicted: Array
    confidence: npt.NDArray[np.float32]
    uncalibrated: npt.NDArray[np.float32]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without the predictions."""
        keys = ("max_difference", "labels_changed")
        formats = {name: {key: one[key] for key in keys} for name, one in self.formats.items()}
        return {"pixels": self.pixels, "formats": formats}


def _run_of(module: Callable[[torch.Tensor], torch.Tensor]) -> _Run:
    def run(patches: Array) -> Array:
        with torch.no_grad():
            return np.asarray(module(torch.from_numpy(patches)).numpy())

    return run


def open_torch(model: SensorModel) -> _Run:
    """Return the model itself as a function of raw patches."""
    return _run_of(inference_copy(model))


def open_onnx(path: str | Path, threads: int = 0) -> _Run:
    """Return an ONNX file as a function of raw patches, on the CPU; 0 threads are all."""
    return DeployedModel.load(path, "cpu", threads=threads).predict_patches


def open_torchscript(path: str | Path) -> _Run:
    """Return a TorchScript file as a function of raw patches."""
    with quiet():
        return _run_of(torch.jit.load(str(path), map_location="cpu"))  # type: ignore[no-untyped-call]


def open_program(path: str | Path) -> _Run:
    """Return a .pt2 file as a function of raw patches."""
    with quiet():
        return _run_of(torch.export.load(str(path)).module())


# Suffix -> how to run the file. (A scene graph takes no patches, and has its own check.)
OPENERS: dict[str, Callable[[str | Path], _Run]] = {
    ".onnx": open_onnx,
    ".pt": open_torchscript,
    ".pt2": open_program,
    ".c": open_c,
}


def open_exported(path: str | Path) -> _Run:
    """Return an exported file as a function of raw patches, on the CPU."""
    return OPENERS[Path(path).suffix](path)


def check_parity(
    model: SensorModel,
    files: Mapping[str, str | Path],
    batches: Iterable[Array],
    task: PredictionTask | None = None,
) -> Parity:
    """Compare exported files with the model on all given patches.

    Args:
        files: format ("onnx", "torchscript") -> its file.
        batches: micro-batches of raw patches (n, P, P, bands), small enough for torch.
        task: of the model; None is that of classes.

    Raises:
        ExportError: a probability differs by `TOLERANCE` or more, or a label differs.
    """
    reference = inference_copy(model)
    runs = {name: open_exported(path) for name, path in files.items()}
    largest = dict.fromkeys(runs, 0.0)
    changed = dict.fromkeys(runs, 0)
    task = task or Classes(1)
    predicted: list[Array] = []
    confidence = [np.empty(0, np.float32)]
    uncalibrated = [np.empty(0, np.float32)]
    for patches in batches:
        with torch.no_grad():
            logits = reference.logits(torch.from_numpy(patches))
            expected = reference.outputs(logits).numpy()
            uncalibrated.append(probabilities(logits).amax(dim=1).numpy())
        outputs = {name: run(patches) for name, run in runs.items()}
        for name, output in outputs.items():
            largest[name] = max(largest[name], task.gap(output, expected))
            changed[name] += task.changed(output, expected)
        first = next(iter(outputs.values()))
        predicted.append(task.chosen(first))
        confidence.append(first.max(1).astype(np.float32))
    joined = np.concatenate(predicted)
    figures = {
        name: compared(name, len(joined), largest[name] / task.unit, changed[name]) for name in runs
    }
    sure, unsure = np.concatenate(confidence), np.concatenate(uncalibrated)
    return Parity(len(joined), figures, joined, sure, unsure)


def compared(
    name: str, pixels: int, largest: float, changed: int, reference: str = "torch"
) -> dict[str, Any]:
    """Return the figures of an exact format.

    Args:
        reference: whose results they must be.

    Raises:
        ExportError: a difference of `TOLERANCE` or more, or another class.
    """
    if not largest < TOLERANCE or changed:
        raise ExportError(
            "formats",
            name,
            f"must give what {reference} gives; differs by up to {largest:.2g} in a probability "
            f"(allowed: under {TOLERANCE:g}) and in the class of {changed} of {pixels} pixels "
            "(allowed: none)",
        )
    return {"pixels": pixels, "max_difference": largest, "labels_changed": changed}
