"""The whole road: scene and budget in, checked model out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hytas.data import Scene
from hytas.run.config import RunConfig
from hytas.run.context import RunContext, open_run
from hytas.run.folder import RunFolder
from hytas.run.report import Report
from hytas.run.stages import (
    evaluate_stage,
    export_stage,
    map_stage,
    read_metrics,
    retrain_stage,
    search_stage,
)


@dataclass(frozen=True)
class Outcome:
    """What a run ended with.

    Attributes:
        architecture: the winner.
        costs: its costs, in the budget's units and the engine's others.
        budget: canonical text.
        metrics: of `metrics.json`; None when the run stopped after the search.
        files: those of the folder that a user may want, with their sizes in bytes.
    """

    architecture: dict[str, Any]
    costs: dict[str, int]
    bounds: list[tuple[str, int, int]]
    budget: str
    metrics: dict[str, Any] | None
    files: dict[str, int]
    folder: Path

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        test = self.metrics["test"] if self.metrics else None
        return {
            "architecture": self.architecture,
            "costs": self.costs,
            "budget": self.budget,
            "test": test,
            "parity": self.metrics["parity"] if self.metrics else None,
            "folder": str(self.folder),
            "files": self.files,
        }


def run_mission(
    config: RunConfig, scene: Scene, out: str | Path, *, device: str, report: Report
) -> Outcome:
    """Search, retrain, export, check and picture; each stage is skipped that `out` already holds.

    Raises:
        InputError: bad configuration, or `out` belongs to another run.
        ExportError: an exported file computes something else than torch.
        OSError: `out` cannot be written.
    """
    with RunFolder(out) as folder:
        context = open_run(folder, config, scene, device)
        _introduce(context, report)
        architecture = search_stage(context, folder, report)
        costs = context.feasible.space.cost(architecture)
        report.line(f"winner: {describe_architecture(architecture)}")
        if config.recipe.epochs == 0:
            return _outcome(context, folder, architecture, costs, None)
        finish(context, folder, architecture, report)
        return _outcome(context, folder, architecture, costs, read_metrics(folder))


def finish(
    context: RunContext, folder: RunFolder, architecture: dict[str, Any], report: Report
) -> None:
    """Retrain `architecture`, export, evaluate and picture it."""
    model = retrain_stage(context, folder, architecture, report)
    exported = all(file.exists() for file in (folder.onnx, folder.torchscript, folder.metrics))
    if not exported:
        parity = export_stage(context, folder, model, report)
        evaluate_stage(context, folder, model, parity)
    if not folder.map.exists():
        map_stage(context, folder, report)


def describe_architecture(architecture: dict[str, Any]) -> str:
    """One line: the genes, lists written as 3-4-4."""
    parts = []
    for name, value in architecture.items():
        text = "-".join(f"{item:g}" for item in value) if isinstance(value, list) else value
        parts.append(f"{name} {text}" if name != "space" else f"{text}:")
    return " ".join(parts)


def _introduce(context: RunContext, report: Report) -> None:
    scene, shape = context.scene, context.shape
    report.line(
        f"scene {scene.name}: {scene.height} x {scene.width} pixels, {scene.bands} bands "
        f"({shape.bands} used), {scene.classes} classes, {scene.cube.dtype}"
    )
    for note in scene.notes:
        report.line(f"note: {note}")
    report.line(context.split.describe())
    report.line(
        f"space {context.config.space}, budget {context.config.budget}, "
        f"proxy {context.config.proxy}, seed {context.config.seed}, device {context.device}"
    )


def _outcome(
    context: RunContext,
    folder: RunFolder,
    architecture: dict[str, Any],
    costs: dict[str, int],
    metrics: dict[str, Any] | None,
) -> Outcome:
    files = [
        folder.onnx,
        folder.torchscript,
        folder.weights,
        folder.metrics,
        folder.map,
        folder.architecture,
        folder.evaluations,
        folder.config,
        folder.split,
    ]
    return Outcome(
        architecture,
        costs,
        list(context.feasible.budget.bounds),
        context.config.budget,
        metrics,
        {file.name: file.stat().st_size for file in files if file.exists()},
        folder.path,
    )
