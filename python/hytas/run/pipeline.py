"""The whole run: a scene and a budget in, a checked model out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hytas.data import Scene
from hytas.errors import InputError
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_run
from hytas.run.damage import check_trained
from hytas.run.delivering import further_formats
from hytas.run.folder import read_json, write_json
from hytas.run.report import SILENT, Report
from hytas.run.searching import check_search
from hytas.run.stages import (
    CHARTS,
    CHOOSING,
    EXPORT,
    FINISHING,
    MAP,
    do_stage,
    mend,
    mend_further,
    record_all,
    run_stages,
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
            "calibration": self.metrics.get("calibration") if self.metrics else None,
            "smoothed": self.metrics.get("smoothed") if self.metrics else None,
            "smoothing": self.metrics.get("smoothing") if self.metrics else None,
            "parity": self.metrics["parity"] if self.metrics else None,
            "folder": str(self.folder),
            "files": self.files,
        }


def run_pipeline(
    config: RunConfig,
    scene: Scene,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
) -> Outcome:
    """Search, race, train, export and check a model for a scene under a budget.

    The same call again goes on where a run was stopped: stages whose files `out` holds are left
    out (`hytas.run.stages`).

    Args:
        config: what is asked for. With a recipe of 0 epochs the run ends with the race.
        scene: to learn from and to test on.
        out: the run's folder.
        device: cpu, cuda or auto.
        report: receives the progress.

    Raises:
        InputError: bad configuration, or `out` belongs to another run.
        ExportError: an exported file computes something else than torch.
        OSError: `out` cannot be written.
    """
    with open_run(out, config, scene, device, report, check_search) as run:
        _introduce(run)
        mend(run)
        run_stages(CHOOSING, run)
        architecture = read_json(run.folder.architecture)
        check_architecture(run.context, architecture, str(run.folder.architecture))
        report.line(f"winner: {describe_architecture(architecture)}")
        if config.recipe.epochs != 0:
            _finish(run)
        return _outcome(run, architecture)


def train_architecture(
    architecture: Mapping[str, Any],
    config: RunConfig,
    scene: Scene,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
) -> Outcome:
    """Train, export and check a given architecture, as the end of `run_pipeline` does.

    Args:
        architecture: its genes, with its space.
        config: without a budget.
        scene: to learn from and to test on.
        out: the run's folder.
        device: cpu, cuda or auto.
        report: receives the progress.

    Raises:
        InputError: the architecture is not one of its space, or `out` belongs to another run.
        ExportError: an exported file computes something else than torch.
        OSError: `out` cannot be written.
    """
    chosen = dict(architecture)

    def check(context: RunContext) -> None:
        check_architecture(context, chosen)

    with open_run(out, config, scene, device, report, check) as run:
        folder = run.folder
        _introduce(run)
        mend(run)
        if not folder.architecture.exists():
            write_json(folder.architecture, chosen)
        elif read_json(folder.architecture) != chosen:
            raise InputError(
                f"--out {folder.path}: holds another architecture "
                f"({describe_architecture(read_json(folder.architecture))}); choose another folder"
            )
        _finish(run)
        return _outcome(run, chosen)


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
    with open_run(out, config, scene, "cpu", report) as run:
        check_trained(run.folder)
        mend(run, needs_store=False)
        for stage in (EXPORT, CHARTS, MAP):
            do_stage(stage, run)
        further = further_formats(run, formats, force)
        mend_further(run)
        record_all(run)
        architecture = load_weights(run.folder.weights).card.architecture
        return _outcome(run, dict(architecture)), further


def check_architecture(
    context: RunContext, architecture: Mapping[str, Any], source: str = "architecture"
) -> None:
    """Refuse genes that the space does not have; `source` is what messages call them.

    Raises:
        InputError: naming the gene, its value and the rule.
    """
    if "space" not in architecture:
        raise InputError(
            f'{source}: has no "space": an architecture names its space beside its genes, as '
            "a run's architecture.json does"
        )
    if architecture["space"] != context.space.name:
        raise InputError(
            f"{source}: of space {architecture['space']!r}, the run searches {context.space.name}"
        )
    try:
        context.space.cost(dict(architecture))
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"{source}: {' '.join(str(error).split()).removeprefix('genome: ')}"
        ) from None


def _finish(run: Run) -> None:
    """Train the chosen architecture, export, check and picture it."""
    # Fail before training if the file is not an evaluation store.
    EvaluationStore(run.folder.evaluations).close()
    run_stages(FINISHING, run)
    mend_further(run)


def describe_architecture(architecture: dict[str, Any]) -> str:
    """One line: the genes, lists written as 3-4-4."""
    parts = []
    for name, value in architecture.items():
        text = "-".join(map(str, value)) if isinstance(value, list) else value
        parts.append(f"{name} {text}" if name != "space" else f"{text}:")
    return " ".join(parts)


def _introduce(run: Run) -> None:
    config, data, report = run.context.config, run.context.data, run.report
    scene = data.scene
    report.line(
        f"scene {scene.name}: {scene.height} x {scene.width} pixels, {scene.bands} bands "
        f"({data.shape.bands} used), {scene.classes} classes, {scene.cube.dtype}"
    )
    for note in scene.notes:
        report.line(f"note: {note}")
    report.line(data.split.describe())
    for note in data.split.notes:
        report.line(f"note: {note}")
    report.line(
        f"space {config.space}, budget {config.budget or 'none'}, "
        f"proxy {config.proxy}, seed {config.seed}, device {run.context.device}"
    )


def _outcome(run: Run, architecture: dict[str, Any]) -> Outcome:
    """What the folder now holds."""
    record_all(run)
    context, folder = run.context, run.folder
    files = [
        folder.onnx,
        folder.torchscript,
        folder.weights,
        folder.metrics,
        folder.map,
        folder.learning_curve,
        folder.confusion,
        folder.architecture,
        folder.evaluations,
        folder.front,
        folder.front_picture,
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
