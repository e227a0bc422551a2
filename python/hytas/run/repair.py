"""Find damaged files of a run's folder by its manifest, and remove what stages make again."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hytas.errors import InputError
from hytas.export import FILES
from hytas.run.artefacts import AGAIN, Artefact
from hytas.run.folder import ARTEFACTS, RunFolder
from hytas.run.progress import Report
from hytas.search import EvaluationStore

Faults = dict[Path, tuple[Artefact, str]]


def find_faults(folder: RunFolder) -> Faults:
    """Return path -> artefact and fault of each damaged or missing file that stages make again."""
    faults: Faults = {}
    for name, fault in folder.manifest.faults().items():
        for artefact in ARTEFACTS.values():
            again = artefact.repair == AGAIN and artefact.stage
            if again and fnmatchcase(name, artefact.file):
                faults[folder.path / name] = artefact, fault
    return faults


def repair(folder: RunFolder, stages: Sequence[str], report: Report) -> set[str]:
    """Remove damaged files, and all that is made from them, so that stages make them again.

    Args:
        stages: names of the stages that follow; files of other stages are only reported.

    Returns:
        The names of the artefacts that were damaged.
    """
    if folder.manifest.damaged:
        name = folder.manifest.path.name
        report.notice(f"{name}: damaged: made again from the files as they are")
    if fault := folder.manifest.fault(folder.times):
        name = folder.times.name
        report.notice(f"{name}: {fault}: how long the stages took is not known any more")
        folder.times.unlink(missing_ok=True)
        folder.manifest.forget([folder.times])
    faults = find_faults(folder)
    for path, (artefact, fault) in list(faults.items()):
        if artefact.stage not in stages:
            del faults[path]
            report.notice(f"{path.name}: {fault}; the command of this run makes it again")
    _remove(folder, faults, report)
    return {artefact.name for artefact, _ in faults.values()}


def check_store(folder: RunFolder, report: Report) -> None:
    """Refuse a damaged store, which cannot be made again from other files."""
    store, fault = folder.evaluations, folder.manifest.fault(folder.evaluations)
    if fault == "missing":
        report.notice(f"{store.name}: missing: the scores of the search are lost")
        folder.manifest.forget([store])
        return
    if fault is None and store.is_file() and store not in folder.manifest:
        with EvaluationStore(store) as opened:  # of a stage that was stopped
            fault = opened.fault()
    if fault is not None:
        rule = f"{fault}; it cannot be made again from other files"
        hint = "put a copy back, or delete it to go on without the scores of the search"
        raise InputError(store, rule=rule, hint=hint)


def check_trained(folder: RunFolder) -> None:
    """Refuse damaged weights."""
    if folder.weights.exists() and (fault := folder.manifest.fault(folder.weights)):
        hint = "run the command of this run again to train them again"
        raise InputError(folder.weights, rule=fault, hint=hint)


def further_files(folder: RunFolder) -> list[Path]:
    """Return the files of further export formats that the manifest knows."""
    main = (folder.onnx, folder.torchscript)
    files = [folder.path / name for name in FILES]
    return [path for path in files if path not in main and path in folder.manifest]


def _remove(folder: RunFolder, faults: Faults, report: Report) -> None:
    """Report damaged files, and remove them and all files that are made from them."""
    for path, (_, fault) in faults.items():
        report.notice(f"{path.name}: {fault}: made again")
        path.unlink(missing_ok=True)
    gone = _made_from({artefact.name for artefact, _ in faults.values()})
    paths = [path for name in gone for path in ARTEFACTS[name].paths(folder.path)]
    if "weights" in gone or folder.weights in faults:
        paths += further_files(folder)
    for path in paths:
        path.unlink(missing_ok=True)


def _made_from(names: Iterable[str]) -> set[str]:
    """Return the artefacts that are made from others, directly or not."""
    made: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        following = {each.name for each in ARTEFACTS.values() if name in each.made_from} - made
        made |= following
        waiting += following
    return made
