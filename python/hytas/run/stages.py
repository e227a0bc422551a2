"""Do the stages of a run whose files are absent or damaged, with all that is made from them.

The manifest forgets the files of a stage before it works, and records them afterwards.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.run.context import Run
from hytas.run.folder import ARTEFACTS, Artefact, RunFolder
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
        shown: what is shown of it; by default its name.
    """
    folder = run.folder
    damaged = _damaged(folder, name)
    complete = is_done(folder, name) if done is None else done(run)
    files = [*_recorded(folder, name), *changes]
    if complete and not damaged and not (again or name in ALWAYS):
        folder.manifest.record(path for path in files if path not in folder.manifest)
        return
    for path, fault in damaged.items():
        run.report.notice(f"{path.name}: {fault}: made again")
        path.unlink(missing_ok=True)
    if damaged or not complete:
        _remove_made_from(folder, name)
    if name != FIGURES:
        run.report.stage(shown or name)
    folder.manifest.forget(files)
    with nullcontext() if name in ALWAYS else run.timed(name):
        work(run)
    folder.manifest.record(files)


def is_done(folder: RunFolder, name: str) -> bool:
    """Return whether the folder holds the files of a stage, undamaged."""
    needed = [each.path(folder.path) for each in _files(name) if not each.optional]
    whole = all(path.is_file() for path in needed)
    return bool(needed) and whole and not _damaged(folder, name)


def begin(run: Run, names: Sequence[str], *, needs_store: bool = True) -> None:
    """Tell scene, split, settings and what was done before.

    Args:
        names: of the stages of the run; without any, nothing is told of it.
        needs_store: whether a damaged store of candidates is refused.
    """
    if needs_store:
        _check_store(run.folder)
    if not names:
        return
    config, data, report = run.context.config, run.context.data, run.report
    for what, notes in (
        (data.scene.describe(data.shape.bands), data.scene.notes),
        (data.split.describe(), data.split.notes),
    ):
        report.notice(what)
        for note in notes:
            report.notice(f"note: {note}")
    report.line(
        f"space {config.space}, budget {config.budget or 'none'}, "
        f"proxy {config.proxy}, seed {config.seed}, device {run.context.device}"
    )
    report.plan(list(names))
    done = [name for name in names if name != "report" and is_done(run.folder, name)]
    if done:
        report.notice(f"goes on in {run.folder.path}; done before: {', '.join(done)}")


def check_trained(folder: RunFolder) -> dict[str, Any]:
    """Return the architecture of the trained weights of a run; refuse damaged ones."""
    fault = folder.manifest.fault(folder.weights)
    if fault not in (None, "missing"):
        hint = "run the command of this run again to train them again"
        raise InputError(folder.weights, rule=fault, hint=hint)
    return dict(load_weights(folder.weights).card.architecture)


def _files(stage: str) -> list[Artefact]:
    return [each for each in ARTEFACTS.values() if each.stage == stage]


def _recorded(folder: RunFolder, stage: str) -> list[Path]:
    return [each.path(folder.path) for each in _files(stage) if each.recorded]


def _damaged(folder: RunFolder, stage: str) -> dict[Path, str]:
    """Return path -> fault of each recorded file of a stage that differs or is missing."""
    faults = ((path, folder.manifest.fault(path)) for path in _recorded(folder, stage))
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
    folder.manifest.forget(paths)
    for path in paths:
        path.unlink(missing_ok=True)


def _check_store(folder: RunFolder) -> None:
    """Refuse a damaged store, which cannot be made again from other files."""
    store, fault = folder.evaluations, folder.manifest.fault(folder.evaluations)
    if fault == "missing":
        folder.manifest.forget([store])
    elif fault is None and store.is_file() and store not in folder.manifest:
        with EvaluationStore(store) as opened:  # of a stage that was stopped
            fault = opened.fault()
    if fault not in (None, "missing"):
        rule = f"{fault}; it cannot be made again from other files"
        hint = "put a copy back, or delete it to go on without the scores of the search"
        raise InputError(store, rule=rule, hint=hint)
