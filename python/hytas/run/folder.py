"""The folder of a run: its files, its owner, and a lock for one process at a time."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from hytas.data import LabelledData
from hytas.errors import InputError, one_line
from hytas.files import lock, parse_json, write_text
from hytas.manifest import Manifest
from hytas.run.config import RunConfig
from hytas.spaces import file_digests, with_files

# The temporary names of `hytas.files.atomic_write` for the files of a run.
LEFTOVER = re.compile(r"\.[\w.-]+\.\d+\.\w+")
# Paths may change; the fingerprint identifies the data.
WHERE = ("data", "labels", "test_data", "test_labels", "cube_key", "labels_key", "data_dir")


class RunFolder:
    """The files of one run.

    Use as a context manager: it creates the folder and holds its lock.

    Raises:
        InputError: another process works in the folder, or its files are not a run.
        OSError: the folder cannot be made or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.split = self.path / "split.npz"
        self.evaluations = self.path / "evaluations.sqlite"
        self.architecture = self.path / "architecture.json"
        self.recipe = self.path / "recipe.json"
        self.race = self.path / "race"
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.calibration = self.path / "calibration.json"
        self.weights = self.path / "weights.safetensors"
        self.references = self.path / "references.json"
        self.onnx = self.path / "model.onnx"
        self.torchscript = self.path / "model.pt"
        self.metrics = self.path / "metrics.json"
        self.learning_curve = self.path / "learning-curve.svg"
        self.confusion = self.path / "confusion.svg"
        self.map = self.path / "map.png"
        self.predictions = self.path / "predictions.csv"
        self.supernet = self.path / "supernet.safetensors"
        self.family = self.path / "family.csv"
        self.family_picture = self.path / "family.svg"
        self.family_weights = self.path / "family.npz"
        self.family_slices = self.path / "slices.json"
        self.pixels = self.path / "pixels.npz"
        self.samples = self.path / "samples.npz"
        self.report = self.path / "report.html"
        self.log = self.path / "run.log"
        self.times = self.path / "times.json"
        self.front = self.path / "pareto.csv"
        self.front_picture = self.path / "pareto.png"
        self.manifest = Manifest(self.path)
        self._lock: TextIO | None = None

    def __enter__(self) -> "RunFolder":
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"--out {self.path}: is a file; a run needs a folder")
        if self.path.exists() and not self.config.exists() and self._holds_foreign_files():
            raise InputError(
                f"--out {self.path}: holds files but no run (no config.json); "
                "name a new or an empty folder"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / ".lock").open("a+", encoding="utf-8")
        if not lock(self._lock):
            self._lock.seek(0)
            holder = self._lock.read().strip()
            self._lock.close()
            raise InputError(
                f"--out {self.path}: another hytas (process {holder}) works in this folder; "
                "wait for it or choose another"
            )
        self._remove_leftovers()
        self.manifest = Manifest(self.path)  # read again, now that this process holds the lock
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._lock.close()

    def _remove_leftovers(self) -> None:
        """Remove half-written files of a killed process; no other process writes here now."""
        for path in self.path.iterdir():
            if LEFTOVER.fullmatch(path.name):
                path.unlink()

    def of_seed(self, seed: int) -> "RunFolder":
        """Return the folder for a final training with another seed, inside this one."""
        return self.inside(f"seed-{seed}")

    def inside(self, name: str) -> "RunFolder":
        """Return the folder of that name, inside this one and under its lock."""
        inner = RunFolder(self.path / name)
        inner.path.mkdir(exist_ok=True)
        inner._remove_leftovers()
        return inner

    def _holds_foreign_files(self) -> bool:
        return any(not item.name.startswith(".") for item in self.path.iterdir())

    def claim(self, config: RunConfig, scene: LabelledData) -> None:
        """Write `config` into a new folder, or check that the folder has the same configuration.

        Before the final training begins, the recipe may change. Before the architecture is chosen,
        only its length may change, because the race uses the rest of the recipe.

        Raises:
            InputError: the folder belongs to another scene or configuration, or a file that the
                configuration names has changed.
        """
        start = None if config.start is None else str(RunFolder(config.start).weights)
        digests = file_digests(config.space, config.budget, config.supernet, start)
        # Compared by name only, because files may move; the digests identify them.
        files = [[Path(path).name, digest] for path, digest in digests.items()]
        versions = _versions()
        if self.config.exists():
            stored, fingerprint = self.read_config()
            held = read_json(self.config)
            versions = held.get("versions", versions)
            for path, now, before in zip(digests, files, held.get("files", []), strict=False):
                if now[0] == before[0] and now != before:
                    raise InputError(
                        f"{path}: has changed since the run in {self.path} began; put it back, or "
                        "choose another folder"
                    )
            if fingerprint != scene.fingerprint:
                raise InputError(
                    f"--out {self.path}: belongs to another scene ({stored.data}); "
                    "choose another folder"
                )
            trained = self._training_began()
            compared = stored if trained else stored.with_length_of(config)
            free = ["effort"] if trained else ["effort", "smooth", "self_training"]
            free += ["recipe"] if self.architecture.exists() and not trained else []
            if lines := _moved(config).differences(_moved(compared), (*WHERE, "seeds", *free)):
                raise InputError(
                    f"--out {self.path}: belongs to another configuration: {'; '.join(lines)}; "
                    "choose another folder or repeat its settings"
                )
        card = {
            "scene": scene.fingerprint,
            "files": files,
            "versions": versions,
            "config": config.to_dict(),
        }
        if not self.config.exists() or read_json(self.config) != json.loads(json.dumps(card)):
            self.manifest.forget([self.config])
            write_json(self.config, card)
        self.manifest.record([self.config])

    def calibration_checkpoint(self, fold: int) -> Path:
        """Return the checkpoint of the calibration training that leaves out a fold."""
        return self.path / f"calibration-{fold}.safetensors"

    def self_training_checkpoint(self, number: int, fold: int | None = None) -> Path:
        """Return the checkpoint of a round of self-training.

        Args:
            number: of the round.
            fold: of the calibration training that the round follows; None is the final training.
        """
        return self.path / f"{_rounds(fold)}{number}.safetensors"

    def forget_checkpoints(self, fold: int | None = None) -> None:
        """Remove the checkpoints of the final training, or of a calibration training.

        The first training's goes last: as long as it exists, the recipe cannot change.
        """
        first = self.checkpoint if fold is None else self.calibration_checkpoint(fold)
        for path in (*self.path.glob(f"{_rounds(fold)}*.safetensors"), first):
            path.unlink(missing_ok=True)

    def calibration_checkpoints(self) -> list[Path]:
        """Return the checkpoints of calibration trainings that exist."""
        return sorted(self.path.glob("calibration-*.safetensors"))

    def _training_began(self) -> bool:
        """Return whether a file exists that the recipe decided after the race."""
        files = (self.checkpoint, self.weights, self.calibration)
        return any(file.exists() for file in files) or bool(self.calibration_checkpoints())

    def read_config(self) -> tuple[RunConfig, str]:
        """Return the folder's configuration and the fingerprint of its scene.

        Raises:
            InputError: it is missing or not readable.
        """
        if not self.path.exists():
            raise InputError(f"run {self.path}: no such folder")
        if self.path.is_dir() and not self.config.exists():
            raise InputError(f"{self.path}: is not a run folder: it holds no config.json")
        values = self._whole_config()
        try:
            return RunConfig.from_dict(values["config"]), str(values["scene"])
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{self.config}: not a run's configuration ({one_line(error)})"
            ) from None

    def _whole_config(self) -> dict[str, Any]:
        """Return the content of `config.json`.

        Raises:
            InputError: it is missing or damaged, and cannot be made again.
        """
        if fault := self.manifest.fault(self.config):
            raise InputError(
                f"{self.config}: {fault}; it cannot be made again from other files: put a copy "
                "back, or choose another folder"
            )
        return read_json(self.config)


def _rounds(fold: int | None) -> str:
    """Return how the names of checkpoints of self-training begin."""
    return "self-training-" if fold is None else f"calibration-{fold}-self-training-"


def _moved(config: RunConfig) -> RunConfig:
    """Return the configuration with the names of its space file, latency tables and supernet."""
    space, budget = with_files(config.space, config.budget, lambda path: Path(path).name)
    supernet, start = (
        None if path is None else Path(path).name for path in (config.supernet, config.start)
    )
    return replace(config, space=space, budget=budget, supernet=supernet, start=start)


def _versions() -> dict[str, str]:
    """Return the versions of the packages that decide the numbers of a new run."""
    return {name: version(name) for name in ("hytas", "torch", "numpy", "scikit-learn")}


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write strict JSON, completely or not at all."""
    write_text(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InputError: the file is missing or does not hold a JSON object.
    """
    try:
        values = parse_json(path.read_bytes(), path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: must hold a JSON object")
    return values
