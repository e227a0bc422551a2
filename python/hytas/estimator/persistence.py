"""The run folder of a fitted estimator, and the export of its model."""

import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data import Scene
from hytas.errors import InputError
from hytas.estimator.arguments import python_arguments
from hytas.export import FORMATS, Evidence, export_file
from hytas.files import atomic_write
from hytas.job import run_pipeline
from hytas.run import Outcome, RunConfig
from hytas.run.progress import SILENT, Report
from hytas.run.weights import load_weights
from hytas.spaces import file_digests
from hytas.tasks import task_of_card

# The suffix of a file -> the first format with files of that suffix.
_SUFFIXES: dict[str, str] = {}
for _name, _entry in FORMATS.items():
    _SUFFIXES.setdefault(Path(_entry.file).suffix, _name)


class Persistent:
    """What estimators leave out when they are pickled."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: settings and model, without scene and open session."""
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_forget", None)
        return state | {name: None for name in ("_scene", "_deployed") if name in state}


def run_folder(
    owner: object, work_dir: str | Path | None, config: RunConfig, scene: Scene
) -> tuple[Path, Callable[[], object]]:
    """Return the folder of a run, and the function that removes it.

    A folder in `work_dir` is kept. Without `work_dir` the folder is a temporary one, which is
    removed together with `owner`.
    """
    if work_dir is not None:
        return Path(work_dir) / _digest(config, scene), keep
    folder = tempfile.mkdtemp(prefix="hytas-")
    forget = weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "run", forget


def fit_run(
    estimator: Any, config: RunConfig, scene: Scene, rows: bool, report: Report = SILENT
) -> None:
    """Do the run of a `fit`, and give the estimator what all estimators learn from it.

    Args:
        rows: whether a message may hint that a cube cannot be cut into rows.
    """
    folder, forget = run_folder(estimator, estimator.work_dir, config, scene)
    try:
        with python_arguments(rows=rows):
            # All labelled pixels are trained on, so there is nothing to compare on.
            outcome = run_pipeline(
                config, scene, folder, device=estimator.device, report=report, references=False
            )
    except BaseException:  # an earlier fit stays
        forget()
        raise
    getattr(estimator, "_forget", keep)()
    estimator._forget = forget
    estimator._content = (folder / "model.onnx").read_bytes()
    estimator.n_features_in_ = scene.bands
    estimator.architecture_, estimator.outcome_ = outcome.architecture, outcome
    estimator.run_dir_, estimator.seed_ = folder, config.seed


def keep() -> None:
    """Remove nothing: a folder that the user named stays."""


def _digest(config: RunConfig, scene: Scene) -> str:
    """Return a name for the run of one scene with one set of settings."""
    files = file_digests(config.space, config.budget)
    parts = [config.to_dict(), scene.fingerprint, *([files] if files else [])]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_format(path: Path, as_format: str | None) -> tuple[str, Path]:
    """Return the name of the format, and the path of the file to write."""
    name = as_format if as_format is not None else _SUFFIXES.get(path.suffix.lower())
    if name is None and path.is_dir():
        name = "onnx"
    if name is None:
        raise InputError(
            "path",
            path,
            f"must end in one of {', '.join(_SUFFIXES)}",
            hint=f"or give `as_format`, one of {', '.join(FORMATS)}",
        )
    if name not in FORMATS:
        raise InputError("as_format", name, f"must be one of {', '.join(FORMATS)}")
    return name, path / FORMATS[name].file if path.is_dir() else path


def write_onnx(path: Path, content: bytes, outcome: Outcome) -> dict[str, Any]:
    """Write the ONNX file that `fit` checked on every labelled pixel; return its figures."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    assert outcome.metrics is not None  # a run with epochs ends with figures
    parity = outcome.metrics["parity"]
    figures = {"pixels": parity["pixels"], **parity["formats"]["onnx"]}
    return {"file": str(path), "bytes": len(content), **figures}


def write_format(
    path: Path, name: str, folder: Path, scene: Scene | None, *, force: bool
) -> dict[str, Any]:
    """Export the weights of the run in `folder` in another format; return its figures.

    Raises:
        ExportError: the format fails its check.
    """
    weights = folder / "weights.safetensors"
    if scene is None or not weights.is_file():
        raise InputError(
            "as_format",
            name,
            f"needs the scene and the run's folder, {folder}",
            hint="an estimator loses them when it is pickled or when that folder is removed. Only "
            "onnx can be written",
        )
    trained = load_weights(weights)
    pixels = np.flatnonzero(scene.labels)
    card = trained.card
    read, targets = scene.reader(card.patch_size), scene.targets(pixels)
    evidence = Evidence(trained.sensor_model(), read, pixels, targets, task_of_card(card))
    return export_file(path, card, name, evidence, force=force)
