"""The whole road: scene and budget in, checked model out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hytas.data import Scene
from hytas.errors import InputError
from hytas.run.charts import CHARTS, draw_charts
from hytas.run.config import RunConfig
from hytas.run.context import RunContext, open_run
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.run.pareto import FILES as PARETO_FILES
from hytas.run.report import SILENT, Report
from hytas.run.stages import (
    check_search,
    evaluate_stage,
    export_stage,
    further_formats_stage,
    map_stage,
    record_stage,
    retrain_stage,
    search_stage,
    seeds_stage,
)
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore


@dataclass(frozen=True)
class Outcome:
    """What a run ended with.

    Attributes:
        architecture: the winner.
        costs: its costs, by name.
        bounds: (cost, lower, upper) of the budget; empty without one.
        budget: canonical text, or None.
        metrics: of `metrics.json`; None when the run stopped after the search.
        files: those of the folder that a user may want, with their sizes in bytes.
    """

    architecture: dict[str, Any]
    costs: dict[str, int]
    bounds: list[tuple[str, int, int]]
    budget: str | None
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
            "seeds": self.metrics.get("seeds") if self.metrics else None,
            "parity": self.metrics["parity"] if self.metrics else None,
            "folder": str(self.folder),
            "files": self.files,
        }


def run_mission(
    config: RunConfig,
    scene: Scene,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
) -> Outcome:
    """Search, retrain, export, check and picture; each stage is skipped that `out` already holds.

    Raises:
        InputError: bad configuration, or `out` belongs to another run.
        ExportError: an exported file computes something else than torch.
        OSError: `out` cannot be written.
    """
    with open_run(out, config, scene, device, check_search) as (context, folder):
        _introduce(context, report)
        architecture = search_stage(context, folder, report)
        report.line(f"winner: {describe_architecture(architecture)}")
        if config.recipe.epochs != 0:
            finish(context, folder, architecture, report)
        return outcome(context, folder, architecture)


def train_architecture(
    architecture: Mapping[str, Any],
    config: RunConfig,
    scene: Scene,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
) -> Outcome:
    """Train a given architecture, export, check and picture it, as the end of `run_mission` does.

    Raises:
        InputError: the architecture is not one of its space, or `out` belongs to another run.
        ExportError: an exported file computes something else than torch.
        OSError: `out` cannot be written.
    """
    chosen = dict(architecture)

    def check(context: RunContext, _: RunFolder) -> None:
        check_architecture(context, chosen)

    with open_run(out, config, scene, device, check) as (context, folder):
        if not folder.architecture.exists():
            write_json(folder.architecture, chosen)
        elif read_json(folder.architecture) != chosen:
            raise InputError(
                f"--out {folder.path}: holds another architecture "
                f"({describe_architecture(read_json(folder.architecture))}); choose another folder"
            )
        _introduce(context, report)
        finish(context, folder, chosen, report)
        return outcome(context, folder, chosen)


def export_run(
    config: RunConfig,
    scene: Scene,
    out: str | Path,
    *,
    formats: Sequence[str] = (),
    force: bool = False,
    report: Report = SILENT,
) -> tuple[Outcome, dict[str, dict[str, Any]]]:
    """Export, check and picture the trained model of a run again.

    Args:
        config: of the run.
        scene: of the run.
        out: the run's folder.
        formats: further formats than ONNX and TorchScript, as `hytas.export.FORMATS` names them.
        force: write a format of reduced precision that fails its check, marked so.
        report: of the progress.

    Returns:
        The outcome, and for each further format its file, size and the figures it was judged by.

    Raises:
        InputError: `scene` is not the run's, or `out` holds no trained weights.
        ExportError: an exported file computes something else than torch.
        OSError: `out` cannot be written.
    """
    with open_run(out, config, scene, "cpu") as (context, folder):
        model = load_weights(folder.weights)
        metrics = evaluate_stage(
            context, folder, model, export_stage(context, folder, model, report)
        )
        draw_charts(folder.path, metrics)
        map_stage(context, folder, report)
        further = further_formats_stage(context, folder, model, formats, force)
        return outcome(context, folder, dict(model.card.architecture)), further


def check_architecture(context: RunContext, architecture: Mapping[str, Any]) -> None:
    """Refuse genes that the space does not have.

    Raises:
        InputError: naming the gene, its value and the rule.
    """
    if "space" not in architecture:
        raise InputError(
            'architecture: has no "space": an architecture names its space beside its genes, as '
            "a run's architecture.json does"
        )
    if architecture["space"] != context.space.name:
        raise InputError(
            f"architecture: of space {architecture['space']!r}, "
            f"the run searches {context.space.name}"
        )
    try:
        context.space.cost(dict(architecture))
    except ValueError as error:
        raise InputError(f"architecture: {str(error).removeprefix('genome: ')}") from None


def finish(
    context: RunContext, folder: RunFolder, architecture: dict[str, Any], report: Report
) -> None:
    """Retrain `architecture`, export, evaluate and picture it."""
    EvaluationStore(folder.evaluations).close()  # one that is none is told before work starts
    model = retrain_stage(context, folder, architecture, report)
    exported = all(file.exists() for file in (folder.onnx, folder.torchscript, folder.metrics))
    if not exported:
        parity = export_stage(context, folder, model, report)
        evaluate_stage(context, folder, model, parity)
    record_stage(context, folder, folder, architecture)
    if not all((folder.path / name).exists() for name in CHARTS):
        draw_charts(folder.path, read_json(folder.metrics))
    if not folder.map.exists():
        map_stage(context, folder, report)
    seeds_stage(context, folder, architecture, report)


def describe_architecture(architecture: dict[str, Any]) -> str:
    """One line: the genes, lists written as 3-4-4."""
    parts = []
    for name, value in architecture.items():
        text = "-".join(map(str, value)) if isinstance(value, list) else value
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
    for note in context.split.notes:
        report.line(f"note: {note}")
    report.line(
        f"space {context.config.space}, budget {context.config.budget or 'none'}, "
        f"proxy {context.config.proxy}, seed {context.config.seed}, device {context.device}"
    )


def outcome(context: RunContext, folder: RunFolder, architecture: dict[str, Any]) -> Outcome:
    """What the folder now holds."""
    files = [
        folder.onnx,
        folder.torchscript,
        folder.weights,
        folder.metrics,
        folder.map,
        *(folder.path / name for name in CHARTS),
        folder.architecture,
        folder.evaluations,
        folder.predictor,
        *(folder.path / name for name in PARETO_FILES),
        folder.config,
        folder.split,
    ]
    return Outcome(
        architecture,
        context.space.cost(architecture),
        [] if context.feasible is None else list(context.feasible.budget.bounds),
        context.config.budget,
        read_json(folder.metrics) if folder.metrics.exists() else None,
        {file.name: file.stat().st_size for file in files if file.exists()},
        folder.path,
    )
