"""Do the stages of a run whose files are absent or damaged, with all that is made from them.

The manifest forgets the files of a stage before it works, and records them afterwards.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.export import files_of_formats, target_format
from hytas.run.artefacts import AGAIN, Artefact
from hytas.run.context import Run
from hytas.run.delivering.control import note_of_evolved
from hytas.run.delivering.files import further_formats
from hytas.run.folder import ARTEFACTS, RunFolder
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore

Done = Callable[[Run], bool]
FIGURES = "figures"
ALWAYS = (FIGURES, "report")
"""Stages that gather what others left, every time, and write only what has changed."""


def do(
    run: Run,
    name: str,
    work: Callable[[Run], object],
    *,
    done: Done | None = None,
    again: bool = False,
    changes: Iterable[Path] = (),
    shown: str = "",
) -> None:
    """Do a stage, if it has not been done.

    Args:
        name: of the stage, in the table of files (`RunFolder`).
        work: writes its files.
        done: whether there is nothing to do, for a stage whose files do not tell; its damaged
            files are made again all the same.
        again: do it in any case.
        changes: files of earlier stages that it changes.
        shown: what the user reads in place of the name.
    """
    folder = run.folder
    damaged = _damaged(folder, name)
    complete = is_done(run, name) if done is None else done(run)
    if complete and not damaged and not (again or name in ALWAYS):
        return
    for path, fault in damaged.items():
        run.report.notice(f"{path.name}: {fault}: made again")
        path.unlink(missing_ok=True)
    if damaged or not complete:
        _remove_made_from(folder, name)
    if name != FIGURES:
        run.report.stage(shown or name)
    files = [*(each.path(folder.path) for each in _files(name)), *changes]
    files += [] if name in ALWAYS else [folder.times]
    folder.manifest.forget(files)
    with nullcontext() if name in ALWAYS else run.timed(name):
        work(run)
    folder.manifest.record(files)


def is_done(run: Run, name: str) -> bool:
    """Return whether the folder holds the files of a stage, undamaged."""
    needed = [each for each in _files(name) if not each.optional]
    exist = all(each.path(run.folder.path).exists() for each in needed)
    return bool(needed) and exist and not _damaged(run.folder, name)


def begin(run: Run, names: Sequence[str], *, needs_store: bool = True) -> None:
    """Tell scene, split, settings, what was done before, and what is damaged.

    Args:
        names: of the stages of the run; without any, nothing is told of it.
        needs_store: whether a damaged store of candidates is refused.
    """
    folder, report = run.folder, run.report
    try:
        _check_store(folder, run)
    except InputError as error:
        if needs_store:
            raise
        report.notice(str(error))
    if folder.manifest.damaged:
        file = folder.manifest.path.name
        report.notice(f"{file}: damaged: made again from the files as they are")
    if fault := folder.manifest.fault(folder.times):
        file = folder.times.name
        report.notice(f"{file}: {fault}: how long the stages took is not known any more")
        folder.times.unlink(missing_ok=True)
        folder.manifest.forget([folder.times])
    if folder.weights.exists():
        _repair_further_formats(run)
    if names:
        _introduce(run, names)


def _introduce(run: Run, names: Sequence[str]) -> None:
    config, data, report = run.context.config, run.context.data, run.report
    report.notice(data.scene.describe(data.shape.bands))
    for note in data.scene.notes:
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
    report.plan(list(names))
    done = [name for name in names if name != "report" and is_done(run, name)]
    if done:
        report.notice(f"goes on in {run.folder.path}; done before: {', '.join(done)}")
    elif run.folder.evaluations.exists():
        report.notice(f"goes on in {run.folder.path}, which has no winner yet")


def check_trained(folder: RunFolder) -> dict[str, Any]:
    """Return the architecture of the trained weights of a run; refuse damaged ones."""
    if folder.weights.exists() and (fault := folder.manifest.fault(folder.weights)):
        hint = "run the command of this run again to train them again"
        raise InputError(folder.weights, rule=fault, hint=hint)
    return dict(load_weights(folder.weights).card.architecture)


def _files(stage: str) -> list[Artefact]:
    return [each for each in ARTEFACTS.values() if each.stage == stage]


def _damaged(folder: RunFolder, stage: str) -> dict[Path, str]:
    """Return path -> fault of each recorded file of a stage that differs or is missing."""
    paths = [each.path(folder.path) for each in _files(stage) if each.repair == AGAIN]
    faults = ((path, folder.manifest.fault(path)) for path in paths)
    return {path: fault for path, fault in faults if fault is not None}


def _remove_made_from(folder: RunFolder, stage: str) -> None:
    """Remove the files that are made from those of a stage, directly or not."""
    waiting, gone = [each.name for each in _files(stage)], set[str]()
    while waiting:
        name = waiting.pop()
        following = {each.name for each in ARTEFACTS.values() if name in each.made_from} - gone
        gone |= following
        waiting += following
    paths = [ARTEFACTS[name].path(folder.path) for name in gone]
    if "weights" in gone or stage == ARTEFACTS["weights"].stage:
        paths += _further_files(folder)
    folder.manifest.forget(paths)
    for path in paths:
        path.unlink(missing_ok=True)


def _check_store(folder: RunFolder, run: Run) -> None:
    """Refuse a damaged store, which cannot be made again from other files."""
    store, fault = folder.evaluations, folder.manifest.fault(folder.evaluations)
    if fault == "missing":
        run.report.notice(f"{store.name}: missing: the scores of the search are lost")
        folder.manifest.forget([store])
        return
    if fault is None and store.is_file() and store not in folder.manifest:
        with EvaluationStore(store) as opened:  # of a stage that was stopped
            fault = opened.fault()
    if fault is not None:
        rule = f"{fault}; it cannot be made again from other files"
        hint = "put a copy back, or delete it to go on without the scores of the search"
        raise InputError(store, rule=rule, hint=hint)


def _further_files(folder: RunFolder) -> list[Path]:
    """Return the files of further export formats that the manifest knows."""
    own = {each.file for each in ARTEFACTS.values()}
    formats = files_of_formats()
    named = [name for name in folder.manifest.names() if name in formats and name not in own]
    return [folder.path / name for name in named]


def _repair_further_formats(run: Run) -> None:
    """Write damaged files of further export formats again, from undamaged weights."""
    for path in _further_files(run.folder):
        fault = run.folder.manifest.fault(path)
        if fault is None or run.folder.manifest.fault(run.folder.weights) is not None:
            continue
        name, taken = files_of_formats()[path.name]
        target = run.context.config.target
        forced = target is not None and name == target_format(target)
        try:
            further_formats(run, [name], force=forced, taken=taken)
        except InputError as error:
            run.report.notice(f"{path.name}: {fault}, and could not be made again: {error}")
            continue
        run.report.notice(f"{path.name}: {fault}: made again")
