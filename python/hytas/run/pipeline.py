"""The whole run: from a scene and a budget to a checked model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hytas.data import LabelledData, Spectra
from hytas.errors import InputError
from hytas.metrics import FIGURES
from hytas.results import RESULTS, Results
from hytas.run.choosing.searching import check_search, shorten_training
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_run
from hytas.run.delivering.comparing import begin_tests
from hytas.run.delivering.control import check_control, note_of_evolved
from hytas.run.delivering.files import further_formats
from hytas.run.final.members import with_members
from hytas.run.folder import ARTEFACTS, read_json, write_json
from hytas.run.progress import SILENT, Report
from hytas.run.repair import check_trained
from hytas.run.stages import (
    REPORT,
    Plan,
    Stage,
    do_stage,
    plan_of,
    repair,
    repair_further_formats,
    run_stages,
)
from hytas.run.times import run_cost
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore
from hytas.spaces import parse_budget
from hytas.spaces.genes import gene_text
from hytas.spaces.names import LINEAR_SPACE
from hytas.workers import WorkersLike, load_server


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
        bounds: (cost, lower, upper) of the budget; empty without one.
        budget: canonical text, or None.
        metrics: of `metrics.json`; None if the run stopped after the search.
        files: files of the folder for the user, with their sizes in bytes.
        cost: seconds of each stage and in all (`hytas.run.times.run_cost`).
    """

    architecture: dict[str, Any]
    costs: dict[str, int]
    bounds: list[tuple[str, int, int]]
    budget: str | None
    metrics: dict[str, Any] | None
    files: dict[str, int]
    folder: Path
    cost: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """Return the time of each stage, in the order in which they were done."""
        return {name: one["seconds"] for name, one in self.cost.get("stages", {}).items()}

    @property
    def results(self) -> Results | None:
        """Return the results of the final training; None if the run stopped after the search."""
        return None if self.metrics is None else Results.of(self.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        results = dict.fromkeys(RESULTS) if self.results is None else self.results.to_dict()
        return {
            "architecture": self.architecture,
            "costs": self.costs,
            "budget": self.budget,
            **results,
            "cost": self.cost,
            "folder": str(self.folder),
            "files": self.files,
        }


def run_pipeline(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
    command: str = "",
    references: bool = True,
    workers: WorkersLike = None,
    began: float | None = None,
) -> Outcome:
    """Search, race, train, export and check a model for a scene under a budget.

    The same call resumes a run that was stopped: it skips stages whose files are in `out`
    (`hytas.run.stages`).

    Args:
        config: the settings. With a recipe of 0 epochs the run ends after the race.
        device: cpu, cuda or auto.
        references: fit reference methods on the same pixels, and compare the winner with them.
        workers: where to score and to race (`hytas.workers.open_workers`); the result is the same.
        began: when the time of `minutes` began, by `time.time()`; None is now.

    Raises:
        InputError: bad configuration, or `out` belongs to another run.
        ExportError: an exported file gives other results than torch.
        OSError: `out` cannot be written.
    """

    def check(context: RunContext) -> None:
        check_search(context)
        check_control(context)

    with open_run(out, config, scene, device, report, check, command, workers, began) as run:
        plan = plan_of(run.context, references=references)
        trains = config.recipe.epochs != 0
        stages = (*plan.choosing, *(plan.finishing if trains else ()))
        repair(run, (*plan.choosing, *plan.finishing))
        _introduce(run, stages)
        load_server(workers)
        search, *others = plan.choosing
        run_stages([search], run)
        if trains and plan.references:
            begin_tests(run)
        run_stages(others, run)
        architecture = read_json(run.folder.architecture)
        check_architecture(run.context, architecture, str(run.folder.architecture))
        report.line(f"winner: {describe_architecture(architecture)}, {run.recipe[0]} recipe")
        if trains:
            _finish(run, plan)
        return _outcome(run, architecture)


def train_architecture(
    architecture: Mapping[str, Any],
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
    command: str = "",
) -> Outcome:
    """Train, export and check a given architecture, as the end of `run_pipeline` does.

    Args:
        architecture: its genes, with its space.
        config: without a budget, which is not checked.
        device: cpu, cuda or auto.

    Raises:
        InputError: the architecture is not in its space, or `out` belongs to another run.
        ExportError: an exported file gives other results than torch.
        OSError: `out` cannot be written.
    """
    chosen = dict(architecture)

    def check(context: RunContext) -> None:
        check_architecture(context, chosen)

    with open_run(out, config, scene, device, report, check, command) as run:
        folder = run.folder
        plan = plan_of(run.context)
        repair(run, plan.finishing)
        _introduce(run, plan.finishing)
        if not folder.architecture.exists():
            write_json(folder.architecture, chosen)
        elif read_json(folder.architecture) != chosen:
            other = describe_architecture(read_json(folder.architecture))
            rule = f"holds another architecture ({other})"
            raise InputError("out", folder.path, rule, "choose another folder")
        begin_tests(run)
        _finish(run, plan)
        return _outcome(run, chosen)


def export_run(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    formats: Sequence[str] = (),
    force: bool = False,
    taken: str = "sensor",
    report: Report = SILENT,
    command: str = "",
) -> tuple[Outcome, dict[str, dict[str, Any]]]:
    """Export and check the trained model of a run again, and draw its pictures.

    Args:
        formats: names in `hytas.export.FORMATS`, in addition to ONNX and TorchScript.
        force: write a format of reduced precision even if it fails its check.
        taken: type of the values that the formats take, one of `hytas.export.INPUTS`.

    Returns:
        The outcome, and for each further format its file, size and the figures of its check.

    Raises:
        InputError: `scene` is not that of the run, or `out` holds no trained weights.
        ExportError: an exported file gives other results than torch.
        OSError: `out` cannot be written.
    """
    with open_run(out, config, scene, "cpu", report, command=command, workers="1") as run:
        check_trained(run.folder)
        plan = plan_of(run.context)
        repair(run, (*plan.references, *plan.delivering, REPORT), needs_store=False)
        run_stages(plan.references, run)
        for stage in (*plan.delivering, REPORT):
            do_stage(stage, run)
        if formats:
            report.stage("further formats")
        further = further_formats(run, formats, force, taken)
        repair_further_formats(run)
        run.folder.record_all()
        architecture = load_weights(run.folder.weights).card.architecture
        return _outcome(run, dict(architecture)), further


def check_architecture(
    context: RunContext, architecture: Mapping[str, Any], source: str = "architecture"
) -> None:
    """Refuse genes that the space does not have; `source` is their name in messages.

    Raises:
        InputError: naming the gene, its value and the rule.
    """
    if "space" not in architecture:
        raise InputError(
            source,
            rule='has no "space": an architecture names its space next to its genes, as a run\'s '
            "architecture.json does",
        )
    if architecture["space"] not in (context.space.name, LINEAR_SPACE):
        rule = f"has space {architecture['space']!r}; the run searches {context.space.name}"
        raise InputError(source, rule=rule)
    side = architecture.get("patch", 1)
    if isinstance(context.data.scene, Spectra) and side != 1:
        rule = f"has patch {side}: a table of spectra has no neighbours"
        raise InputError(source, rule=rule, hint="take an architecture with patch 1")
    try:
        context.costs(architecture)
    except (ValueError, TypeError, OverflowError) as error:
        text = " ".join(str(error).split())
        why = text.removeprefix("genome: ").removeprefix("architecture: ")
        raise InputError(source, rule=why) from None


def _finish(run: Run, plan: Plan) -> None:
    # Fail before training if the file is not an evaluation store.
    EvaluationStore(run.folder.evaluations).close()
    shorten_training(run)
    run_stages(plan.finishing, run)
    repair_further_formats(run)
    run.store.keep_weights()


def describe_architecture(architecture: dict[str, Any]) -> str:
    """Return the genes on one line, with lists such as 3-4-4."""
    return " ".join(
        f"{value}:" if name == "space" else f"{name} {gene_text(value)}"
        for name, value in architecture.items()
    )


def _introduce(run: Run, stages: Sequence[Stage]) -> None:
    """Report scene, split, settings, and what was done before."""
    config, data, report = run.context.config, run.context.data, run.report
    scene = data.scene
    report.notice(scene.describe(data.shape.bands))
    for note in scene.notes:
        report.notice(f"note: {note}")
    report.notice(data.split.describe())
    for note in data.split.notes:
        report.notice(f"note: {note}")
    report.line(
        f"space {config.space}, budget {config.budget or 'none'}, "
        f"proxy {config.proxy}, seed {config.seed}, device {run.context.device}"
    )
    if note := note_of_evolved(run.context.space.about, config.control):
        report.notice(f"note: {note}")
    needed = {"seeds": config.seeds > 1, "control": config.control is not None}
    report.plan([one.name for one in stages if needed.get(one.name, True)])
    done = [stage.name for stage in stages if stage.is_done(run) and stage.has_files(run)]
    if done:
        report.notice(f"goes on in {run.folder.path}; done before: {', '.join(done)}")
    elif run.folder.evaluations.exists():
        report.notice(f"goes on in {run.folder.path}, which has no winner yet")


def _outcome(run: Run, architecture: dict[str, Any]) -> Outcome:
    """Return the outcome from the files of the folder."""
    context, folder = run.context, run.folder
    folder.record_all()
    listed = [each for each in ARTEFACTS.values() if each.listed]
    files = [path for each in listed for path in each.paths(folder.path)]
    metrics = read_json(folder.metrics) if folder.metrics.exists() else None
    if metrics is not None and (mean := metrics.get("mean")):
        architecture = with_members(architecture, mean["members"])
    cost = run_cost(folder)
    test = {} if metrics is None else metrics["test"]
    run.report.end(
        {f"test/{name}": float(test[name]) for name in FIGURES if name in test}
        | {f"cost/{name}": float(cost[name]) for name in ("cpu_seconds", "gpu_seconds")}
    )
    return Outcome(
        architecture,
        context.costs(architecture),
        list(parse_budget(context.config.budget or ()).bounds),
        context.config.budget,
        metrics,
        {file.name: file.stat().st_size for file in files if file.exists()},
        folder.path,
        cost,
    )
