"""Calibrate a model: fit its temperature on pixels that its network was not trained on."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.errors import InputError
from hytas.metrics import calibration
from hytas.models.layers import probabilities
from hytas.race import ENOUGH_PIXELS
from hytas.results import Calibration, SelfTraining
from hytas.run.context import Run, RunContext
from hytas.run.damage import forget_damaged
from hytas.run.fitting.answers import Answers, Fold, digest
from hytas.run.fitting.self_training import (
    choose_self_training,
    refusal,
    train_further,
)
from hytas.run.fitting.side_by_side import FinalJob, threads_of, train_side_by_side
from hytas.run.fitting.smoothing import Judged, judge_smoothing
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.run.prepared import Pixels, PreparedScene
from hytas.run.weights import SELF_TRAINING, TrainedModel
from hytas.train import DivergedError, Epoch, LabelledPixels, fit_temperature, logits_of, train
from hytas.train.temperature import is_chance

LEAST_PIXELS = 10
"""Validation pixels that a temperature needs. With few pixels, confidence stays lower."""
MOST_PIXELS = 5000  # of a fold; one number needs no more


@dataclass(frozen=True, eq=False)
class Findings:
    """What held-out pixels say of the training of an architecture.

    Attributes:
        calibration: of the network that is shipped.
        judged: what it says of held-out pixels, raw and smoothed.
        self_training: whether it goes on with unlabelled pixels.
    """

    calibration: Calibration
    judged: Judged
    self_training: SelfTraining


def judge_own_smoothing(
    network: nn.Module,
    data: PreparedScene,
    held_out: Pixels,
    device: torch.device,
    temperature: float,
) -> Judged:
    """Return what a trained network says of smoothing, on pixels that it was not trained on."""
    return judge_smoothing(
        data, held_out, lambda pixels: logits_of(network, pixels, device), temperature
    )


def calibrate_own(
    network: nn.Module, held_out: LabelledPixels, device: torch.device
) -> Calibration:
    """Calibrate a trained network on validation pixels that were kept from its training."""
    kept = _some(held_out)
    return _calibration([logits_of(network, kept, device)], [kept.targets], trained=0)


def calibrate_by_folds(run: Run, architecture: Mapping[str, Any]) -> Findings:
    """Calibrate an architecture whose final training uses all labelled pixels.

    A network is too confident on pixels that it was trained on. So the architecture is trained
    with the same recipe but without the pixels of a fold (`Split.folds_like_test`). The folder
    keeps the answers: a run that was stopped trains no fold twice, and further seeds use the same
    temperature. No label of a test pixel is read.

    Raises:
        DivergedError: the loss or the logits of a training are not finite.
    """
    folds = _folds(run)
    found = _kept(run, folds)
    if found is None:
        run.report.line(f"{run.folder.calibration.name}: damaged, or of another run: made again")
        run.folder.calibration.unlink()
        found = []
    if (total := sum(len(held_out) for _, held_out in folds)) < LEAST_PIXELS:
        nothing = Judged.none(run.context.data.shape.classes)
        return Findings(_too_few(total), nothing, _self_training(run.context, []))
    networks: dict[int, _Networks] = {}
    for number in range(len(found), len(folds)):
        networks[number] = _train_without(run, architecture, folds[number][0], number)
        found.append(_answers(run, networks[number], folds[number][1]))
        _keep(run, found)
    for number, (learnt, held_out) in enumerate(folds):
        if not found[number].is_judged:
            trained = networks.pop(number, None)
            if trained is None:  # after a stop: read from its checkpoints
                trained = _train_without(run, architecture, learnt, number)
            found[number] = _judged(run, trained, held_out, found, number)
            _keep(run, found)
        run.folder.forget_checkpoints(number)
    choice = _self_training(run.context, found)
    shipped = [_shipped(fold, choice.used) for fold in found]
    nothing = Judged.none(run.context.data.shape.classes)
    return Findings(
        _calibration([one.logits for one in shipped], [fold.targets for fold in found], len(folds)),
        Judged.joined([one.judged or nothing for one in shipped]),
        choice,
    )


def fold_jobs(run: Run) -> list[FinalJob]:
    """Return the trainings that `calibrate_by_folds` needs, as far as the folder lacks them."""
    folds = _folds(run)
    if sum(len(held_out) for _, held_out in folds) < LEAST_PIXELS:
        return []
    found = _kept(run, folds) or []
    return [
        FinalJob(run, run.folder.calibration_checkpoint(number), learnt, learnt[:0])
        for number, (learnt, _) in enumerate(folds)
        if number >= len(found) or not found[number].is_judged
    ]


def _self_training(context: RunContext, folds: Sequence[Fold]) -> SelfTraining:
    """Return whether networks like those of the folds go on with unlabelled pixels."""
    if why := refusal(context):
        return SelfTraining(False, reason=why)
    both = [fold.said for fold in folds if fold.after is not None]
    if len(both) < len(folds):  # it diverged, or an older hytas trained some
        return SelfTraining(False, reason="some networks were not trained further, to be judged")
    nothing = Judged.none(context.data.shape.classes)
    before, after = (
        Judged.joined([nothing, *(one[side].judged or nothing for one in both)]) for side in (0, 1)
    )
    apart = context.data.split.extrapolates
    return choose_self_training(context.config.smooth, apart, before, after)


def _shipped(fold: Fold, self_trained: bool) -> Answers:
    """Return what a network says of a fold that is trained as the one that is shipped."""
    return fold.after if self_trained and fold.after is not None else fold.before


def mend_calibration(run: Run) -> None:
    """Make the answers of a finished training again if their file is damaged or missing.

    Its weights keep the temperature that they have.
    """
    path, manifest = run.folder.calibration, run.folder.manifest
    fault = manifest.fault(path)
    if fault is None or not run.folder.weights.exists():
        return
    run.report.line(f"{path.name}: {fault}: made again")
    if _kept(run, _folds(run)) is None:
        path.unlink()
    if run.context.data.scene.has_map:
        train_side_by_side(run, fold_jobs(run), "trainings of the winner")
    calibrate_by_folds(run, read_json(run.folder.architecture))
    manifest.record([path])


def _folds(run: Run) -> list[tuple[Pixels, Pixels]]:
    """Return the pixels that each network of a calibration learns, and those it leaves out."""
    data = run.context.data
    return data.split.folds_like_test(data.scene, run.context.config.split.block, ENOUGH_PIXELS)


class _Networks(NamedTuple):
    """A network that was trained without a fold, and once it went on with unlabelled pixels."""

    before: nn.Module
    after: nn.Module | None


def _train_without(
    run: Run, architecture: Mapping[str, Any], learnt: Pixels, number: int
) -> _Networks:
    context, data = run.context, run.context.data
    run.report.line(
        f"calibration: training on {len(learnt)} pixels, to measure confidence on others"
    )
    _, recipe = run.recipe
    network = context.network(architecture, recipe)
    checkpoint = run.folder.calibration_checkpoint(number)
    forget_damaged(checkpoint, run.report.line)
    with threads_of(context):
        train(
            network,
            data.labelled(learnt),
            data.labelled(learnt[:0]),
            recipe,
            seed=context.config.seed,
            device=context.device,
            checkpoint=checkpoint,
            keep=True,  # a stop after it does not repeat it
            progress=lambda epoch: _tell(run, "calibrate", epoch, learnt),
        )
    if refusal(context):
        return _Networks(network, None)
    before = deepcopy(network)
    try:
        train_further(
            run, network, learnt, lambda epoch: _tell(run, "self-train", epoch, learnt), number
        )
    except DivergedError as error:
        run.report.line(f"self-training: {error}")
        return _Networks(before, None)
    return _Networks(before, network)


def _answers(run: Run, networks: _Networks, held_out: Pixels) -> Fold:
    """Return what networks say of the pixels of their fold, not judged yet."""
    pixels, device = _some(run.context.data.labelled(held_out)), run.context.device

    def said(network: nn.Module) -> Answers:
        return Answers(logits_of(network, pixels, device), None)

    after = None if networks.after is None else said(networks.after)
    return Fold(pixels.pixels, pixels.targets, said(networks.before), after)


def _judged(
    run: Run, networks: _Networks, held_out: Pixels, folds: Sequence[Fold], number: int
) -> Fold:
    """Return a fold with its answers judged, at the temperature that all folds ask for."""
    data, device, fold = run.context.data, run.context.device, folds[number]

    def judged(network: nn.Module, side: int) -> Answers:
        known = [(each.said[side].logits, each.targets) for each in folds if len(each.said) > side]
        logits, targets = map(list, zip(*known, strict=True))
        temperature = _calibration(logits, targets, len(folds)).temperature
        return replace(
            fold.said[side],
            judged=judge_own_smoothing(network, data, held_out, device, temperature),
        )

    before, after = networks
    return replace(
        fold,
        before=judged(before, 0),
        after=None if after is None or fold.after is None else judged(after, 1),
    )


def _keep(run: Run, folds: Sequence[Fold]) -> None:
    found = [fold.to_dict() for fold in folds]
    write_json(run.folder.calibration, {"sha256": digest(found), "folds": found})


def _tell(run: Run, work: str, epoch: Epoch, learnt: Pixels) -> None:
    run.report.pixels(work, epoch.epoch * len(learnt), epoch.epochs * len(learnt))


def held_out_answers(
    run: Run, model: TrainedModel
) -> list[tuple[Pixels, Pixels, NDArray[np.int64]]]:
    """Return predictions for pixels that the predicting network was not trained on.

    Args:
        run: its final training must be done.
        model: what it left.

    Returns:
        For each network: the pixels that it was trained on, the held-out pixels (n,), and their
        predicted class indices (n,). Empty if the folder holds none, or if they are too few.
    """
    context, data = run.context, run.context.data
    if calibrates_own(context):
        learnt, watching = context.final_pixels
        pairs, kept = [(learnt, watching)], _some(data.labelled(watching))
        found = [(kept.pixels, logits_of(model.network, kept, context.device))]
    else:
        pairs = _folds(run)
        folds = _kept(run, pairs) or []
        used = bool((model.training.get(SELF_TRAINING) or {}).get("used"))
        found = [(fold.pixels, _shipped(fold, used).logits) for fold in folds]
    if len(found) < len(pairs) or sum(len(pixels) for pixels, _ in found) < LEAST_PIXELS:
        return []
    return [
        (learnt, pixels, logits.argmax(axis=1).astype(np.int64))
        for (learnt, _), (pixels, logits) in zip(pairs, found, strict=True)
    ]


def calibrates_own(context: RunContext) -> bool:
    """Return whether the final training leaves out validation pixels that lie like test pixels."""
    _, watching = context.final_pixels
    return len(watching) > 0 and not context.data.split.extrapolates


def forget_calibration(folder: RunFolder) -> None:
    """Remove the files of a calibration from the folder."""
    for path in (folder.calibration, *folder.calibration_checkpoints()):
        path.unlink(missing_ok=True)


def _some(held_out: LabelledPixels) -> LabelledPixels:
    """Return at most `MOST_PIXELS` of the pixels, evenly spread."""
    if len(held_out) <= MOST_PIXELS:
        return held_out
    chosen = np.linspace(0, len(held_out) - 1, MOST_PIXELS).astype(np.int64)
    return held_out.subset(held_out.pixels[chosen])


def _calibration(
    logits_of_each: list[NDArray[np.float32]],
    targets_of_each: list[NDArray[np.int64]],
    trained: int,
) -> Calibration:
    """Fit the temperature on the answers of one or several networks."""
    logits, targets = np.concatenate(logits_of_each), np.concatenate(targets_of_each)
    if len(targets) < LEAST_PIXELS:
        return _too_few(len(targets))
    temperature = fit_temperature(logits, targets)
    if is_chance(temperature):
        why = "after this short training, accuracy on held-out pixels is not above chance"
        return Calibration(pixels=len(targets), folds=trained, reason=why)
    before, after = (_error(logits, targets, number) for number in (1.0, temperature))
    return Calibration(temperature, len(targets), trained, before, after)


def _too_few(pixels: int) -> Calibration:
    have = f"{pixels} validation pixels" if pixels else "no validation pixels"
    return Calibration(
        pixels=pixels, reason=f"the split has {have}; at least {LEAST_PIXELS} are needed"
    )


def _error(logits: NDArray[np.float32], targets: NDArray[np.int64], temperature: float) -> float:
    chances = probabilities(torch.from_numpy(logits).double(), temperature).numpy()
    return float(calibration(targets, logits.argmax(axis=1), chances)["ECE"])


def _kept(run: Run, folds: list[tuple[Pixels, Pixels]]) -> list[Fold] | None:
    """Return the answers of the first folds that the folder holds; None if they are damaged."""
    path, data = run.folder.calibration, run.context.data
    if not path.exists():
        return []
    wanted = [_some(data.labelled(held_out)) for _, held_out in folds]
    try:
        content = read_json(path)
        held = content["folds"]
        if content.get("sha256", digest(held)) != digest(held):  # older files have none
            raise ValueError("damaged")
        found = [Fold.from_dict(fold, data.shape.classes) for fold in held]
        pairs = zip(found, wanted, strict=False)
        if len(found) <= len(wanted) and all(fold.is_of(held_out) for fold, held_out in pairs):
            return found
    except (AttributeError, InputError, LookupError, OverflowError, TypeError, ValueError):
        pass
    return None
