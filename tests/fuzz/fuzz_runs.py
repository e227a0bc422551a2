"""Fuzz targets of run folders and stores: a small finished search and its weights, by code."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from fuzz_mutator import Sample

from hytas.cli.inspect_run import describe_run, lines_of_run
from hytas.data import Preprocessing, Scene, Split, scene_from_arrays
from hytas.errors import InputError
from hytas.export import describe
from hytas.manifest import NAME, Manifest
from hytas.models import InputShape, build_network
from hytas.run import RunConfig, RunFolder
from hytas.run.folder import read_json, write_json
from hytas.run.weights import TrainedModel, load_weights, save_weights
from hytas.search import Evaluation, EvaluationStore, Training

_GENES = {"space": "hytas", "depth": 2, "embed_dim": 32, "num_heads": [3, 4], "mlp_ratio": [1, 2]}
_TEST = {"OA": 0.9, "AA": 0.8, "kappa": 0.7, "pixels": 10}
_TRAINING = {"history": [{"epoch": 1, "loss": 0.5}], "best_epoch": 1}


def _scene() -> Scene:
    cube = np.random.default_rng(0).integers(0, 4000, (9, 8, 6)).astype(np.int16)
    labels = np.repeat(np.arange(8)[None, :] % 3 + 1, 9, axis=0)
    return scene_from_arrays(cube, labels, name="small")


def _store(path: Path) -> None:
    with EvaluationStore(path) as store:
        costs, scores = {"params": 7}, {"dss": 1.5, "snip": float("nan")}
        store.add([Evaluation(n, 1, _GENES, costs, scores, {"snip": "why"}, 1.0) for n in range(9)])
        store.add_training(Training(0, "plain", 100, 0, 50, {"oa": 0.5}, 2.0))
        store.save_state(bytes(200))


def _weights(path: Path) -> None:
    scene = _scene()
    preprocessing = Preprocessing.fit_scene(scene, np.arange(0, 72, 2))
    shape = InputShape(len(preprocessing.bands), scene.classes, 5, 3)
    card = describe(scene, preprocessing, _GENES, shape)
    save_weights(path, TrainedModel(build_network(_GENES, shape, seed=0), card, _TRAINING))


@cache
def _folder() -> Sample:
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(place)
        write_json(folder.config, {"scene": "0" * 64, "config": RunConfig().to_dict()})
        write_json(folder.architecture, _GENES)
        figures = {"test": _TEST, "training": _TRAINING, "parity": {}}
        write_json(folder.metrics, figures)
        pixels = np.arange(9)
        Split(pixels, pixels + 9, pixels + 18, "random", 0, 5, 0.5, ()).save(folder.split)
        _store(folder.evaluations)
        _weights(folder.weights)
        folder.manifest.record(Path(place).iterdir())
        return {path.name: path.read_bytes() for path in _ordered(Path(place))}


def _ordered(folder: Path) -> list[Path]:
    """The files of a run that nobody else writes, the configuration first."""
    return sorted(folder.glob("*.*"), key=lambda path: (path.name != "config.json", path.name))


def folders() -> list[Sample]:
    """A run's folder with its manifest, and one that has lost it."""
    whole = _folder()
    return [whole, {name: data for name, data in whole.items() if name != NAME}]


def stores() -> list[Sample]:
    """A store by itself."""
    return [{"evaluations.sqlite": _folder()["evaluations.sqlite"]}]


def look(path: Path) -> None:
    """Do what `hytas inspect`, `search` and `export` do with a run's folder before they work."""
    folder = RunFolder(path.parent)
    steps: list[Callable[[], object]] = [
        lambda: lines_of_run(describe_run(path.parent)),
        folder.read_config,
        folder.manifest.faults,
        lambda: read_json(folder.metrics),
        lambda: load_weights(folder.weights),
        lambda: Split.load(folder.split),
        lambda: look_at_store(folder.evaluations),
    ]
    for step in steps:
        with suppress(InputError, OSError):
            step()


def look_at_store(path: Path) -> None:
    """Read every table of a store, as a resumed search and `hytas analyse` do."""
    with EvaluationStore(path, read_only=True) as store:
        for read in (store.evaluations, store.trainings, store.load_state):
            with suppress(InputError, OSError):
                read()


def recorded(sample: Sample, rng: Random) -> Sample:
    """Give half of the folders a manifest that agrees, so that their readers are reached."""
    if NAME not in sample or rng.random() < 0.5:
        return sample
    with tempfile.TemporaryDirectory() as place:
        for name, data in sample.items():
            if name != NAME:
                (Path(place) / name).write_bytes(data)
        Manifest(Path(place)).record(Path(place).iterdir())
        return {**sample, NAME: (Path(place) / NAME).read_bytes()}
