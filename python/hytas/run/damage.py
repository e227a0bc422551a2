"""What a run's folder holds against what was written there: what is damaged, and what with it."""

import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hytas.deploy.model_file import examine, read_model
from hytas.errors import InputError
from hytas.export import FORMATS
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore
from hytas.tensors import read_tensors

# Attributes of `RunFolder`: what stages write, the store apart, whose damage nothing mends.
_PICTURES = ("learning_curve", "confusion", "map", "front", "front_picture")
MENDED = ("recipe", "architecture", "weights", "onnx", "torchscript", "metrics", *_PICTURES)
# What is made from what; the maps and charts of a seed's folder are never made.
_MADE_FROM = {
    "architecture": ("weights",),
    "weights": ("onnx", "torchscript", "metrics"),
    "metrics": ("learning_curve", "confusion"),
    "onnx": ("map",),
}


def find_faults(folder: RunFolder) -> dict[str, str]:
    """What is wrong with which file of `MENDED`, by attribute; a file never written is not wrong.

    A file that the manifest does not know, as of an older version, is looked at by its kind.
    """
    found = {}
    for name in MENDED:
        path = getattr(folder, name)
        fault = folder.manifest.fault(path)
        if fault is None and path.is_file() and path not in folder.manifest:
            fault = _unreadable(name, path)
        if fault is not None:
            found[name] = fault
    return found


def check_trained(folder: RunFolder) -> None:
    """Refuse weights that are not those that were trained.

    Raises:
        InputError: they are damaged.
    """
    if folder.weights.exists() and (fault := find_faults(folder).get("weights")):
        raise InputError(
            f"{folder.weights}: {fault}: the command that began the run trains them again"
        )


def check_store(folder: RunFolder, tell: Callable[[str], None]) -> None:
    """Refuse a damaged store, which holds what no other file can give back.

    Raises:
        InputError: it is damaged.
    """
    store, fault = folder.evaluations, folder.manifest.fault(folder.evaluations)
    if fault == "missing":
        tell(f"{store.name}: missing: what the search scored is not there any more")
        folder.manifest.forget([store])
        return
    if fault is None and store.is_file() and store not in folder.manifest:
        # An interrupted run has a store that nothing was recorded of; an empty file is none.
        fault = "empty" if folder.architecture.exists() and not store.stat().st_size else None
    if fault is not None:
        raise InputError(
            f"{store}: {fault}; it cannot be made again from other files: put a copy back, or "
            "delete it to go on without what the search scored"
        )


def drop(folder: RunFolder, faults: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Say what is damaged, and remove it with all that was made from it: stages make it again."""
    gone: list[str] = []
    waiting = list(faults)
    while waiting:
        name = waiting.pop(0)
        if name not in gone:
            gone.append(name)
            waiting += _MADE_FROM.get(name, ())
    for name in gone:
        path = getattr(folder, name)
        if name in faults:
            tell(f"{path.name}: {faults[name]}: made again")
        path.unlink(missing_ok=True)
    if "weights" in gone:
        for path in further_files(folder):
            path.unlink(missing_ok=True)


def restore_architecture(folder: RunFolder) -> bool:
    """Write the architecture that whole weights, or a whole store beside them, tell of."""
    if not folder.weights.is_file():
        return False
    try:
        told = dict(load_weights(folder.weights).card.architecture)
        ordered = _as_scored(folder, told)
    except InputError:
        return False
    write_json(folder.architecture, ordered)
    folder.manifest.record([folder.architecture])
    return True


def _as_scored(folder: RunFolder, architecture: dict[str, Any]) -> dict[str, Any]:
    """The architecture with its genes in the order of the store; a file of weights sorts them."""
    if not folder.evaluations.is_file():
        return architecture
    with EvaluationStore(folder.evaluations, read_only=True) as store:
        found = [item.architecture for item in store.evaluations()]
    return next((one for one in found if one == architecture), architecture)


def further_files(folder: RunFolder) -> list[Path]:
    """The files of further export formats that the manifest knows."""
    main = (folder.onnx, folder.torchscript)
    files = [folder.path / entry.file for entry in FORMATS.values()]
    return [path for path in files if path not in main and path in folder.manifest]


def _unreadable(name: str, path: Path) -> str | None:
    """Why a file cannot be what was written, as far as it tells by itself."""
    try:
        if path.stat().st_size == 0:
            return "damaged (empty)"
        _LOOKS.get(name, _nothing)(path)
    except (InputError, zipfile.BadZipFile) as error:
        return f"damaged ({str(error).removeprefix(f'{path}: ')})"
    return None


def _nothing(path: Path) -> None:
    """Pictures are drawn again for the asking."""


def _archive(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        if (name := archive.testzip()) is not None:
            raise InputError(f"the checksum of {name!r} in it is wrong")


def _ends(*signs: bytes) -> Callable[[Path], None]:
    def look(path: Path) -> None:
        if not path.read_bytes().rstrip().endswith(signs):
            raise InputError("it has no end")

    return look


def _metrics(path: Path) -> None:
    values = read_json(path)
    test, training = values.get("test"), values.get("training")
    figures = [test.get(name) for name in ("OA", "AA", "kappa")] if isinstance(test, dict) else []
    known = isinstance(training, dict) and isinstance(training.get("history"), list)
    if not figures or not all(map(_is_number, figures)) or not known or "parity" not in values:
        raise InputError("not the metrics of a run")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_LOOKS: dict[str, Callable[[Path], object]] = {
    "architecture": read_json,
    "metrics": _metrics,
    "weights": read_tensors,
    "onnx": lambda path: examine(read_model(path), path),
    "torchscript": _archive,
    "map": _ends(b"IEND\xaeB`\x82"),
    "front_picture": _ends(b"IEND\xaeB`\x82"),
    "learning_curve": _ends(b"</svg>"),
    "confusion": _ends(b"</svg>"),
}


def known_files(folder: RunFolder, names: Iterable[str]) -> list[Path]:
    """The paths of attributes of `RunFolder`."""
    return [getattr(folder, name) for name in names]
