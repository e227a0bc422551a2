"""A run's folder: whose it is, what lies where, and that one process at a time writes it."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from hytas.data import Scene
from hytas.errors import InputError, one_line
from hytas.files import lock, parse_json, write_text
from hytas.manifest import Manifest
from hytas.run.config import RunConfig
from hytas.spaces import file_digests, with_files

# The temporary names of `hytas.files.atomic_write` for the files of a run.
LEFTOVER = re.compile(r"\.[\w.-]+\.\d+\.\w+")
# Where the data lies does not change what it is; the fingerprint says what it is.
WHERE = ("data", "labels", "cube_key", "labels_key", "data_dir")


class RunFolder:
    """The files of one run.

    Use as a context manager: it creates the folder and holds its lock.

    Raises:
        InputError: another process holds the folder, or it holds something else than a run.
        OSError: the folder cannot be made or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.split = self.path / "split.npz"
        self.evaluations = self.path / "evaluations.sqlite"
        self.architecture = self.path / "architecture.json"
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.calibration = self.path / "calibration.json"
        self.weights = self.path / "weights.safetensors"
        self.onnx = self.path / "model.onnx"
        self.torchscript = self.path / "model.pt"
        self.metrics = self.path / "metrics.json"
        self.learning_curve = self.path / "learning-curve.svg"
        self.confusion = self.path / "confusion.svg"
        self.map = self.path / "map.png"
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
        self.manifest = Manifest(self.path)  # as it is now that nobody else writes it
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
        """Half-written files of a process that was killed; nobody else writes here now."""
        for path in self.path.iterdir():
            if LEFTOVER.fullmatch(path.name):
                path.unlink()

    def of_seed(self, seed: int) -> "RunFolder":
        """The folder, inside this one and under its lock, of a final training with another seed."""
        inner = RunFolder(self.path / f"seed-{seed}")
        inner.path.mkdir(exist_ok=True)
        inner._remove_leftovers()
        return inner

    def _holds_foreign_files(self) -> bool:
        return any(not item.name.startswith(".") for item in self.path.iterdir())

    def claim(self, config: RunConfig, scene: Scene) -> None:
        """Write `config` into a new folder, or make sure that the folder's run is the same.

        Before its final training began, a run may be given another recipe; before its architecture
        is chosen, only another length of it, for the race trains by the rest.

        Raises:
            InputError: the folder belongs to another scene or configuration, or to another state of
                a file that the configuration names.
        """
        digests = file_digests(config.space, config.budget)
        # By place and name, for a folder of files may move: the digests say what they are.
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
            free = [] if trained else ["smooth"]
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
        """The checkpoint of the training for the calibration that leaves out a fold."""
        return self.path / f"calibration-{fold}.safetensors"

    def calibration_checkpoints(self) -> list[Path]:
        """Those that are there."""
        return sorted(self.path.glob("calibration-*.safetensors"))

    def _training_began(self) -> bool:
        """Whether something is there that the recipe decided, after the race."""
        files = (self.checkpoint, self.weights, self.calibration)
        return any(file.exists() for file in files) or bool(self.calibration_checkpoints())

    def read_config(self) -> tuple[RunConfig, str]:
        """The folder's configuration and its scene's fingerprint.

        Raises:
            InputError: there is none, or it is not readable.
        """
        if self.path.is_dir() and not self.config.exists():
            raise InputError(f"{self.path}: is no run folder: it holds no config.json")
        values = self._whole_config()
        try:
            return RunConfig.from_dict(values["config"]), str(values["scene"])
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{self.config}: not a run's configuration ({one_line(error)})"
            ) from None

    def _whole_config(self) -> dict[str, Any]:
        """The content of `config.json`.

        Raises:
            InputError: it is missing or damaged, and nothing else tells what was asked for.
        """
        if fault := self.manifest.fault(self.config):
            raise InputError(
                f"{self.config}: {fault}; it cannot be made again from other files: put a copy "
                "back, or choose another folder"
            )
        return read_json(self.config)


def _moved(config: RunConfig) -> RunConfig:
    """The configuration with its space file and latency tables by name, wherever they lie."""
    space, budget = with_files(config.space, config.budget, lambda path: Path(path).name)
    return replace(config, space=space, budget=budget)


def _versions() -> dict[str, str]:
    """The versions, by name, of what decides the numbers of a run that begins now."""
    return {name: version(name) for name in ("hytas", "torch", "numpy", "scikit-learn")}


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write strict JSON, whole or not at all."""
    write_text(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InputError: the file is missing or holds no JSON object.
    """
    try:
        values = parse_json(path.read_bytes(), path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: must hold a JSON object")
    return values
