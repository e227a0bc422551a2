"""Find damaged files of a run's folder by its manifest, and remove what stages make again."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.export import FILES
from hytas.run.artefacts import AGAIN, Artefact
from hytas.run.folder import ARTEFACTS, RunFolder, read_json, write_json
from hytas.run.progress import Report
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore
from hytas.spaces.names import network_of

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
    for path in (folder.architecture, folder.recipe):
        if path in faults and folder.weights not in faults and _restore(folder, path):
            _, fault = faults.pop(path)
            report.notice(f"{path.name}: {fault}: made again from {folder.weights.name}")
    for path, (artefact, fault) in list(faults.items()):
        if artefact.stage not in stages:
            del faults[path]
            report.notice(f"{path.name}: {fault}; the command of this run makes it again")
    _remove(folder, faults, report)
    if folder.weights.exists():  # a stop right after the final training leaves its checkpoints
        folder.forget_training()
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
    folder.manifest.forget(path for path, (each, _) in faults.items() if each.name == "records")
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


def _restore(folder: RunFolder, path: Path) -> bool:
    """Write what the race chose again, from undamaged weights and the store next to them.

    Returns:
        Whether the weights tell it.
    """
    if not folder.weights.is_file():
        return False
    try:
        model = load_weights(folder.weights)
        if path == folder.architecture:
            chosen = _as_scored(folder, network_of(model.card.architecture))
        else:
            chosen = {"preset": model.training["preset"], **_shorter_lengths(folder)}
    except (InputError, KeyError, TypeError, ValueError):
        return False
    write_json(path, chosen)
    folder.manifest.record([path])
    return True


def _shorter_lengths(folder: RunFolder) -> dict[str, int]:
    """Return the lengths of a final training that minutes made shorter."""
    plan = read_json(folder.pace) if folder.pace.exists() else {}
    lengths = {name: plan[name] for name in ("steps", "folds") if name in plan}
    return {name: done for name, (done, most) in lengths.items() if done != most}


def _as_scored(folder: RunFolder, architecture: dict[str, Any]) -> dict[str, Any]:
    """Return the architecture with its genes in the order of the store; weights sort them."""
    if not folder.evaluations.is_file():
        return architecture
    with EvaluationStore(folder.evaluations, read_only=True) as store:
        candidates = [item.architecture for item in store.evaluations()]
    return next((one for one in candidates if one == architecture), architecture)
