"""Compare the winner with an SVM and a random forest on the same pixels, before the test.

Held-out pixels compare them: no network and no reference method was fitted on the pixels that it
is judged by here. The test pixels decide nothing; what the methods reach there is only reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import Split
from hytas.errors import InputError
from hytas.metrics import compare_predictions
from hytas.references import CLASSICAL, bounded_split, figures_of_test, title_of
from hytas.results import WINNER
from hytas.run.choosing.votes import MOST_TRAIN as MOST_FOR_VOTES
from hytas.run.config import RunConfig
from hytas.run.context import Run
from hytas.run.final.held_out import HeldOut
from hytas.run.fits import Wanted
from hytas.run.folder import read_json, write_json
from hytas.run.weights import CALIBRATION, SELF_TRAINING, load_weights
from hytas.search import EvaluationStore, unpack_classes
from hytas.types import Mask

LEAST_OF_ENDING = 0.6
"""Share of the time that a run with `minutes` keeps for its end; with less, no method is fitted.

With less than half of it after the fits on held-out pixels, none is tested.
"""
MOST_TRAIN = 1500  # an SVM takes at most about half a minute, by the square of the pixels
MOST_TEST = 50_000
USUAL_BANDS = 200  # of a pixel; of images with more values, fewer are taken
MOST_VALUES = 32 * 32 * 3
"""Values of an image, at most, that an SVM and a forest are fitted on."""


def references_stage(run: Run) -> None:
    """Fit the reference methods, compare the winner with them, and keep all figures.

    A line says what the held-out pixels say, before the methods are tested. It is a warning if the
    winner is below by more than chance, and then says what to try.
    """
    data = run.context.data
    run.report.line(
        f"reference methods: SVM and random forest on {data.inputs} of the same {data.unit}"
    )
    try:
        _check_time(run, LEAST_OF_ENDING)
        _check_size(run)
        validation = _validate(run)
        run.report.line(validation["verdict"])
        _check_time(run, LEAST_OF_ENDING / 2)
        methods = _test(run)
        comparison: dict[str, Any] = {"reason": "", "validation": validation, "methods": methods}
    except InputError as error:  # training pixels of one class
        comparison = {"reason": str(error), "validation": None, "methods": {}}
        run.report.line(f"no reference methods: {error}")
    write_json(run.folder.references, comparison)
    if run.folder.metrics.exists():  # the file was damaged
        write_json(run.folder.metrics, {**read_json(run.folder.metrics), "references": comparison})


def _check_time(run: Run, least: float) -> None:
    """Raise InputError if less than this share of the time for the end is left."""
    if run.pace.left_of_all() < least * run.pace.ending:
        raise InputError("the minutes of the run are over")


def _validate(run: Run) -> dict[str, Any]:
    """Return the accuracy of the winner and of each method on the same held-out pixels."""
    data, model = run.context.data, load_weights(run.folder.weights)
    records = _records(run, model.training)
    pixels = sum(len(record.pixels) for record in records)
    facts: dict[str, Any] = {"pixels": pixels, "folds": len(records), "OA": {}, "below": []}
    if not pixels:
        verdict = (
            f"no held-out {data.unit} compare the winner with reference methods before the test"
        )
        return {**facts, "verdict": verdict}
    self_trained = bool((model.training.get(SELF_TRAINING) or {}).get("used"))
    winner = [
        record.final_logits(self_trained)[0].argmax(axis=1) == record.targets for record in records
    ]
    voted = _voted(run, records)
    wanted = [(name, at) for at in range(len(records)) for name in CLASSICAL]
    missing = [each for each in wanted if (each[0], records[each[1]].pixels.tobytes()) not in voted]
    fits = run.fits.results([Wanted(name, _fold(run, records[at])) for name, at in missing])
    fitted = dict(zip(missing, fits, strict=True))

    def flags(name: str, at: int) -> Mask:
        if (fit := fitted.get((name, at))) is not None:
            return np.asarray(fit.predicted == records[at].targets)
        return np.asarray(voted[name, records[at].pixels.tobytes()] == records[at].targets)

    right = {name: [flags(name, at) for at in range(len(records))] for name in CLASSICAL}
    right = {WINNER: winner, **right}
    facts |= accuracies_of({name: np.concatenate(parts) for name, parts in right.items()})
    titles = {name: title_of(name, data.scene) for name in CLASSICAL}
    side = data.patch_side(model.card.architecture)
    return {**facts, "verdict": verdict_of(facts, run.context.config, side, titles, data.unit)}


def _voted(run: Run, records: Sequence[HeldOut]) -> dict[tuple[str, bytes], npt.NDArray[np.int64]]:
    """Return what the fits for the votes predict for records; method and pixels are the key.

    A fit holds if it had the same pixels as the network of a record, and none was left out.
    """
    context, store = run.context, run.folder.evaluations
    if not context.data.polls or not store.exists():
        return {}
    folds = context.folds()
    with EvaluationStore(store, read_only=True) as opened:
        votes = [one for one in opened.votes() if one.fold < len(folds)]
    predictions = {}
    for record in records:
        for vote in votes:
            fitted, pixels = folds[vote.fold]
            same = np.array_equal(fitted, record.trained) and np.array_equal(pixels, record.pixels)
            if same and len(fitted) <= MOST_FOR_VOTES and len(vote.held_out) == 2 * len(pixels):
                predictions[vote.method, pixels.tobytes()] = unpack_classes(vote.held_out)
    return predictions


def _records(run: Run, training: Mapping[str, Any]) -> list[HeldOut]:
    """Return the records that calibrated the winner; none if they are not all whole."""
    try:
        records = [HeldOut.load(path) for path in run.records.records]
    except InputError:
        return []
    pixels = sum(len(record.pixels) for record in records)
    return records if pixels == training[CALIBRATION]["pixels"] else []


def accuracies_of(right: Mapping[str, Mask]) -> dict[str, Any]:
    """Return each method's accuracy, and the methods that are ahead of the winner.

    Args:
        right: method -> (n,) which pixels it has right; all methods on the same pixels.

    Returns:
        "OA" by method, and in "below" the methods that lead by more than chance (McNemar).
    """
    ahead = [n for n in CLASSICAL if compare_predictions(right[WINNER], right[n])[2]]
    return {"OA": {name: float(hits.mean()) for name, hits in right.items()}, "below": ahead}


def _check_size(run: Run) -> None:
    if (values := run.context.data.sample_values) > MOST_VALUES:
        side = run.context.data.shape.side
        raise InputError(
            f"images of {side} x {side} pixels have {values} values; SVM and random forest are "
            f"fitted on {MOST_VALUES} at most"
        )


def _bounded(run: Run, split: Split, most_test: int) -> Split:
    """Return the split with so few samples that a fit takes about half a minute."""
    longer = max(1.0, run.context.data.sample_values / USUAL_BANDS)
    return bounded_split(run.context.data.scene, split, int(MOST_TRAIN / longer**0.5), most_test)


def _fold(run: Run, record: HeldOut) -> Split:
    """Return the split that fits a method without held-out pixels, and predicts these."""
    split, none = run.context.data.split, record.pixels[:0]
    fold = replace(split, train=record.trained, validation=none, test=record.pixels)
    return _bounded(run, fold, len(record.pixels))


def begin_tests(run: Run) -> None:
    """Begin the fits whose test figures `references_stage` keeps, unless `minutes` may forbid them.

    They read no label of a test pixel, and nothing of the winner.
    """
    if not (run.pace.limited or run.folder.references.exists()):
        run.fits.begin(_tests(run))


def _tests(run: Run) -> list[Wanted]:
    whole = run.context.data.split
    split = _bounded(run, replace(whole, test=whole.reported), MOST_TEST)
    return [Wanted(name, split, smoothed=True) for name in CLASSICAL]


def _test(run: Run) -> dict[str, Any]:
    """Return what each method reaches on test pixels, fitted on all labelled ones of the run."""
    scene, whole, wanted = run.context.data.scene, run.context.data.split, _tests(run)
    split, results = wanted[0].split, run.fits.results(wanted)
    return {
        name: {
            "title": title_of(name, scene),
            "pixels": len(split.train),
            "of_pixels": len(whole.train_and_validation),
            **figures_of_test(scene, split, fit),
            "details": dict(fit.details),
        }
        for name, fit in zip(CLASSICAL, results, strict=True)
    }


def verdict_of(
    facts: Mapping[str, Any],
    config: RunConfig,
    side: int,
    titles: Mapping[str, str],
    words: str = "pixels",
) -> str:
    accuracies = facts["OA"]
    figures = ", ".join(f"{titles[name]} {accuracies[name]:.4f}" for name in CLASSICAL)
    line = f"OA on {facts['pixels']} held-out {words}: winner {accuracies[WINNER]:.4f}, {figures}"
    if not facts["below"]:
        return line
    names = " and ".join(titles[name] for name in facts["below"])
    return f"warning: the winner is below {names}: {line}; {_advice(config, side)}"


def _advice(config: RunConfig, side: int) -> str:
    """Return what to try where a method on single spectra beats the winner."""
    if config.start is not None:
        return "try more labels, or a search on both scenes together"
    if config.budget is None:
        return "try a search under a budget, which compares architectures"
    if config.effort == "quick":
        change = "effort normal"
    elif config.finalists == 1:
        change = f"finalists {config.usual_finalists}"
    elif side > 1:
        change = "patch size 1"  # the methods that are better see single pixels
    else:
        change = f"finalists {2 * (config.finalists or config.usual_finalists)}"
    return f"try again in another folder, with {change} or a larger budget"
