"""Compare the winner with an SVM and a random forest on the same pixels, before the test.

Held-out pixels compare them: no network and no reference method was fitted on the pixels that it
is judged by here. The test pixels decide nothing; what the methods reach there is only reported.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hytas.errors import InputError
from hytas.models.table import patch_size_of
from hytas.references import figures_of_test, fit_and_smooth, fit_method, title_of
from hytas.run.classical import (
    CLASSICAL,
    Fits,
    bounded,
    check_size,
    fold_of,
    open_fits,
    words,
)
from hytas.run.config import RunConfig
from hytas.run.context import Run
from hytas.run.fitting.calibrating import held_out_answers
from hytas.run.folder import read_json, write_json
from hytas.run.weights import load_weights

MOST_TEST = 50_000
WINNER = "winner"


def references_stage(run: Run) -> None:
    """Fit the reference methods, compare the winner with them, and keep all figures.

    A line says what the held-out pixels say, before the methods are tested. It is a warning if the
    winner is below, and then says what to try.
    """
    what = "spectra" if run.context.data.scene.has_map else "all values"
    run.report.line(f"reference methods: SVM and random forest on {what} of the same {words(run)}")
    try:
        check_size(run)
        with open_fits(run) as fits:
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


def _validate(run: Run, fits: Fits) -> dict[str, Any]:
    """Return the accuracy of the winner and of each method on the same held-out pixels."""
    data, model = run.context.data, load_weights(run.folder.weights)
    answers = held_out_answers(run, model)
    pixels = sum(len(held_out) for _, held_out, _ in answers)
    facts: dict[str, Any] = {"pixels": pixels, "folds": len(answers), "OA": {}, "below": []}
    if not pixels:
        verdict = (
            f"no held-out {words(run)} compare the winner with reference methods before the test"
        )
        return {**facts, "verdict": verdict}
    right = {WINNER: 0, **dict.fromkeys(CLASSICAL, 0)}
    for _, held_out, predicted in answers:
        right[WINNER] += int((predicted == data.targets(held_out)).sum())
    asked = [
        (name, fold_of(run, learnt, held_out))
        for learnt, held_out, _ in answers
        for name in CLASSICAL
    ]
    for (name, fold), fit in zip(asked, fits(fit_method, asked), strict=True):
        right[name] += int((fit.predicted == data.targets(fold.test)).sum())
    facts["OA"] = {name: count / pixels for name, count in right.items()}
    facts["below"] = [name for name in CLASSICAL if right[name] > right[WINNER]]
    side = patch_size_of(model.card.architecture, data.shape) if data.scene.has_map else 1
    titles = {name: title_of(name, data.scene) for name in CLASSICAL}
    verdict = _verdict(facts, run.context.config, side, titles, words(run))
    return {**facts, "verdict": verdict}


def _test(run: Run, fits: Fits) -> dict[str, Any]:
    """Return what each method reaches on test pixels, fitted on all labelled ones of the run."""
    scene, whole = run.context.data.scene, run.context.data.split
    split = bounded(run, replace(whole, test=whole.reported), MOST_TEST)
    found = fits(fit_and_smooth, [(name, split) for name in CLASSICAL])
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
    samples: str = "pixels",
) -> str:
    """Return the line that says what the held-out pixels, or images, say."""
    found = facts["OA"]
    figures = ", ".join(f"{titles[name]} {found[name]:.4f}" for name in CLASSICAL)
    line = f"OA on {facts['pixels']} held-out {samples}: winner {found[WINNER]:.4f}, {figures}"
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
