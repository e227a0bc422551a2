"""The report of runs: the stage that ends a run, and reports of runs that are there."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hytas.data import Scene, Split
from hytas.deploy import DeployedModel
from hytas.errors import InputError, one_line
from hytas.report import ReportPixels, RunFacts, write_report
from hytas.run.config import RunConfig
from hytas.run.context import Run
from hytas.run.delivering.findings import run_facts
from hytas.run.delivering.report_pixels import classify_parts, report_pixels
from hytas.run.folder import RunFolder, if_there
from hytas.run.progress import SILENT, Report


def report_stage(run: Run) -> None:
    """Write the report of the run; it is left alone if it would not change."""
    with _told([run.folder.path]):
        write_report(run.folder.report, [run_facts(run.folder, shape=run.context.data.shape)])


def report_runs(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    moved: Mapping[str, Sequence[str]] | None = None,
    report: Report = SILENT,
) -> None:
    """Write one page about a run, or about several side by side.

    If `pixels.npz` of a run is missing, its scene is read and classified again, if it is there.

    Args:
        runs: their folders, which are only read.
        out: an HTML file; the report of one of the runs itself is written under its lock.
        moved: where the scenes of such runs lie now, as for `RunConfig.moved`.
    """
    if not runs:
        raise InputError("runs", rule="none given", hint="a report needs at least one")
    with _told(runs):
        _report(runs, out, moved or {}, report)


@contextmanager
def _told(runs: Sequence[str | Path]) -> Iterator[None]:
    """Turn what files with other values than hytas writes lead to into one line."""
    try:
        yield
    except (InputError, OSError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        names = ", ".join(map(str, runs))
        raise InputError(
            names, rule=f"files with values that no run has ({one_line(error)})"
        ) from None


def _report(
    runs: Sequence[str | Path], out: str | Path, moved: Mapping[str, Sequence[str]], report: Report
) -> None:
    folders = [RunFolder(path) for path in runs]
    first, _ = folders[0].read_config()
    facts, idle = [], any(moved.values())
    for folder in folders:
        shown = run_facts(folder, first=None if folder is folders[0] else first)
        if shown.pixels is None and shown.samples is None and shown.model is not None:
            config = folder.read_config()[0].moved(**moved)
            shown, idle = _with_pixels(shown, folder, config, report), False
        facts.append(shown)
    if idle:
        name = next(name for name, paths in moved.items() if paths)
        raise InputError(
            name, " ".join(moved[name]), "no run here needs its scene", hint="leave out the option"
        )
    for folder in folders:
        if Path(out).resolve() == folder.report.resolve():
            _write_into(folder, facts)
            return
    write_report(out, facts)


def _write_into(folder: RunFolder, facts: Sequence[RunFacts]) -> None:
    """Write the report into a run's own folder, which knows its files."""
    with RunFolder(folder.path) as held:
        held.manifest.forget([held.report])
        write_report(held.report, facts)
        held.manifest.record([held.report])


def _with_pixels(facts: RunFacts, folder: RunFolder, config: RunConfig, report: Report) -> RunFacts:
    """The facts with the pixels of the scene, or with why there are none."""
    try:
        scene = config.load_scene()
        if not isinstance(scene, Scene):
            return facts
        if scene.fingerprint != facts.fingerprint:
            raise InputError(f"{config.first_data} is another scene than that of the run")
        return replace(facts, pixels=_classify(folder, scene, report))
    except (InputError, OSError) as error:
        report.line(f"note: {facts.name}: no map: {error}")
        reason = f"The scene was not there to be classified again ({one_line(error)})."
        return replace(facts, notes=[*facts.notes, reason])


def _classify(folder: RunFolder, scene: Scene, report: Report) -> ReportPixels:
    deployed = DeployedModel.load(folder.onnx, "cpu")
    result = classify_parts(deployed, scene, report)
    split = if_there(folder.split, Split.load)
    return report_pixels(scene, result, deployed.card, split)
