"""The stages of a run in order: what each stage reads and writes, and whether it is done.

The manifest forgets the files of a stage before it works, and records them afterwards."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hytas.errors import InputError
from hytas.export import FILES
from hytas.run.choosing.searching import race_stage, search_stage
from hytas.run.config import SUPERNET_STRATEGY
from hytas.run.context import Run
from hytas.run.damage import (
    check_store,
    drop,
    find_faults,
    further_files,
    known_files,
    restore_choice,
)
from hytas.run.delivering.comparing import references_stage
from hytas.run.delivering.files import (
    charts_stage,
    export_stage,
    further_formats,
    map_stage,
    predictions_stage,
)
from hytas.run.delivering.reporting import report_stage
from hytas.run.fitting.training import copy_choice, seeds_stage, train_stage
from hytas.run.folder import RunFolder
from hytas.run.supernets.strategy import choose_by_supernet, inherit_if_better
from hytas.run.times import keep_time


@dataclass(frozen=True)
class Stage:
    """One step of a run; files are named as the attributes of `RunFolder`.

    Attributes:
        name: of the stage.
        work: the function that does it.
        reads: files of earlier stages that it needs.
        writes: files that it writes.
        done_by: files that exist once it is done; None means `writes`. If empty, the stage runs
            every time and checks for itself what exists.
        at_times: files that it writes only if the run asks for them.
        of_map: whether it is for scenes only (True), for images only (False), or for both.
    """

    name: str
    work: Callable[[Run], None]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    done_by: tuple[str, ...] | None = None
    at_times: tuple[str, ...] = ()
    of_map: bool | None = None

    def suits(self, run: Run) -> bool:
        """Return whether the stage is for the data of the run."""
        return self.of_map in (None, run.context.data.scene.has_map)

    def is_done(self, folder: RunFolder) -> bool:
        """Return whether the folder holds the files of the stage."""
        files = self.writes if self.done_by is None else self.done_by
        return bool(files) and all(getattr(folder, name).exists() for name in files)


def run_stages(stages: Sequence[Stage], run: Run) -> None:
    """Do the stages whose files are missing, in order."""
    for stage in stages:
        if stage.suits(run) and not stage.is_done(run.folder):
            do_stage(stage, run)


def do_stage(stage: Stage, run: Run) -> None:
    """Do a stage, even if its files exist."""
    files = known_files(run.folder, (*stage.writes, *stage.at_times))
    looks_itself = stage.done_by == ()
    if not looks_itself:
        files.append(run.folder.times)
    run.folder.manifest.forget(files)
    run.report.stage(stage.name)
    start = time.perf_counter()
    stage.work(run)
    if not looks_itself:
        keep_time(run.folder.times, stage.name, time.perf_counter() - start, run.command)
    run.folder.manifest.record(files)


def mend(run: Run, *, needs_store: bool = True) -> None:
    """Find and report damaged files, and remove them so that stages make them again.

    Raises:
        InputError: a damaged file is needed and cannot be made again.
    """
    folder, tell = run.folder, run.report.notice
    if folder.manifest.damaged:
        tell(f"{folder.manifest.path.name}: damaged: made again from the files as they are")
    try:
        check_store(folder, tell)
    except InputError as error:
        if needs_store:
            raise
        tell(str(error))
    if fault := folder.manifest.fault(folder.times):
        tell(f"{folder.times.name}: {fault}: how long the stages took is not known any more")
        folder.times.unlink(missing_ok=True)
        folder.manifest.forget([folder.times])
    faults = find_faults(folder)
    for name in ("architecture", "recipe"):
        if name in faults and "weights" not in faults and restore_choice(folder, name):
            path = getattr(folder, name)
            tell(f"{path.name}: {faults.pop(name)}: made again from {folder.weights.name}")
    drop(folder, faults, tell)
    if TRAIN.is_done(folder):  # a stop right after it leaves its checkpoints
        folder.forget_checkpoints()
    if {"front", "front_picture"} & set(faults) and SEARCH.is_done(folder):
        do_stage(SEARCH, run)  # all candidates are scored already, so it only draws the front


def mend_further(run: Run) -> None:
    """Write damaged files of further export formats again, from undamaged weights."""
    for path in further_files(run.folder):
        if (fault := run.folder.manifest.fault(path)) is None:
            continue
        name, taken = FILES[path.name]
        try:
            further_formats(run, [name], force=False, taken=taken)
        except InputError as error:
            run.report.notice(f"{path.name}: {fault}, and could not be made again: {error}")
            continue
        run.report.notice(f"{path.name}: {fault}: made again")


def record_all(run: Run) -> None:
    """Record the files of an older run that had no manifest."""
    names = [name for stage in (*CHOOSING, *FINISHING) for name in (*stage.writes, *stage.at_times)]
    files = known_files(run.folder, dict.fromkeys([*names, "times"]))
    run.folder.manifest.record(path for path in files if path not in run.folder.manifest)


def _choose(run: Run) -> None:
    by_supernet = run.context.config.strategy == SUPERNET_STRATEGY
    (choose_by_supernet if by_supernet else race_stage)(run)


def _train(run: Run) -> None:
    if not inherit_if_better(run):
        train_stage(run)


def _seeds(run: Run) -> None:
    seeds_stage(run, _train_seed)


def _train_seed(run: Run, inner: Run) -> None:
    if inner.folder.manifest.damaged or inner.folder.manifest.faults():
        run.report.line(f"in {inner.folder.path.name}:")
    mend(inner)
    copy_choice(run, inner)
    if not inner.folder.metrics.exists() or not EXPORT.is_done(inner.folder):
        run_stages((TRAIN, EXPORT), inner)
    record_all(inner)


# The store grows until the race has a winner.
SEARCH = Stage(
    "search", search_stage, (), ("evaluations",), ("architecture",), ("front", "front_picture")
)
RACE = Stage(
    "race",
    _choose,
    ("evaluations",),
    ("evaluations", "recipe", "architecture"),
    ("architecture",),
)
TRAIN = Stage("final training", _train, ("architecture",), ("weights", "calibration"), ("weights",))
# Its figures are in the metrics too; a run of an older version has metrics already.
REFERENCES = Stage(
    "reference methods",
    references_stage,
    ("weights",),
    ("references",),
    at_times=("metrics",),
)
EXPORT = Stage("export", export_stage, ("weights",), ("onnx", "torchscript", "metrics"))
CHARTS = Stage("charts", charts_stage, ("metrics",), ("learning_curve", "confusion"))
MAP = Stage("map", map_stage, ("onnx",), ("map", "pixels"), of_map=True)
PREDICTIONS = Stage(
    "predictions", predictions_stage, ("onnx",), ("predictions", "samples"), of_map=False
)
SEEDS = Stage("seeds", _seeds, ("architecture", "metrics"), ("metrics", "evaluations"), done_by=())
# Last, for it tells of all that is there.
REPORT = Stage("report", report_stage, ("metrics", "pixels"), ("report",), done_by=())

CHOOSING = (SEARCH, RACE)
FINISHING = (TRAIN, REFERENCES, EXPORT, CHARTS, MAP, PREDICTIONS, SEEDS, REPORT)
