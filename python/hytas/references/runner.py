"""Fit every method to the split of every seed."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hytas.data import LabelledData, Scene, Split
from hytas.deploy.smoothing import RADIUS, Smoothing, around, smooth_pixels
from hytas.metrics import mean_and_deviation, summarise
from hytas.references.classical import thinned
from hytas.references.results import ReferenceResults
from hytas.references.table import METHODS
from hytas.references.task import FitProgress, Predicted, ReferenceSettings, Task
from hytas.tasks import task_of
from hytas.types import Pixels
from hytas.workers import Shared, WorkersLike, open_workers


def run_references(
    scene: Scene,
    settings: ReferenceSettings,
    methods: Sequence[str],
    seeds: Sequence[int],
    results: ReferenceResults,
    *,
    progress: Callable[[str, int, str, int, int], None] = lambda *_: None,
    line: Callable[[str], None] = lambda _: None,
    workers: WorkersLike = None,
) -> dict[str, Any]:
    """Run the fits that `results` lacks, and summarise all.

    A seed decides the training, and a random split. All methods are fitted on the same
    pixels. These include the validation pixels, because no method needs validation.

    Args:
        progress: called with method, seed, work, done, total; not with workers elsewhere.
        line: called with each fact for the user.
        workers: that fit in parallel (`hytas.workers.open_workers`), one thread a fit; None
            fits one after another in this process.

    Returns:
        "scene", "seeds", "splits" (one for each seed), and "methods": for each its title, the
        result of `summarise` over the seeds, "smoothed" (the same of smoothed maps), "seconds" and
        "runs".

    Raises:
        InputError: the settings do not fit the scene.
    """
    splits = {seed: settings.make_split(scene, seed) for seed in seeds}
    for note in scene.notes:
        line(f"note: {note}")
    for seed in seeds:
        for text in (splits[seed].describe(), *splits[seed].notes):
            line(f"seed {seed}: {text}")
    every = [(method, splits[seed]) for method in methods for seed in seeds]
    missing = [
        _WantedFit(method, split, results.fits(method, split.seed))
        for method, split in every
        if not results.get(method, split.seed)
    ]
    for run in _fits(scene, settings, missing, progress, workers):
        results.add(run)
        _report_fit(run, line)
    return {
        "scene": scene.name,
        "seeds": list(seeds),
        "splits": [_facts(splits[seed]) for seed in seeds],
        "methods": {
            name: _summary(METHODS[name].title, [results.get(name, seed) for seed in seeds])
            for name in methods
        },
    }


def _summary(title: str, stored: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """Return what `run_references` returns of a method, whose fits of all seeds are given."""
    runs = [run for run in stored if run]
    smoothed: list[Any] = [run.get("smoothed") for run in runs]
    return {
        "title": title,
        **summarise([run["test"] for run in runs]),
        "smoothed": None if None in smoothed else summarise(smoothed),  # images have no map
        "seconds": mean_and_deviation([run["seconds"] for run in runs]),
        "runs": runs,
    }


class _WantedFit(NamedTuple):
    method: str
    split: Split
    fits: Path | None


def _fits(
    scene: Scene,
    settings: ReferenceSettings,
    wanted: Sequence[_WantedFit],
    progress: Callable[[str, int, str, int, int], None],
    workers: WorkersLike,
) -> Iterator[dict[str, Any]]:
    if workers is None:
        for one in wanted:
            advance = partial(progress, one.method, one.split.seed)
            yield _fit_and_test(scene, settings, one, advance)
        return
    on_cpu = settings.device == "cpu"
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=scene.cube.nbytes) as pool:
        shared = pool.share(scene)
        jobs = (
            (
                *(shared, settings, one if pool.sees_files else one._replace(fits=None)),
                None if pool.elsewhere else partial(progress, one.method, one.split.seed),
            )
            for one in wanted
        )
        yield from pool.run(_fit_in_worker, jobs, len(wanted))


def _fit_in_worker(
    shared: Shared[Scene],
    settings: ReferenceSettings,
    wanted: _WantedFit,
    progress: FitProgress | None,
) -> dict[str, Any]:
    from hytas.machine import one_thread_on_cpu  # torch

    with one_thread_on_cpu(settings.device):
        quiet = progress or (lambda *_: None)
        return _fit_and_test(shared.get(), settings, wanted, quiet)


def _fit_and_test(
    scene: Scene, settings: ReferenceSettings, wanted: _WantedFit, progress: FitProgress
) -> dict[str, Any]:
    method, split, fits = wanted
    started = time.perf_counter()
    split = replace(split, test=split.reported)
    fit = fit_method(
        *(scene, split, settings, method),
        smoothed=split.test,
        fits=fits,
        progress=progress,
    )
    seconds = time.perf_counter() - started
    figures = figures_of_test(scene, split, fit)
    return {
        "method": method,
        "seed": split.seed,
        **figures,
        "seconds": round(seconds, 3),
        "details": dict(fit.details),
    }


def _report_fit(run: Mapping[str, Any], line: Callable[[str], None]) -> None:
    name, test = f"{run['method']}, seed {run['seed']}", run["test"]
    for each in run.get("scenes", ()):
        if each["test"]:
            line(f"{name}, scene {each['name']}: OA {each['test']['OA']:.4f}")
    figures = f"OA {test['OA']:.4f}  AA {test['AA']:.4f}  kappa {test['kappa']:.4f}"
    if "smoothed" in run:  # spectra and patches of single pixels have no map
        figures += f", with a smoothed map OA {run['smoothed']['OA']:.4f}"
    line(f"{name}: {figures}  ({run['seconds']:.1f} s)")


def fit_method(
    scene: LabelledData,
    split: Split,
    settings: ReferenceSettings,
    method: str,
    *,
    smoothed: Pixels | None = None,
    fits: Path | None = None,
    progress: FitProgress = lambda *_: None,
) -> Predicted:
    """Fit a method to the training and validation pixels of a split; predict its test pixels.

    Args:
        split: whose seed is that of the fit.
        settings: options for scaling and patches; their split is not used.
        method: a name in `METHODS`.
        smoothed: flat indices (k,), ascending, of test pixels whose predictions are smoothed, too;
            images have no map.
        fits: folder of the training of a network, which resumes from it; None keeps nothing.
        progress: called with the current work, how much of it is done, and the total.

    Raises:
        InputError: the training pixels have fewer than two classes, or the settings do not fit.
    """
    task = replace(Task.of(scene, split, settings), fits=fits)
    has_map = scene.has_map and task_of(scene).has_probabilities
    if smoothed is None or not (isinstance(scene, Scene) and has_map):
        return METHODS[method].load()(task, progress)
    valid = scene.valid_mask(task.fit_scaling(None).bands)
    valid.flat[smoothed] = True
    near = around(smoothed, valid, 2 * RADIUS)  # smoothing also reads the predictions there
    task = replace(task, test=np.union1d(split.test, near))
    fit = METHODS[method].load()(task, progress)
    chances = _smoothed(scene, task, fit, near)[np.searchsorted(near, smoothed)]
    return replace(fit.only(np.isin(task.test, split.test)), smoothed=chances)


def bounded_split(scene: LabelledData, split: Split, most_train: int, most_test: int) -> Split:
    """Return the split with fewer pixels, if it has more than the limits.

    Validation pixels become training pixels. Every class keeps its share of the training pixels,
    and at least five pixels if it has them. The remaining test pixels are evenly spread.

    Args:
        split: whose seed decides which training pixels stay.
        most_train: training pixels above which some are left out.
    """
    train, test = split.train_and_validation, split.test
    if len(train) > most_train:
        generator = np.random.default_rng(split.seed)
        share = most_train / len(train)
        train = np.sort(
            train[thinned(scene.labels.ravel()[train].astype(np.int64), share, generator)]
        )
    if len(test) > most_test:
        test = test[np.linspace(0, len(test) - 1, most_test).astype(np.int64)]
    return replace(split, train=train, validation=split.validation[:0], test=test)


def figures_of_test(scene: LabelledData, split: Split, fit: Predicted) -> dict[str, Any]:
    """Return the figures of a fit on the test pixels: accuracy reports, "test" and "smoothed".

    If the split has pixels of scenes that are only tested on, they are among the fit's pixels;
    "scenes" then has the figures of each scene, and the reports are those of the others. The
    commands and the runs report every entry. A second figure of a method is a second entry.
    """
    figures: dict[str, Any] = {}
    if scene.joined:
        predictions = fit.predicted, fit.probabilities
        figures["scenes"] = figures_by_scene(scene, split.test, *predictions)
        inside = ~np.isin(split.test, split.test_only)
        split, fit = replace(split, test=split.test[inside]), fit.only(inside)
    truth, names, report = scene.targets(split.test), scene.class_names, task_of(scene).report
    figures["test"] = report(truth, fit.predicted, names, fit.probabilities)
    if fit.smoothed is not None:
        sure = None if fit.probabilities is None else fit.smoothed
        figures["smoothed"] = report(truth, fit.smoothed.argmax(axis=1), names, sure)
    return figures


def figures_by_scene(
    scene: LabelledData,
    pixels: NDArray[np.int64],
    predicted: NDArray[np.int64],
    confidence: NDArray[Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the accuracy in each part of a joined scene; nothing for one scene, or for images.

    Args:
        pixels: flat indices (n,) of tested pixels.
        predicted: their class indices (n,).
        confidence: their probabilities (n, C), or None.

    Returns:
        For each part "name", "learnt" (whether it may train), and "test": a report of
        `accuracy_report`, or None where none of its pixels is tested.
    """
    figures: list[dict[str, Any]] = []
    for part in scene.joined:
        inside = np.isin(pixels, part.pixels(scene.width))
        report = None
        if inside.any():
            sure = None if confidence is None else confidence[inside]
            truth = scene.targets(pixels[inside])
            report = task_of(scene).report(truth, predicted[inside], scene.class_names, sure)
        figures.append({"name": part.name, "learnt": part.trains, "test": report})
    return figures


def _smoothed(scene: Scene, task: Task, fit: Predicted, pixels: Pixels) -> NDArray[np.float32]:
    """Return the probabilities (n, C) of tested pixels, smoothed as a winner's.

    Where a method has no probabilities, its class has that of 1, as in Kang et al., TGRS 2014.
    """
    chances, scaling = fit.probabilities, task.fit_scaling(None)
    if chances is None:
        chances = np.eye(task.classes)[fit.predicted]
    smoothing = Smoothing.fit(scene.cube, scaling, scene.nodata, pixels=scene.training_area)
    at = np.searchsorted(task.test, pixels)
    return smooth_pixels(smoothing, scene.cube, scaling, pixels, chances[at])


def _facts(split: Split) -> dict[str, Any]:
    return {
        "seed": split.seed,
        "kind": split.kind,
        "train": len(split.train_and_validation),
        "test": len(split.test),
        "overlap": split.overlap,
        "notes": list(split.notes),
    }
