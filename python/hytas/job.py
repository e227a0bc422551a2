"""The job: from a scene and a budget to a checked model, its map and its report.

The functions below tell in which order. A stage whose files are there, and undamaged, is not done
again (`hytas.run.stages.do`); a training that is in the store of fits is not, either.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hytas.data import LabelledData
from hytas.errors import InputError
from hytas.run.choosing.searching import check_search, race_stage, search_stage, shorten_training
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_run
from hytas.run.delivering.comparing import begin_tests, references_stage
from hytas.run.delivering.control import check_control, control_of
from hytas.run.delivering.files import export_stage, further_formats, map_stage, predictions_stage
from hytas.run.delivering.metrics import write_metrics
from hytas.run.delivering.reporting import report_stage
from hytas.run.final.seeds import seeds_of
from hytas.run.final.stage import are_done, decide_for, folds_stage, train_stage
from hytas.run.final.task import final_task
from hytas.run.folder import read_json, write_json
from hytas.run.outcome import Outcome, check_given, describe_architecture, outcome_of
from hytas.run.pace import Invocation
from hytas.run.prepared import PreparedData
from hytas.run.progress import SILENT, Report
from hytas.run.stages import begin, check_trained, do, is_done
from hytas.search import EvaluationStore
from hytas.workers import WorkersLike, load_server


def run_pipeline(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
    command: Invocation = Invocation(),
    references: bool = True,
    workers: WorkersLike = None,
) -> Outcome:
    """Search, race, train, export and check a model for a scene under a budget.

    The same call resumes a run that was stopped.

    Args:
        config: the settings. With a recipe of 0 epochs the run ends after the race.
        device: cpu, cuda or auto.
        command: that does it; the time of `minutes` counts from its start.
        references: fit reference methods on the same pixels, and compare the winner with them.
        workers: where to score and to race (`hytas.workers.open_workers`); the result is the same.

    Raises:
        InputError: bad configuration, or `out` belongs to another run.
        ExportError: an exported file gives other results than torch.
        OSError: `out` cannot be written.
    """

    def check(context: RunContext) -> None:
        check_search(context)
        check_control(context)

    trains = config.recipe.epochs != 0
    with open_run(out, config, scene, device, report, check, command, workers) as run:
        names = [*CHOOSING, *(_finishing(config, run.context.data, references) if trains else ())]
        begin(run, names)
        load_server(workers)
        choose(run, tests=trains and references)
        architecture = read_json(run.folder.architecture)
        check_given(run.context, architecture, str(run.folder.architecture))
        report.line(f"winner: {describe_architecture(architecture)}, {run.recipe[0]} recipe")
        if trains:
            finish(run, references=references)
        return outcome_of(run, architecture)


def train_architecture(
    architecture: Mapping[str, Any],
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
    command: Invocation = Invocation(),
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
        check_given(context, chosen)

    with open_run(out, config, scene, device, report, check, command) as run:
        folder = run.folder
        begin(run, _finishing(config, run.context.data, True))
        whole = folder.manifest.fault(folder.architecture) is None
        held = read_json(folder.architecture, chosen) if whole else chosen
        write_json(folder.architecture, held)
        folder.manifest.record([folder.architecture])
        if held != chosen:
            rule = f"holds another architecture ({describe_architecture(held)})"
            raise InputError("out", folder.path, rule, "choose another folder")
        begin_tests(run)
        finish(run)
        return outcome_of(run, chosen)


def export_run(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    formats: Sequence[str] = (),
    force: bool = False,
    taken: str = "sensor",
    report: Report = SILENT,
    command: Invocation = Invocation(),
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
        architecture = check_trained(run.folder)
        begin(run, [], needs_store=False)
        do(run, "reference methods", references_stage)
        deliver(run, again=True)
        end(run)
        if formats:
            report.stage("further formats")
        further = further_formats(run.context.data, run.folder, formats, force, taken)
        return outcome_of(run, architecture), further


CHOOSING = ("search", "race")


def _finishing(config: RunConfig, data: PreparedData, references: bool) -> list[str]:
    """Return the names of the stages after the choice of the architecture."""
    return [
        *("training on folds", "final training"),
        *(["reference methods"] if references else []),
        *("export", "map" if data.has_class_map else "predictions"),
        *(["seeds"] if config.seeds > 1 else []),
        *(["control"] if config.control is not None else []),
        "report",
    ]


def choose(run: Run, *, tests: bool = False) -> None:
    """Choose an architecture: proxies rank candidates of the budget, and the best ones race.

    Args:
        tests: whether reference methods are tested; their fits begin in processes to spare.
    """
    do(run, "search", search_stage, done=lambda _: is_done(run.folder, "race"))
    if tests:
        begin_tests(run)
    do(run, "race", race_stage, changes=[run.folder.evaluations])


def finish(run: Run, *, references: bool = True) -> None:
    """Train the architecture of a run, export and compare the model, and report on all of it."""
    EvaluationStore(run.folder.evaluations).close()  # fails before the training if it is none
    train_winner(run)
    if references:
        do(run, "reference methods", references_stage)
    deliver(run)
    for inner in seeds_of(run):
        train_winner(inner)
        do(inner, "export", export_stage)
        do(inner, "figures", write_metrics)
    if (control := control_of(run)) is not None:
        begin(control, [])
        choose(control)
        finish(control, references=False)
    end(run)
    run.store.keep_weights()


def train_winner(run: Run) -> None:
    """Train on folds, decide by what is held out from them, and train the model that ships."""
    shorten_training(run)
    do(run, "training on folds", folds_stage, done=are_done)
    do(
        run,
        "final training",
        lambda run: train_stage(run, decide_for(final_task(run), run.context)),
    )


def deliver(run: Run, *, again: bool = False) -> None:
    """Write the files that ship, check them against torch, and classify all there is."""
    do(run, "export", export_stage, again=again)
    if run.context.data.has_class_map:
        do(run, "map", map_stage, again=again)
    else:
        do(run, "predictions", predictions_stage, again=again)


def end(run: Run) -> None:
    """Write the figures of the run, and the page that shows them."""
    do(run, "figures", write_metrics)
    do(run, "report", report_stage)
