"""Every method on every seed's split."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from hytas.data import Scene, Split, SplitSettings, holds_data, make_split, takes_split_options
from hytas.deploy.smoothing import RADIUS, Smoothing, around, smooth_pixels
from hytas.metrics import accuracy_report, mean_and_deviation, summarise
from hytas.references.results import Results
from hytas.references.table import METHODS
from hytas.references.task import Fit, Task


@takes_split_options
@dataclass(frozen=True)
class ReferenceSettings:
    """What decides a fit beside its method and seed: the split, and the options of patches.

    The parts of `split` may be given by themselves: `ReferenceSettings(split="blocks", block=8)`.
    """

    split: SplitSettings = field(default_factory=SplitSettings)
    patch_size: int = 7
    band_group: int = 3
    bands: str | None = None
    scaling: str = "standard"
    steps: int | None = None

    def make_split(self, scene: Scene, seed: int) -> Split:
        """The split of `seed`.

        Raises:
            InputError: the settings do not fit the scene.
        """
        return make_split(scene, self.split, seed=seed, patch_size=self.patch_size)

    def setting(self, scene: Scene) -> dict[str, Any]:
        """For `Results`: whose scene they are for, and those settings that decide a fit."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        decisive = {**own, **self.split.options()}
        del decisive["validation_fraction"]  # these pixels are fitted on, too
        return {"scene": scene.fingerprint, **decisive}


def run_references(
    scene: Scene,
    settings: ReferenceSettings,
    methods: Sequence[str],
    seeds: Sequence[int],
    results: Results,
    *,
    device: str = "cpu",
    progress: Callable[[str, int, str, int, int], None] = lambda *_: None,
    line: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Fit what `results` lacks, and sum up.

    A seed decides the split, where one is drawn, and the training. All methods fit on the same
    pixels, the validation pixels among them, for none of them needs any.

    Args:
        progress: called with method, seed, work, done, total.
        line: called with facts worth a line.

    Returns:
        "scene", "seeds", "splits" (one a seed), and "methods": for each its title, what
        `summarise` gives over the seeds, "smoothed" (the same of smoothed maps), "seconds" and
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
    found = {}
    for method in methods:
        runs = [
            results.get(method, seed)
            or _run(scene, settings, method, splits[seed], results, device, progress, line)
            for seed in seeds
        ]
        found[method] = {
            "title": METHODS[method].title,
            **summarise([run["test"] for run in runs]),
            "smoothed": _summary_of_smoothed(runs),
            "seconds": mean_and_deviation([run["seconds"] for run in runs]),
            "runs": runs,
        }
    return {
        "scene": scene.name,
        "seeds": list(seeds),
        "splits": [_facts(splits[seed]) for seed in seeds],
        "methods": found,
    }


def _summary_of_smoothed(runs: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The same with smoothed maps; None where a file of an older hytas does not say."""
    reports = [run.get("smoothed") for run in runs]
    return None if None in reports else summarise([one for one in reports if one is not None])


def _run(
    scene: Scene,
    settings: ReferenceSettings,
    method: str,
    split: Split,
    results: Results,
    device: str,
    progress: Callable[[str, int, str, int, int], None],
    line: Callable[[str], None],
) -> dict[str, Any]:
    task = _with_neighbours(
        scene,
        split,
        Task.of(
            scene,
            split,
            patch_size=settings.patch_size,
            band_group=settings.band_group,
            scaling=settings.scaling,
            bands=settings.bands,
            device=device,
            steps=settings.steps,
        ),
    )

    def advance(work: str, done: int, total: int) -> None:
        progress(method, split.seed, work, done, total)

    started = time.perf_counter()
    fit = METHODS[method].load()(task, advance)
    seconds = time.perf_counter() - started
    test, smoothed = _reports(scene, split, task, fit)
    run = {
        "method": method,
        "seed": split.seed,
        "test": test,
        "smoothed": smoothed,
        "seconds": round(seconds, 3),
        "details": dict(fit.details),
    }
    results.add(run)
    line(
        f"{method}, seed {split.seed}: OA {test['OA']:.4f}  AA {test['AA']:.4f}  "
        f"kappa {test['kappa']:.4f}, with a smoothed map OA {smoothed['OA']:.4f}  ({seconds:.1f} s)"
    )
    return run


def _with_neighbours(scene: Scene, split: Split, task: Task) -> Task:
    """The task with pixels to predict that smoothing reads around those of the test."""
    held = holds_data(scene.cube, scene.nodata, task.fit_scaling(None).bands)
    held.flat[split.test] = True
    return replace(task, test=around(split.test, held, 2 * RADIUS))


def _reports(
    scene: Scene, split: Split, task: Task, fit: Fit
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Accuracy on the test pixels, raw and with probabilities smoothed as a winner's are.

    Where a method has no probabilities, its class has that of 1, as in Kang et al., TGRS 2014.
    """
    at, scaling = np.searchsorted(task.test, split.test), task.fit_scaling(None)
    chances = fit.probabilities
    if chances is None:
        chances = np.eye(task.classes)[fit.predicted]
    smoothing = Smoothing.fit(scene.cube, scaling, scene.nodata)
    found = smooth_pixels(smoothing, scene.cube, scaling, task.test, chances)[at]
    names, truth = scene.class_names, scene.targets(split.test)
    known = None if fit.probabilities is None else fit.probabilities[at]
    raw = accuracy_report(truth, fit.predicted[at], names, known)
    sure = None if known is None else found
    return raw, accuracy_report(truth, found.argmax(axis=1), names, sure)


def _facts(split: Split) -> dict[str, Any]:
    return {
        "seed": split.seed,
        "kind": split.kind,
        "train": len(split.learnable),
        "test": len(split.test),
        "overlap": split.overlap,
        "notes": list(split.notes),
    }
