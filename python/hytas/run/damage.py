"""Find damaged files in a run's folder, and the files that were made from them."""

import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hytas.deploy.model_file import examine, read_model
from hytas.errors import InputError
from hytas.export import FILES
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore
from hytas.tensors import read_tensors

# Attributes of `RunFolder`: files that stages can make again. The store is not one of them.
_PICTURES = (
    "learning_curve",
    "confusion",
    "map",
    "predictions",
    "pixels",
    "samples",
    "front",
    "front_picture",
    "report",
)
_MODELS = ("weights", "onnx", "torchscript")
MENDED = ("recipe", "architecture", *_MODELS, "references", "metrics", *_PICTURES)
# File -> files made from it. The folder of a further seed has no maps and charts.
_MADE_FROM = {
    "recipe": ("architecture",),
    "architecture": ("weights",),
    "weights": ("references", "onnx", "torchscript", "metrics"),
    "metrics": ("learning_curve", "confusion"),
    "onnx": ("map", "pixels", "predictions", "samples"),
}


def find_faults(folder: RunFolder) -> dict[str, str]:
    """Return attribute -> fault for each damaged file of `MENDED`; missing files may be new.

    A file that the manifest does not know, from an older version, is checked by its format.
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
    """Refuse damaged weights.

    Raises:
        InputError: the weights are not those that were trained.
    """
    if folder.weights.exists() and (fault := find_faults(folder).get("weights")):
        raise InputError(
            f"{folder.weights}: {fault}; run the command of this run again to train them again"
        )


def forget_damaged(checkpoint: Path, tell: Callable[[str], None]) -> None:
    """Remove a checkpoint if it is damaged, and say so; its training then begins again."""
    if not checkpoint.exists():
        return
    try:
        read_tensors(checkpoint)
    except InputError as error:
        tell(f"{error}: the training begins again")
        checkpoint.unlink()


def check_store(folder: RunFolder, tell: Callable[[str], None]) -> None:
    """Refuse a damaged store, which cannot be made again from other files.

    Raises:
        InputError: it is damaged.
    """
    store, fault = folder.evaluations, folder.manifest.fault(folder.evaluations)
    if fault == "missing":
        tell(f"{store.name}: missing: the scores of the search are lost")
        folder.manifest.forget([store])
        return
    if fault is None and store.is_file() and store not in folder.manifest:
        # The store of an interrupted run is not in the manifest; an empty file is not a store.
        fault = "empty" if folder.architecture.exists() and not store.stat().st_size else None
    if fault is not None:
        raise InputError(
            f"{store}: {fault}; it cannot be made again from other files: put a copy back, or "
            "delete it to go on without the scores of the search"
        )


def drop(folder: RunFolder, faults: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Report damaged files, and remove them and all files made from them, so that stages run."""
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


def restore_choice(folder: RunFolder, name: str) -> bool:
    """Write what the race chose again, from undamaged weights and the store beside them.

    Args:
        folder: of the run.
        name: "architecture" or "recipe".

    Returns:
        Whether the weights tell it.
    """
    if not folder.weights.is_file():
        return False
    try:
        model = load_weights(folder.weights)
        if name == "architecture":
            chosen = _as_scored(folder, dict(model.card.architecture))
        else:
            chosen = {"preset": model.training["preset"]}
    except (InputError, KeyError, TypeError):
        return False
    path = getattr(folder, name)
    write_json(path, chosen)
    folder.manifest.record([path])
    return True


def _as_scored(folder: RunFolder, architecture: dict[str, Any]) -> dict[str, Any]:
    """Return the architecture with its genes in the order of the store; weights sort them."""
    if not folder.evaluations.is_file():
        return architecture
    with EvaluationStore(folder.evaluations, read_only=True) as store:
        found = [item.architecture for item in store.evaluations()]
    return next((one for one in found if one == architecture), architecture)


def further_files(folder: RunFolder) -> list[Path]:
    """Return the files of further export formats that the manifest knows."""
    main = (folder.onnx, folder.torchscript)
    files = [folder.path / name for name in FILES]
    return [path for path in files if path not in main and path in folder.manifest]


def _unreadable(name: str, path: Path) -> str | None:
    """Return why a file is damaged, as far as its format shows it; else None."""
    try:
        if path.stat().st_size == 0:
            return "damaged (empty)"
        _LOOKS.get(name, _nothing)(path)
    except (InputError, zipfile.BadZipFile) as error:
        return f"damaged ({str(error).removeprefix(f'{path}: ')})"
    return None


def _nothing(path: Path) -> None:
    """Check nothing: pictures are always drawn again."""


def _archive(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        if (name := archive.testzip()) is not None:
            raise InputError(f"the checksum of its member {name!r} is wrong")


def _ends(*signs: bytes) -> Callable[[Path], None]:
    def look(path: Path) -> None:
        if not path.read_bytes().rstrip().endswith(signs):
            raise InputError("its end is missing")

    return look


def _metrics(path: Path) -> None:
    values = read_json(path)
    test, training = values.get("test"), values.get("training")
    figures = [test.get(name) for name in ("OA", "AA", "kappa")] if isinstance(test, dict) else []
    known = isinstance(training, dict) and isinstance(training.get("history"), list)
    if not figures or not all(map(_is_number, figures)) or not known or "parity" not in values:
        raise InputError("not the metrics of a run")


def _references(path: Path) -> None:
    if not read_json(path).keys() >= {"reason", "validation", "methods"}:
        raise InputError("not the figures of reference methods")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_LOOKS: dict[str, Callable[[Path], object]] = {
    "architecture": read_json,
    "metrics": _metrics,
    "weights": read_tensors,
    "references": _references,
    "onnx": lambda path: examine(read_model(path), path),
    "torchscript": _archive,
    "map": _ends(b"IEND\xaeB`\x82"),
    "pixels": _archive,
    "samples": _archive,
    "report": _ends(b"</html>"),
    "front_picture": _ends(b"IEND\xaeB`\x82"),
    "learning_curve": _ends(b"</svg>"),
    "confusion": _ends(b"</svg>"),
}


def known_files(folder: RunFolder, names: Iterable[str]) -> list[Path]:
    """Return the paths of attributes of `RunFolder`."""
    return [getattr(folder, name) for name in names]
