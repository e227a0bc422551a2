"""Compare the winner with reference methods on the same pixels, before the test.

Held-out pixels compare them: no network and no reference method was fitted on the pixels that it
is judged by here. The test pixels decide nothing; what the methods reach there is only reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import LabelledData, Split
from hytas.decide.decisions import maps_of
from hytas.decide.records import HeldOut
from hytas.errors import InputError
from hytas.metrics import compare_predictions
from hytas.references import bounded_split, classical_methods, figures_of_test, title_of
from hytas.results import NETWORK, WINNER, short_title
from hytas.run.choosing.methods import MOST_TRAIN as MOST_IN_RACE
from hytas.run.context import Run, RunContext
from hytas.run.final.fits import records_of
from hytas.run.final.task import final_task
from hytas.run.fits import ReferenceFits, Wanted
from hytas.run.folder import write_json
from hytas.run.pace import Pace
from hytas.run.prepared import PreparedData
from hytas.run.weights import CALIBRATION, CLASS_PRIOR, MEAN, SELF_TRAINING, SMOOTHING, load_weights
from hytas.search import EvaluationStore, unpack_classes
from hytas.types import Array, Pixels, Smoother

LEAST_OF_ENDING = 0.6
"""Share of the time that a run with `minutes` keeps for its end; with less, no method is fitted.

With less than half of it after the fits on held-out pixels, none is tested.
"""
MOST_TRAIN = 1500  # an SVM takes at most about half a minute, by the square of the pixels
MOST_TEST = 50_000
USUAL_BANDS = 200  # of a pixel; of images with more values, fewer are taken
FEW_PIXELS = 200
"""With fewer held-out pixels, the comparison says how many points one of them is."""
MOST_VALUES = 32 * 32 * 3
"""Values of an image, at most, that an SVM and a forest are fitted on."""


def references_stage(run: Run) -> None:
    """Fit the reference methods, compare the winner with them, and keep all figures.

    A line says what the held-out pixels say, before the methods are tested. It is a notice if the
    winner is below by more than chance.
    """
    data = run.context.data
    run.report.line(
        f"reference methods: {_titles(data.scene)} on {data.inputs} of the same {data.unit}"
    )
    try:
        _check_time(run.pace, LEAST_OF_ENDING)
        if (values := data.sample_values) > MOST_VALUES:
            side, titles = data.shape.side, _titles(data.scene)
            raise InputError(
                f"images of {side} x {side} pixels have {values} values; {titles} are fitted on "
                f"{MOST_VALUES} at most"
            )
        validation = _validate(run)
        # Now, because the end of the run shows figures of the test as well.
        tell = run.report.notice if validation["below"] else run.report.line
        tell(validation["verdict"])
        _check_time(run.pace, LEAST_OF_ENDING / 2)
        methods = _test(data, run.fits)
        comparison: dict[str, Any] = {"reason": "", "validation": validation, "methods": methods}
    except InputError as error:  # training pixels of one class
        comparison = {"reason": str(error), "validation": None, "methods": {}}
        run.report.line(f"no reference methods: {error}")
    write_json(run.folder.references, comparison)


def _titles(scene: LabelledData) -> str:
    """Return the names of the methods as text."""
    return ", ".join(short_title(title_of(name, scene)) for name in classical_methods(scene))


def _check_time(pace: Pace, least: float) -> None:
    """Raise InputError if less than this share of the time for the end is left."""
    if pace.left_of_all() < least * pace.ending:
        raise InputError("the minutes of the run are over")


def _validate(run: Run) -> dict[str, Any]:
    """Return the accuracy of the winner and of each method on the same held-out pixels."""
    data, model = run.context.data, load_weights(run.folder.weights)
    members = (model.training.get(MEAN) or {"members": [NETWORK]})["members"]
    records = [record.mean(members) for record in _records(run, model.training)]
    has_map = data.smoother is not None
    judged = [record.compared if has_map else record.pixels for record in records]
    pixels = sum(map(len, judged))
    task = data.task
    facts: dict[str, Any] = {"pixels": pixels, "folds": len(records), task.figure: {}, "below": []}
    if not pixels:
        verdict = (
            f"no held-out {data.unit} compare the winner with reference methods before the test"
        )
        return {**facts, "verdict": verdict}
    predictions = _of_the_race(run.context, run.folder.evaluations, records, judged)
    methods = classical_methods(data.scene)
    wanted = [(name, at) for at in range(len(records)) for name in methods]
    missing = [each for each in wanted if each not in predictions]
    splits = [_fold(data, *each) for each in zip(records, judged, strict=True)]
    fits = run.fits.results(
        [Wanted(name, splits[at], judged[at] if has_map else None) for name, at in missing]
    )
    for each, fit in zip(missing, fits, strict=True):
        smoothed = () if fit.smoothed is None else (fit.smoothed.argmax(axis=1),)
        predictions[each] = fit.predicted, *smoothed
    targets = task.coded(data.targets(np.concatenate(judged)))
    right = {WINNER: _right_of_winner(records, model.training, data.smoother)}
    for name in methods:
        parts = zip(*(predictions[name, at] for at in range(len(records))), strict=True)
        right[name] = [task.merits(task.coded(np.concatenate(each)), targets) for each in parts]
    is_smoothed = (model.training.get(SMOOTHING) or {}).get("method") == "guided"
    if (model.training.get(CLASS_PRIOR) or {}).get("used"):
        # Held-out pixels have the class shares of the labels, under which smoothing was not chosen.
        raw, in_smoothed = right[WINNER]
        is_smoothed = bool(in_smoothed.sum() > raw.sum())
    facts |= accuracies_of(right, is_smoothed=is_smoothed, figure=task.figure)
    titles = {name: title_of(name, data.scene) for name in methods}
    return {**facts, "verdict": verdict_of(facts, titles, data.unit)}


def _right_of_winner(
    records: Sequence[HeldOut], training: Mapping[str, Any], smoother: Smoother | None
) -> list[Array]:
    """Return which pixels of all records the winner has right: raw, and in a smoothed map."""
    self_trained = bool((training.get(SELF_TRAINING) or {}).get("used"))
    if smoother is not None:
        maps = maps_of(records, self_trained, smoother, training[CALIBRATION]["temperature"])
        return [maps.right("none"), maps.right("guided")]
    return [
        np.concatenate(
            [
                one.task.merits(one.task.predicted(one.final_logits(self_trained)[0]), one.targets)
                for one in records
            ]
        )
    ]


def _of_the_race(
    context: RunContext, store: Path, records: Sequence[HeldOut], judged: Sequence[Pixels]
) -> dict[tuple[str, int], tuple[npt.NDArray[np.int64], ...]]:
    """Return classes of judged pixels by the fits of the race, raw and of a smoothed map.

    A fit holds if it had the same pixels as the network of a record, and none was left out. Method
    and number of the record are the key.
    """
    if not context.data.has_methods or not store.is_file():
        return {}
    folds = context.folds()
    with EvaluationStore(store, read_only=True) as opened:
        kept = [one for one in opened.methods() if one.fold < len(folds)]
    has_map = context.data.smoother is not None
    predictions: dict[tuple[str, int], tuple[npt.NDArray[np.int64], ...]] = {}
    for at, (record, chosen) in enumerate(zip(records, judged, strict=True)):
        for fit in kept:
            fitted, pixels = folds[fit.fold]
            same = np.array_equal(fitted, record.trained) and np.array_equal(pixels, record.pixels)
            complete = len(fit.held_out) == 2 * (len(pixels) + has_map * len(chosen))
            if same and complete and len(fitted) <= MOST_IN_RACE:
                raw, smoothed = np.split(unpack_classes(fit.held_out), [len(pixels)])
                classes = raw[np.searchsorted(pixels, chosen)], smoothed
                predictions[fit.method, at] = classes if has_map else classes[:1]
    return predictions


def _records(run: Run, training: Mapping[str, Any]) -> list[HeldOut]:
    """Return the records that calibrated the winner; none if they are not all whole."""
    try:
        records = records_of(final_task(run))
    except InputError:
        return []
    pixels = sum(len(record.pixels) for record in records)
    return records if pixels == training[CALIBRATION]["pixels"] else []


def accuracies_of(
    right: Mapping[str, Sequence[Array]], *, is_smoothed: bool = False, figure: str = "OA"
) -> dict[str, Any]:
    """Return each method's accuracy, and the methods that are ahead of the winner.

    Args:
        right: method -> (n,) which pixels it has right, and (n,) in a smoothed map if there are
            maps; all methods on the same pixels.
        is_smoothed: whether the winner's map is smoothed.

    Returns:
        "OA" by method, "smoothed" likewise if there are maps, and in "below" the methods whose
        predictions, raw or smoothed, lead by more than chance over the winner's map (McNemar).
    """
    own = right[WINNER][is_smoothed]
    ahead = [
        name
        for name, parts in right.items()
        if name != WINNER and any(compare_predictions(own, part)[2] for part in parts)
    ]
    kinds = (figure, "smoothed")[: len(right[WINNER])]
    figures = {
        kind: {name: float(parts[at].mean()) for name, parts in right.items()}
        for at, kind in enumerate(kinds)
    }
    return {**figures, "below": ahead}


def _bounded(data: PreparedData, split: Split, most_test: int) -> Split:
    """Return the split with so few samples that a fit takes about half a minute."""
    longer = max(1.0, data.sample_values / USUAL_BANDS)
    return bounded_split(data.scene, split, int(MOST_TRAIN / longer**0.5), most_test)


def _fold(data: PreparedData, record: HeldOut, pixels: Pixels) -> Split:
    """Return the split that fits a method without the held-out pixels, and predicts some."""
    fold = replace(data.split, train=record.trained, validation=pixels[:0], test=pixels)
    return _bounded(data, fold, len(pixels))


def begin_tests(run: Run) -> None:
    """Begin the fits whose test figures `references_stage` keeps, unless `minutes` may forbid them.

    They read no label of a test pixel, and nothing of the winner.
    """
    if not (run.pace.minutes or run.folder.references.is_file()):
        run.fits.begin(_tests(run.context.data))


def _tests(data: PreparedData) -> list[Wanted]:
    split = _bounded(data, replace(data.split, test=data.split.reported), MOST_TEST)
    return [Wanted(name, split, split.test) for name in classical_methods(data.scene)]


def _test(data: PreparedData, fits: ReferenceFits) -> dict[str, Any]:
    """Return what each method reaches on test pixels, fitted on all labelled ones of the run."""
    scene, wanted = data.scene, _tests(data)
    split, results = wanted[0].split, fits.results(wanted)
    return {
        name: {
            "title": title_of(name, scene),
            "pixels": len(split.train),
            "of_pixels": len(data.split.train_and_validation),
            **figures_of_test(scene, split, fit),
            "details": dict(fit.details),
        }
        for name, fit in zip(classical_methods(scene), results, strict=True)
    }


def verdict_of(facts: Mapping[str, Any], titles: Mapping[str, str], words: str = "pixels") -> str:
    """Return a line with the held-out figures of all methods: a warning, if the winner is below."""
    figure = next(name for name in ("OA", "R2") if name in facts)
    kinds = [facts[kind] for kind in (figure, "smoothed") if kind in facts]
    raw_and_smoothed = ", raw and smoothed" if len(kinds) > 1 else ""
    figures = ", ".join(
        f"{title} {' and '.join(f'{kind[name]:.4f}' for kind in kinds)}"
        for name, title in {WINNER: WINNER, **titles}.items()
    )
    few = ""
    if facts["pixels"] < FEW_PIXELS and "OA" in facts:
        few = f" (each is {100 / facts['pixels']:.1f} points)"
    line = f"{figure} on {facts['pixels']} held-out {words}{few}{raw_and_smoothed}: {figures}"
    if not facts["below"]:
        return f"{line}; none is ahead of the winner by more than chance"
    names = " and ".join(titles[name] for name in facts["below"])
    return f"warning: the winner is below {names}: {line}"
