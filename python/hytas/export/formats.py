"""The table of export formats."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.export import reduced
from hytas.export.c_source import export_c, write_header
from hytas.export.evidence import (
    Evidence,
    judge_c,
    judge_exact,
    judge_reduced,
    judge_reduced_scene,
    judge_scene,
    judge_smooth_scene,
)
from hytas.export.onnx_file import export_onnx, inference_copy, save, set_card
from hytas.export.parity import ExportError, _Run, open_onnx, refused
from hytas.export.qgis import export_qgis, judge_qgis
from hytas.export.scene_graph import to_scene_onnx
from hytas.export.smooth_graph import to_smooth_scene
from hytas.export.stac import export_stac, judge_stac
from hytas.export.torch_files import export_program, export_torchscript
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.models import SensorModel
from hytas.plugins import fill
from hytas.settings import TARGETS

Write = Callable[[SensorModel, Path, ModelCard], Any]
_Judge = Callable[[str, Path, Evidence], dict[str, Any]]


class ExportFormat(NamedTuple):
    """A format.

    Attributes:
        file: name of the file in a run folder.
        judge: checks the file on real pixels; returns figures or raises ExportError.
        complete: writes further files next to it, once it is there.
        open_file: a written file -> a function of raw patches, on one CPU thread; of formats that
            are targets.
        of_classes: whether models of values have no such file.
    """

    file: str
    write: Write
    judge: _Judge
    complete: Callable[[Path], None] = lambda path: None
    open_file: Callable[[Path], _Run] = partial(open_onnx, threads=1)
    of_classes: bool = False


def _graph(build: Callable[[SensorModel, ModelCard], onnx.ModelProto]) -> Write:
    return lambda model, path, card: save(build(model, card), path)


# A new format is one function and one line here; a new kind of file has a line in `parity.OPENERS`.
FORMATS: dict[str, ExportFormat] = {
    "onnx": ExportFormat("model.onnx", export_onnx, judge_exact),
    "onnx-fp16": ExportFormat("model.fp16.onnx", _graph(reduced.to_half), judge_reduced),
    "onnx-int8": ExportFormat("model.int8.onnx", _graph(reduced.to_int8), judge_reduced),
    "onnx-w8": ExportFormat("model.w8.onnx", _graph(reduced.to_w8), judge_reduced),
    "onnx-scene": ExportFormat("scene.onnx", _graph(to_scene_onnx), judge_scene),
    "onnx-scene-fp16": ExportFormat(
        "scene.fp16.onnx", _graph(reduced.to_half_scene), judge_reduced_scene
    ),
    "onnx-scene-w8": ExportFormat(
        "scene.w8.onnx", _graph(reduced.to_w8_scene), judge_reduced_scene
    ),
    "onnx-scene-smooth": ExportFormat(
        "scene.smooth.onnx", _graph(to_smooth_scene), judge_smooth_scene, of_classes=True
    ),
    "torchscript": ExportFormat("model.pt", export_torchscript, judge_exact),
    "pt2": ExportFormat("model.pt2", export_program, judge_exact),
    "c": ExportFormat("model.c", export_c, judge_c, write_header),
    "qgis": ExportFormat("model.qgis.onnx", export_qgis, judge_qgis, of_classes=True),
    "stac": ExportFormat(
        "model.stac.json", export_stac, judge_stac
    ),  # last: it describes the others
}


def _of_plugin(
    name: str, entry: tuple[Callable[..., Any], str, Callable[[Path], _Run]]
) -> ExportFormat:
    write, file, open_file = entry
    judge = partial(judge_reduced, open_file=open_file)

    def write_copy(model: SensorModel, path: Path, card: ModelCard) -> None:
        write(inference_copy(model), path, card)  # a user's code may change it

    return ExportFormat(file, write_copy, judge, open_file=open_file)


fill("target", FORMATS, _of_plugin, TARGETS)

INPUTS = ("sensor", "float32")
"""Types of the values that a file takes: those of the cube, or float32 for other runtimes."""


def file_of(name: str, taken: str = INPUTS[0]) -> str:
    """Return the name of a format's file in a run folder.

    Args:
        taken: one of `INPUTS`.
    """
    stem, _, suffix = FORMATS[name].file.rpartition(".")
    return f"{stem}.{suffix}" if taken == INPUTS[0] else f"{stem}.f32.{suffix}"


def check_formats(formats: Sequence[str], taken: str = INPUTS[0]) -> list[str]:
    """Return the names of formats in the order of the table, without repeats.

    Raises:
        InputError: a format or the type of the input is unknown.
    """
    for name in formats:
        if name not in FORMATS:
            raise InputError("formats", name, f"must be one of {', '.join(FORMATS)}")
    if taken not in INPUTS:
        raise InputError("input", taken, f"must be one of {', '.join(INPUTS)}")
    return [name for name in FORMATS if name in formats]


def export_formats(
    model: SensorModel, folder: str | Path, card: ModelCard, formats: Sequence[str]
) -> dict[str, Path]:
    """Write the named formats into `folder`, without a check; return format -> file.

    Raises:
        InputError: an unknown format.
        OSError: a file cannot be written.
    """
    files = {name: Path(folder) / FORMATS[name].file for name in check_formats(formats)}
    for name, path in files.items():
        FORMATS[name].write(model, path, card)
        FORMATS[name].complete(path)
    return files


def export_checked(
    folder: str | Path,
    card: ModelCard,
    formats: Sequence[str],
    evidence: Evidence,
    *,
    force: bool = False,
    taken: str = INPUTS[0],
) -> dict[str, dict[str, Any]]:
    """Write the named formats into `folder`; each is checked on real pixels before it is kept.

    Args:
        folder: must exist. If a format is refused, an older file of it stays as it was.
        evidence: the model, and the pixels for the check.
        force: write a file of reduced precision even if it fails; its card then says `forced`.
        taken: type of the values that the files take, one of `INPUTS`.

    Returns:
        For each format: file, bytes, and the figures of its check; also the message of a failed one
        as `forced_past`.

    Raises:
        InputError: a format or the type of the input is unknown.
        ExportError: formats are refused; all others are written, and are in its `written`.
        OSError: a file cannot be written.
    """
    written: dict[str, dict[str, Any]] = {}
    refusals: dict[str, InputError] = {}
    for name in check_formats(formats, taken):
        path = Path(folder) / file_of(name, taken)
        try:
            written[name] = export_file(path, card, name, evidence, force=force, taken=taken)
        except InputError as refusal:
            refusals[name] = refusal
    if refusals:
        raise refused(refusals, written)
    return written


def export_file(
    path: Path,
    card: ModelCard,
    name: str,
    evidence: Evidence,
    *,
    force: bool = False,
    taken: str = INPUTS[0],
) -> dict[str, Any]:
    """Write one format to `path`, after a check on real pixels.

    Arguments, result and errors are those of `export_checked`.
    """
    if taken != INPUTS[0]:
        card = replace(card, dtype=taken)
        evidence = replace(evidence, dtype=card.numpy_dtype)
    entry = FORMATS[name]
    if entry.of_classes and "classes" not in evidence.task.maps:
        raise InputError("formats", name, "is for classes, and the model predicts values")
    with atomic_write(path) as staged:
        entry.write(evidence.model, staged, card)
        try:
            figures = entry.judge(name, staged, evidence)
        except ExportError as refusal:
            # A file of full precision that fails has a bug, so force does not apply.
            rule = getattr(entry.judge, "func", entry.judge)  # of a plug-in: with its own opener
            if not force or rule not in (judge_reduced, judge_reduced_scene):
                raise
            if path.suffix == ".onnx" and entry.judge is rule:
                graph = onnx.load(staged)
                set_card(graph, replace(DeployedModel.load(staged, "cpu").card, forced=True))
                save(graph, staged)
            figures = {**refusal.figures, "forced_past": str(refusal)}
    entry.complete(path)
    return {"file": str(path), "bytes": path.stat().st_size, **figures}
