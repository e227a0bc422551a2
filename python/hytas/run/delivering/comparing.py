"""Compare the winner with an SVM and a random forest on the same pixels, before the test.

Held-out pixels compare them: no network and no reference method was fitted on the pixels that it
is judged by here. The test pixels decide nothing; what the methods reach there is only reported.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import LabelledData, Scene, Split
from hytas.errors import InputError
from hytas.metrics import compare_answers
from hytas.models.table import patch_size_of
from hytas.references import (
    CLASSICAL,
    Fit,
    ReferenceSettings,
    bounded_split,
    figures_of_test,
    fit_method,
    title_of,
)
from hytas.run.config import RunConfig
from hytas.run.context import Run
from hytas.run.fitting.calibrating import held_out_answers
from hytas.run.folder import read_json, write_json
from hytas.run.prepared import Pixels
from hytas.run.weights import load_weights
from hytas.workers import Shared, open_workers

Array = npt.NDArray[np.bool_]
MOST_TRAIN = 1500  # an SVM takes at most about half a minute, by the square of the pixels
MOST_TEST = 50_000
USUAL_BANDS = 200  # of a pixel; of images with more values, fewer are taken
MOST_VALUES = 32 * 32 * 3
"""Values of an image, at most, that an SVM and a forest are fitted on."""
WINNER = "winner"


def references_stage(run: Run) -> None:
    """Fit the reference methods, compare the winner with them, and keep all figures.

    A line says what the held-out pixels say, before the methods are tested. It is a warning if the
    winner is below by more than chance, and then says what to try.
    """
    what = "spectra" if run.context.data.scene.has_map else "all values"
    run.report.line(f"reference methods: SVM and random forest on {what} of the same {_words(run)}")
    try:
        _check_size(run)
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


Fits = Callable[[Sequence[tuple[str, Split]], bool], Iterator[Fit]]
"""Names of methods and splits, and whether to smooth -> what each predicts, in their order."""


@contextmanager
def _opened(run: Run) -> Iterator[Fits]:
    """Open the workers of the run, if it names some, else this process; yield what fits there."""
    scene, settings = run.context.data.scene, ReferenceSettings.of(run.context.config)
    named = 1 if run.workers is None else run.workers
    sent = scene.cube.nbytes if isinstance(scene, Scene) else 0
    with open_workers(named, sent_bytes=sent) as pool:
        shared = pool.share(scene)

        def fits(wanted: Sequence[tuple[str, Split]], smoothed: bool) -> Iterator[Fit]:
            jobs = ((shared, split, settings, name, smoothed) for name, split in wanted)
            return pool.run(_fit, jobs, len(wanted))

        yield fits


def _fit(
    shared: Shared[LabelledData],
    split: Split,
    settings: ReferenceSettings,
    name: str,
    smoothed: bool,
) -> Fit:
    return fit_method(shared.get(), split, settings, name, smoothed=smoothed)


def _validate(run: Run, fits: Fits) -> dict[str, Any]:
    """Return the accuracy of the winner and of each method on the same held-out pixels."""
    data, model = run.context.data, load_weights(run.folder.weights)
    answers = held_out_answers(run, model)
    pixels = sum(len(held_out) for _, held_out, _ in answers)
    facts: dict[str, Any] = {"pixels": pixels, "folds": len(answers), "OA": {}, "below": []}
    if not pixels:
        verdict = (
            f"no held-out {_words(run)} compare the winner with reference methods before the test"
        )
        return {**facts, "verdict": verdict}
    right: dict[str, list[Array]] = {name: [] for name in (WINNER, *CLASSICAL)}
    for _, held_out, predicted in answers:
        right[WINNER].append(predicted == data.targets(held_out))
    asked = [
        (name, _fold(run, learnt, held_out))
        for learnt, held_out, _ in answers
        for name in CLASSICAL
    ]
    for (name, fold), fit in zip(asked, fits(asked, False), strict=True):
        right[name].append(fit.predicted == data.targets(fold.test))
    facts |= accuracies_of({name: np.concatenate(parts) for name, parts in right.items()})
    side = patch_size_of(model.card.architecture, data.shape) if data.scene.has_map else 1
    titles = {name: title_of(name, data.scene) for name in CLASSICAL}
    verdict = _verdict(facts, run.context.config, side, titles, _words(run))
    return {**facts, "verdict": verdict}


def accuracies_of(right: Mapping[str, Array]) -> dict[str, Any]:
    """Return each method's accuracy, and the methods that are ahead of the winner.

    Args:
        right: method -> (n,) which pixels it has right; all methods on the same pixels.

    Returns:
        "OA" by method, and in "below" the methods that lead by more than chance (McNemar).
    """
    ahead = [n for n in CLASSICAL if compare_answers(right[WINNER], right[n])[2]]
    return {"OA": {name: float(hits.mean()) for name, hits in right.items()}, "below": ahead}


def _words(run: Run) -> str:
    return "pixels" if run.context.data.scene.has_map else "images"


def _check_size(run: Run) -> None:
    """Refuse images that the methods take too long for."""
    if (values := _values(run)) > MOST_VALUES:
        side = run.context.data.shape.side
        raise InputError(
            f"images of {side} x {side} pixels have {values} values; SVM and random forest are "
            f"fitted on {MOST_VALUES} at most"
        )


def _values(run: Run) -> int:
    """Return the values of an image; 0 for a scene, whose pixels have few."""
    data = run.context.data
    return 0 if data.scene.has_map else data.shape.side**2 * data.shape.bands


def _bounded(run: Run, split: Split, most_test: int) -> Split:
    """Return the split with so few samples that a fit takes about half a minute."""
    longer = max(1.0, _values(run) / USUAL_BANDS)
    return bounded_split(run.context.data.scene, split, int(MOST_TRAIN / longer**0.5), most_test)


def _fold(run: Run, learnt: Pixels, held_out: Pixels) -> Split:
    """Return the split that fits a method without held-out pixels, and predicts these."""
    split = run.context.data.split
    fold = replace(split, train=learnt, validation=split.validation[:0], test=held_out)
    return _bounded(run, fold, len(held_out))


def _test(run: Run, fits: Fits) -> dict[str, Any]:
    """Return what each method reaches on test pixels, fitted on all labelled ones of the run."""
    scene, whole = run.context.data.scene, run.context.data.split
    split = _bounded(run, replace(whole, test=whole.reported), MOST_TEST)
    found = fits([(name, split) for name in CLASSICAL], True)
    return {
        name: {
            "title": title_of(name, scene),
            "pixels": len(split.train),
            "of_pixels": len(whole.learnable),
            **figures_of_test(scene, split, fit),
            "details": dict(fit.details),
        }
        for name, fit in zip(CLASSICAL, found, strict=True)
    }


def _verdict(
    facts: Mapping[str, Any],
    config: RunConfig,
    side: int,
    titles: Mapping[str, str],
    words: str = "pixels",
) -> str:
    """Return the line that says what the held-out pixels, or images, say."""
    found = facts["OA"]
    figures = ", ".join(f"{titles[name]} {found[name]:.4f}" for name in CLASSICAL)
    line = f"OA on {facts['pixels']} held-out {words}: winner {found[WINNER]:.4f}, {figures}"
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
    if config.effort == "quick":
        change = "--effort normal"
    elif config.finalists == 1:
        change = f"--finalists {config.usual_finalists}"
    elif side > 1:
        change = "--patch-size 1"  # the methods that are better see single pixels
    else:
        change = f"--finalists {2 * (config.finalists or config.usual_finalists)}"
    return f"try the same command with {change} and another --out, or a larger --budget"
