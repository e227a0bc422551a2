"""Every method on every seed's split."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hytas.baselines.results import Results
from hytas.baselines.table import METHODS
from hytas.baselines.task import Task
from hytas.data import Scene, Split, make_split
from hytas.metrics import accuracy_report, mean_and_deviation, summarise


@dataclass(frozen=True)
class BaselineSettings:
    """What decides a fit beside its method and seed; the options of `make_split` and of patches."""

    split: str = "auto"
    train_per_class: int | None = None
    train_fraction: float | None = None
    block: int = 16
    folds: int = 5
    fold: int = 0
    validation_fraction: float = 0.1
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
        return make_split(
            scene,
            kind=self.split,
            train_per_class=self.train_per_class,
            train_fraction=self.train_fraction,
            block=self.block,
            folds=self.folds,
            fold=self.fold,
            validation_fraction=self.validation_fraction,
            seed=seed,
            patch_size=self.patch_size,
        )

    def setting(self, scene: Scene) -> dict[str, Any]:
        """For `Results`: whose scene they are for, and those settings that decide a fit."""
        decisive = asdict(self)
        del decisive["validation_fraction"]  # these pixels are fitted on, too
        return {"scene": scene.fingerprint, **decisive}


def run_baselines(
    scene: Scene,
    settings: BaselineSettings,
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
        `summarise` gives over the seeds, "seconds" and "runs".

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
            "seconds": mean_and_deviation([run["seconds"] for run in runs]),
            "runs": runs,
        }
    return {
        "scene": scene.name,
        "seeds": list(seeds),
        "splits": [_facts(splits[seed]) for seed in seeds],
        "methods": found,
    }


def _run(
    scene: Scene,
    settings: BaselineSettings,
    method: str,
    split: Split,
    results: Results,
    device: str,
    progress: Callable[[str, int, str, int, int], None],
    line: Callable[[str], None],
) -> dict[str, Any]:
    task = Task.of(
        scene,
        split,
        patch_size=settings.patch_size,
        band_group=settings.band_group,
        scaling=settings.scaling,
        bands=settings.bands,
        device=device,
        steps=settings.steps,
    )

    def advance(work: str, done: int, total: int) -> None:
        progress(method, split.seed, work, done, total)

    started = time.perf_counter()
    fit = METHODS[method].load()(task, advance)
    seconds = time.perf_counter() - started
    truth = scene.targets(split.test)
    test = accuracy_report(truth, fit.predicted, scene.class_names, fit.probabilities)
    run = {
        "method": method,
        "seed": split.seed,
        "test": test,
        "seconds": round(seconds, 3),
        "details": dict(fit.details),
    }
    results.add(run)
    line(
        f"{method}, seed {split.seed}: OA {test['OA']:.4f}  AA {test['AA']:.4f}  "
        f"kappa {test['kappa']:.4f}  ({seconds:.1f} s)"
    )
    return run


def _facts(split: Split) -> dict[str, Any]:
    return {
        "seed": split.seed,
        "kind": split.kind,
        "train": len(split.learnable),
        "test": len(split.test),
        "overlap": split.overlap,
        "notes": list(split.notes),
    }
