"""Compare the winner with an SVM and a random forest on the same pixels, before the test.

Held-out pixels compare them: no network and no reference method was fitted on the pixels that it
is judged by here. The test pixels decide nothing; what the methods reach there is only reported.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hytas.data import Scene, Split
from hytas.errors import InputError
from hytas.models.table import patch_size_of
from hytas.references import (
    METHODS,
    Fit,
    ReferenceSettings,
    bounded_split,
    figures_of_test,
    fit_method,
)
from hytas.run.config import RunConfig
from hytas.run.context import Run
from hytas.run.fitting.calibrating import held_out_answers
from hytas.run.folder import read_json, write_json
from hytas.run.prepared import Pixels
from hytas.run.weights import load_weights
from hytas.workers import Shared, open_workers

COMPARED = ("svm", "rf")
MOST_TRAIN = 1500  # an SVM takes at most about half a minute, by the square of the pixels
MOST_TEST = 50_000
WINNER = "winner"


def references_stage(run: Run) -> None:
    """Fit the reference methods, compare the winner with them, and keep all figures.

    A line says what the held-out pixels say, before the methods are tested. It is a warning if the
    winner is below, and then says what to try.
    """
    run.report.line("reference methods: SVM and random forest on spectra of the same pixels")
    try:
        with _opened(run) as fits:
            validation = _validate(run, fits)
            run.report.line(validation["verdict"])
            methods = _test(run, fits)
        found: dict[str, Any] = {"reason": "", "validation": validation, "methods": methods}
    except InputError as error:  # training pixels of one class
        found = {"reason": str(error), "validation": None, "methods": {}}
        run.report.line(f"no reference methods: {error}")
    write_json(run.folder.references, found)
    if run.folder.metrics.exists():  # a run of an older version, or a file that was damaged
        write_json(run.folder.metrics, {**read_json(run.folder.metrics), "references": found})


Fits = Callable[[Sequence[tuple[str, Split]]], Iterator[Fit]]
"""Names of methods and splits -> what each predicts, in their order."""


@contextmanager
def _opened(run: Run) -> Iterator[Fits]:
    """Open the workers of the run, if it names some, else this process; yield what fits there."""
    config, scene = run.context.config, run.context.data.pixel_scene
    settings = ReferenceSettings(
        split=config.split,
        patch_size=config.patch_size,
        band_group=config.band_group,
        bands=config.bands,
        scaling=config.scaling,
    )
    named = 1 if run.workers is None else run.workers
    with open_workers(named, sent_bytes=scene.cube.nbytes) as pool:
        shared = pool.share(scene)

        def fits(wanted: Sequence[tuple[str, Split]]) -> Iterator[Fit]:
            jobs = ((shared, split, settings, name) for name, split in wanted)
            return pool.run(_fit, jobs, len(wanted))

        yield fits


def _fit(shared: Shared[Scene], split: Split, settings: ReferenceSettings, name: str) -> Fit:
    return fit_method(shared.get(), split, settings, name)


def _validate(run: Run, fits: Fits) -> dict[str, Any]:
    """Return the accuracy of the winner and of each method on the same held-out pixels."""
    data, model = run.context.data, load_weights(run.folder.weights)
    answers = held_out_answers(run, model.network)
    pixels = sum(len(held_out) for _, held_out, _ in answers)
    facts: dict[str, Any] = {"pixels": pixels, "folds": len(answers), "OA": {}, "below": []}
    if not pixels:
        verdict = "no held-out pixels compare the winner with reference methods before the test"
        return {**facts, "verdict": verdict}
    right = {WINNER: 0, **dict.fromkeys(COMPARED, 0)}
    for _, held_out, predicted in answers:
        right[WINNER] += int((predicted == data.targets(held_out)).sum())
    asked = [
        (name, _fold(run, learnt, held_out)) for learnt, held_out, _ in answers for name in COMPARED
    ]
    for (name, fold), fit in zip(asked, fits(asked), strict=True):
        right[name] += int((fit.predicted == data.targets(fold.test)).sum())
    facts["OA"] = {name: count / pixels for name, count in right.items()}
    facts["below"] = [name for name in COMPARED if right[name] > right[WINNER]]
    side = patch_size_of(model.card.architecture, data.shape)
    return {**facts, "verdict": _verdict(facts, run.context.config, side)}


def _fold(run: Run, learnt: Pixels, held_out: Pixels) -> Split:
    """Return the split that fits a method without held-out pixels, and predicts these."""
    split = run.context.data.split
    fold = replace(split, train=learnt, validation=split.validation[:0], test=held_out)
    return bounded_split(run.context.data.pixel_scene, fold, MOST_TRAIN, len(held_out))


def _test(run: Run, fits: Fits) -> dict[str, Any]:
    """Return what each method reaches on test pixels, fitted on all labelled ones of the run."""
    scene, whole = run.context.data.pixel_scene, run.context.data.split
    split = bounded_split(scene, replace(whole, test=whole.reported), MOST_TRAIN, MOST_TEST)
    found = fits([(name, split) for name in COMPARED])
    return {
        name: {
            "title": METHODS[name].title,
            "pixels": len(split.train),
            "of_pixels": len(whole.learnable),
            **figures_of_test(scene, split, fit),
            "details": dict(fit.details),
        }
        for name, fit in zip(COMPARED, found, strict=True)
    }


def _verdict(facts: Mapping[str, Any], config: RunConfig, side: int) -> str:
    """Return the line that says what the held-out pixels say."""
    found, titles = facts["OA"], {name: METHODS[name].title for name in COMPARED}
    figures = ", ".join(f"{titles[name]} {found[name]:.4f}" for name in COMPARED)
    line = f"OA on {facts['pixels']} held-out pixels: winner {found[WINNER]:.4f}, {figures}"
    if not facts["below"]:
        return line
    names = " and ".join(titles[name] for name in facts["below"])
    return f"warning: the winner is below {names}: {line}; {_advice(config, side)}"


def _advice(config: RunConfig, side: int) -> str:
    """Return the command to try where a method on single spectra beats the winner.

    Args:
        config: of the run.
        side: of the winner's patch.
    """
    if config.start is not None:
        return "try more labels, or a search on both scenes: hytas search with --data twice"
    if config.budget is None:
        return "try a search, which compares architectures: hytas search with --budget"
    if config.finalists == 1:
        change = f"--finalists {config.usual_finalists}"
    elif side > 1:
        change = "--patch-size 1"  # the methods that are better see single pixels
    else:
        change = f"--finalists {2 * (config.finalists or config.usual_finalists)}"
    return f"try the same command with {change} and another --out, or a larger --budget"
