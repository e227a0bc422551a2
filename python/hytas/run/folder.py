"""The folder of a run: its files, its owner, and a lock for one process at a time."""

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TextIO, TypeVar, overload

from hytas.data import LabelledData
from hytas.errors import InputError, one_line
from hytas.files import lock, parse_json, write_text
from hytas.manifest import Manifest
from hytas.plugins import loaded_names
from hytas.run.config import RunConfig
from hytas.spaces import file_digests

T = TypeVar("T")
# The temporary names of `hytas.files.atomic_write` for the files of a run.
LEFTOVER = re.compile(r"\.[\w.-]+\.\d+\.\w+")
# Paths may change; the fingerprint identifies the data.
WHERE = ("data", "labels", "test_data", "test_labels", "cube_key", "labels_key", "data_dir")
REPORTED = (*WHERE, "track")  # these do not change what a run does
LENGTH = ("recipe steps", "recipe most_epochs", "recipe epochs")


class Artefact:
    """A file of a run's folder; as an attribute of a folder it is the file's path.

    Attributes:
        stage: the stage that writes it; "" if the run writes it when it opens the folder.
        made_from: names of the files that it is made from; it is made again when they are.
        listed: whether the summary of a run lists it for the user.
        recorded: whether the manifest has its digest, and a stage whose file differs runs again.
        optional: whether the stage writes it only where the run asks for it.
    """

    def __init__(
        self, file: str, holds: str, stage: str = "", made_from: tuple[str, ...] = (), **facts: bool
    ) -> None:
        self.file, self.holds, self.stage, self.made_from = file, holds, stage, made_from
        self.listed, self.recorded = facts.get("listed", True), facts.get("recorded", True)
        self.optional = facts.get("optional", False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, folder: None, owner: type) -> Self: ...

    @overload
    def __get__(self, folder: Any, owner: type) -> Path: ...

    def __get__(self, folder: Any, owner: type) -> Self | Path:
        return self if folder is None else self.path(folder.path)

    def path(self, folder: Path) -> Path:
        """Return its path in a folder."""
        return folder / self.file


# A file that the summary of a run does not list.
_internal = partial(Artefact, listed=False)


class RunFolder:
    """The files of one run, and a lock for one process at a time.

    Use as a context manager: it creates the folder and holds its lock.

    Raises:
        InputError: another process works in the folder, or its files are not a run.
        OSError: the folder cannot be made or written.
    """

    report = Artefact(
        "report.html", "all of the run on one page; it loads nothing from the internet", "report"
    )
    onnx = Artefact(
        "model.onnx", "the model: raw pixels in, class probabilities out", "export", ("weights",)
    )
    torchscript = Artefact("model.pt", "the same model for torch", "export", ("weights",))
    weights = Artefact(
        "weights.safetensors",
        "the weights of the winner, its card and the history of its training",
        "final training",
        ("architecture",),
    )
    tested = _internal(
        "test.json",
        "accuracy of `model.onnx` on the test pixels, raw and smoothed; difference from torch",
        "export",
        ("weights",),
    )
    metrics = Artefact(
        "metrics.json",
        "all figures of the run: of the test, the training, reference methods, seeds, control",
        "figures",
        ("weights",),
    )
    references = Artefact(
        "references.json",
        "accuracy of reference methods, raw and smoothed: on held-out pixels next to the "
        "winner, and on test pixels",
        "reference methods",
        ("weights",),
    )
    map = Artefact("map.png", "the classified scene next to the ground truth", "map", ("onnx",))
    predictions = Artefact(
        "predictions.csv",
        "for images, tables and scenes of values: the prediction for each test sample",
        "predictions",
        ("onnx",),
    )
    architecture = Artefact("architecture.json", "the genes of the winner", "race", ("recipe",))
    recipe = Artefact(
        "recipe.json",
        "its recipe: the preset that won the race, such as `full`; with `minutes` its length",
        "race",
    )
    evaluations = Artefact(
        "evaluations.sqlite",
        "every candidate with genes, costs, scores and failures; every training; SVM and "
        "forest on its folds",
        "search",
    )
    front = Artefact(
        "pareto.csv",
        "of a search for a Pareto front: the networks that no other beats on all axes",
        "search",
        optional=True,
    )
    front_picture = Artefact("pareto.svg", "the same as a chart", "search", optional=True)
    pace = _internal(
        "minutes.json",
        "of a run with `minutes`: candidates, finalists and steps, each with what it would "
        "be without",
        "search",
        recorded=False,
        optional=True,
    )
    trained_front = Artefact(
        "front.json",
        "of a race for a Pareto front: its networks with costs and accuracy, and the hypervolume",
        "race",
        optional=True,
    )
    converted = Artefact(
        "target.json",
        "of a race for a target: accuracy of the finalists in its format, and before conversion",
        "race",
        optional=True,
    )
    latency = _internal(
        "latency.json",
        "of a search under a latency budget: measured times of the finalists",
        "race",
        optional=True,
    )
    config = Artefact(
        "config.json",
        "settings, seed, versions, fingerprints of the scene and of other input files",
    )
    split = Artefact("split.npz", "training, validation and test pixels")
    pixels = _internal(
        "pixels.npz",
        "class, confidence and reduced spectrum of each pixel, for the report",
        "map",
        ("onnx",),
    )
    samples = _internal(
        "samples.npz",
        "for images: some of the test images, for the report",
        "predictions",
        ("onnx",),
        optional=True,
    )
    log = _internal(
        "run.log", "every step of the run with its time, and warnings of libraries", recorded=False
    )
    times = _internal(
        "times.json",
        "which command did which stage, and what it took: time, CPU seconds, GPU seconds; all "
        "parts of a run that was stopped",
        recorded=False,
    )
    supernet = _internal(
        "supernet.safetensors", "of `hytas supernet train`: the shared weights", "supernet"
    )
    family = _internal(
        "family.csv", "of `hytas supernet export`: the best subnet of each budget", "family"
    )
    family_picture = _internal("family.svg", "the same as a chart", "family")
    explanation = _internal(
        "explanation.json",
        "of `hytas explain`: importance of bands and neighbours, attention; `report.html` shows it",
        "explanation",
        ("weights",),
        recorded=False,
        optional=True,
    )

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.fits = self.path / "fits"
        self.control = self.path / "control"
        self.manifest = Manifest(self.path)
        self._lock: TextIO | None = None

    @property
    def is_trained(self) -> bool:
        """Whether it holds the weights of a final training."""
        return self.weights.is_file()

    def __enter__(self) -> "RunFolder":
        if self.path.is_file():
            raise InputError("out", self.path, "is a file", "name a folder")
        inside = self.path.iterdir() if self.path.is_dir() else ()
        if not self.config.is_file() and any(not item.name.startswith(".") for item in inside):
            rule = "holds files but no run (no config.json)"
            raise InputError("out", self.path, rule, "name a new or an empty folder")
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / ".lock").open("a+", encoding="utf-8")
        if not lock(self._lock):
            self._lock.seek(0)
            holder = self._lock.read().strip()
            self._lock.close()
            rule = f"another hytas (process {holder}) works in this folder"
            raise InputError("out", self.path, rule, "wait for it or choose another")
        self._remove_leftovers()
        self.manifest = Manifest(self.path)  # read again, now that this process holds the lock
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def _remove_leftovers(self) -> None:
        """Remove half-written files of a killed process; no other process writes here now."""
        for path in self.path.iterdir():
            if LEFTOVER.fullmatch(path.name):
                path.unlink()

    def inside(self, name: str) -> "RunFolder":
        """Return the folder of that name, inside this one and under its lock."""
        inner = RunFolder(self.path / name)
        inner.path.mkdir(exist_ok=True)
        inner._remove_leftovers()
        return inner

    def claim(self, config: RunConfig, scene: LabelledData) -> None:
        """Write `config` into a new folder, or check that the folder has the same configuration.

        Before the final training begins, the recipe may change. Before the architecture is chosen,
        only its length may change, because the race uses the rest of the recipe.

        Raises:
            InputError: the folder belongs to another scene or configuration, or a file that the
                configuration names has changed.
        """
        start, teacher = (
            None if one is None else str((trained_folder(one) or RunFolder(one)).weights)
            for one in (config.start, config.teacher)
        )
        # A trained run needs its teacher no more, and remembers which one it was.
        gone = teacher is not None and self.is_trained and not Path(teacher).is_file()
        further = config.supernet, start, None if gone else teacher, *config.start_with
        code = (name for name in config.plugins if name.endswith(".py"))
        digests = file_digests(config.space, config.budget, *further, *code)
        # Compared by name only, because files may move; the digests identify them.
        files = [[Path(path).name, digest] for path, digest in digests.items()]
        versions = {name: version(name) for name in ("hytas", "torch", "numpy", "scikit-learn")}
        held = read_json(self.config, {})
        if held:
            stored, fingerprint = self.read_config()
            versions = held.get("versions", versions)
            for path, now, before in zip(digests, files, held.get("files", []), strict=False):
                if now[0] == before[0] and now != before:
                    raise InputError(
                        path,
                        rule=f"has changed since the run in {self.path} began",
                        hint="put it back, or choose another folder",
                    )
            if fingerprint != scene.fingerprint:
                rule = f"belongs to another scene ({stored.data})"
                raise InputError("out", self.path, rule, "choose another folder")
            trained = self.is_trained
            free = [*REPORTED, "seeds", "effort", "minutes", "control"]
            free += [] if trained else ["smooth", "self_training", "class_prior", *LENGTH]
            free += ["recipe"] if self.architecture.is_file() and not trained else []
            if lines := config.differences(stored, free):
                rule = f"belongs to another configuration: {'; '.join(lines)}"
                hint = "choose another folder or repeat its settings"
                raise InputError("out", self.path, rule, hint)
        card = {
            "scene": scene.fingerprint,
            "files": held.get("files", []) if gone else files,
            "versions": versions,
            "config": config.to_dict(),
        }
        if held != json.loads(json.dumps(card)):
            self.manifest.forget([self.config])
            write_json(self.config, card)
        self.manifest.record([self.config])

    def read_config(self) -> tuple[RunConfig, str]:
        """Return the folder's configuration and the fingerprint of its scene.

        Raises:
            InputError: it is missing or not readable.
        """
        if not self.config.is_file():
            raise InputError(self.path, rule="is not a run folder: it holds no config.json")
        if fault := self.manifest.fault(self.config):
            rule = f"{fault}; it cannot be made again from other files"
            hint = "put a copy back, or choose another folder"
            raise InputError(self.config, rule=rule, hint=hint)
        values = read_json(self.config)
        try:
            search = values["config"]["search"]
            search["plugins"] = loaded_names(search.get("plugins", ()))
            return RunConfig.from_dict(values["config"]), str(values["scene"])
        except (AttributeError, KeyError, TypeError) as error:
            rule = f"not a run's configuration ({one_line(error)})"
            raise InputError(self.config, rule=rule) from None


ARTEFACTS = {name: each for name, each in vars(RunFolder).items() if isinstance(each, Artefact)}
"""The table of a run's files: attribute of `RunFolder` -> artefact."""


def trained_folder(path: str | Path) -> RunFolder | None:
    """Return the folder of a trained run: `path`, or the folder that it lies in; None for none."""
    places = (RunFolder(place) for place in (Path(path), Path(path).parent))
    return next((folder for folder in places if folder.is_trained), None)


def if_there(path: Path, read: Callable[[Path], T]) -> T | None:
    """Return what `read` gives of a file; None if there is none."""
    return read(path) if path.is_file() else None


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write strict JSON, completely or not at all."""
    write_text(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def read_json(path: Path, absent: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Read a JSON object; return `absent` where there is no such file.

    Raises:
        InputError: the file holds no JSON object, or is missing and `absent` is None.
    """
    try:
        values = parse_json(path.read_bytes(), path)
    except FileNotFoundError:
        if absent is not None:
            return dict(absent)
        raise InputError(path, rule="no such file") from None
    if not isinstance(values, dict):
        raise InputError(path, rule="must hold a JSON object")
    return values
