"""The stages of a run, and the plan of those that a run needs.

The manifest forgets the files of a stage before it works, and records them afterwards."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from hytas.errors import InputError
from hytas.export import FILES
from hytas.run.choosing.searching import race_stage, search_stage, shorten_training
from hytas.run.context import Run, RunContext
from hytas.run.delivering.comparing import references_stage
from hytas.run.delivering.control import control_stage
from hytas.run.delivering.files import export_stage, further_formats, map_stage, predictions_stage
from hytas.run.delivering.reporting import report_stage
from hytas.run.final.seeds import seeds_stage
from hytas.run.final.stage import are_done, folds_stage, train_stage
from hytas.run.folder import ARTEFACTS
from hytas.run.prepared import PreparedScene
from hytas.run.repair import check_store, further_files
from hytas.run.repair import repair as remove_damaged


@dataclass(frozen=True)
class Stage:
    """One step of a run. It writes the files that the table names for it (`run/folder.py`).

    Attributes:
        changes: names of files of earlier stages that it writes again.
        done: whether its files are there; None looks for all that the table names for it.
        always: whether it runs every time, and checks for itself what is to do.
    """

    name: str
    work: Callable[[Run], object]
    changes: tuple[str, ...] = ()
    done: Callable[[Run], bool] | None = None
    always: bool = False

    def writes(self) -> list[str]:
        """Return the names of its files."""
        return [name for name, each in ARTEFACTS.items() if each.stage == self.name]

    def has_files(self, run: Run) -> bool:
        """Return whether the folder holds a file of the stage."""
        paths = (path for name in self.writes() for path in ARTEFACTS[name].paths(run.folder.path))
        return any(path.exists() for path in paths)

    def is_done(self, run: Run) -> bool:
        """Return whether the folder holds the files of the stage."""
        if self.always:
            return False
        if self.done is not None:
            return self.done(run)
        needed = [name for name in self.writes() if not ARTEFACTS[name].optional]
        return all(getattr(run.folder, name).exists() for name in needed)


def run_stages(stages: Sequence[Stage], run: Run) -> None:
    """Do the stages whose files are missing, in order."""
    for stage in stages:
        if not stage.is_done(run):
            do_stage(stage, run)


def do_stage(stage: Stage, run: Run) -> None:
    """Do a stage, even if its files exist."""
    run.report.stage(stage.name)
    folder = run.folder
    names = [*stage.writes(), *stage.changes, *([] if stage.always else ["times"])]
    folder.manifest.forget(path for name in names for path in ARTEFACTS[name].paths(folder.path))
    with nullcontext() if stage.always else run.timed(stage.name):
        stage.work(run)
    folder.manifest.record(path for name in names for path in ARTEFACTS[name].paths(folder.path))


def repair(run: Run, stages: Sequence[Stage], *, needs_store: bool = True) -> None:
    """Find and report damaged files, and remove them so that `stages` make them again."""
    try:
        check_store(run.folder, run.report)
    except InputError as error:
        if needs_store:
            raise
        run.report.notice(str(error))
    damaged = remove_damaged(run.folder, [stage.name for stage in stages], run.report)
    optional = {ARTEFACTS[name].stage for name in damaged if ARTEFACTS[name].optional}
    for stage in stages:  # only a stage that writes optional files can be done without them
        if stage.name in optional and stage.is_done(run):
            do_stage(stage, run)


def repair_further_formats(run: Run) -> None:
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


def _architecture_is_chosen(run: Run) -> bool:
    return run.folder.architecture.exists()


# The store grows until the race has a winner.
SEARCH = Stage("search", search_stage, done=_architecture_is_chosen)
RACE = Stage("race", race_stage, ("evaluations",), done=_architecture_is_chosen)
FOLDS = Stage("training on folds", folds_stage, done=are_done)
TRAIN = Stage("final training", train_stage)
# Its figures are in the metrics, too, if it is done again after the export.
REFERENCES = Stage("reference methods", references_stage, ("metrics",))
EXPORT = Stage("export", export_stage)
MAP = Stage("map", map_stage)
PREDICTIONS = Stage("predictions", predictions_stage)
# Last, because it reports on all other files.
REPORT = Stage("report", report_stage, always=True)


class Plan(NamedTuple):
    """The stages of a run in order; configuration and kind of data choose them once.

    Attributes:
        choosing: from the scene to an architecture.
        training: from the architecture to weights.
        references: the comparison with reference methods.
        delivering: from weights to checked files and maps.
        ending: further seeds, and the report.
    """

    choosing: tuple[Stage, ...]
    training: tuple[Stage, ...]
    references: tuple[Stage, ...]
    delivering: tuple[Stage, ...]
    ending: tuple[Stage, ...]

    @property
    def finishing(self) -> tuple[Stage, ...]:
        """All stages after the choice of the architecture."""
        return (*self.training, *self.references, *self.delivering, *self.ending)


def plan_of(context: RunContext, *, references: bool = True) -> Plan:
    """Return the plan of a run.

    Args:
        references: whether the winner is compared with reference methods.
    """
    drawing = MAP if isinstance(context.data, PreparedScene) else PREDICTIONS
    seeds = Stage(
        "seeds",
        partial(_seeds, stages=(FOLDS, TRAIN, EXPORT)),
        ("metrics",),
        always=True,
    )
    control = Stage("control", _control, ("metrics",), always=True)
    return Plan(
        (SEARCH, RACE),
        (FOLDS, TRAIN),
        (REFERENCES,) if references else (),
        (EXPORT, drawing),
        (seeds, control, REPORT),
    )


def _control(run: Run) -> None:
    def search_and_train(inner: Run) -> None:
        plan = plan_of(inner.context, references=False)
        repair(inner, (*plan.choosing, *plan.finishing))
        run_stages(plan.choosing, inner)
        shorten_training(inner)
        run_stages(plan.finishing, inner)
        inner.folder.record_all()

    control_stage(run, search_and_train)


def _seeds(run: Run, stages: Sequence[Stage]) -> None:
    def train_and_check(run: Run, inner: Run) -> None:
        if inner.folder.manifest.damaged or inner.folder.manifest.faults():
            run.report.notice(f"in {inner.folder.path.name}:")
        repair(inner, stages)
        run_stages(stages, inner)
        inner.folder.record_all()

    seeds_stage(run, train_and_check)
