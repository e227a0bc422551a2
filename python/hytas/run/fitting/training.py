"""The stages of the final training: the winner's, and those with further seeds."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from hytas.data import LabelledData, Scene
from hytas.export import describe
from hytas.metrics import summarise
from hytas.model_card import ModelCard
from hytas.results import Calibration, SelfTraining, SmoothingChoice
from hytas.run.context import Run
from hytas.run.damage import forget_damaged
from hytas.run.fitting.calibrating import (
    Findings,
    calibrate_by_folds,
    calibrate_own,
    calibrates_own,
    fold_jobs,
    forget_calibration,
    judge_own_smoothing,
)
from hytas.run.fitting.self_training import (
    choose_self_training,
    refusal,
    train_further,
)
from hytas.run.fitting.side_by_side import FinalJob, threads_of, train_side_by_side
from hytas.run.fitting.smoothing import Judged, choose_smoothing
from hytas.run.folder import read_json, write_json
from hytas.run.prepared import Pixels
from hytas.run.weights import CALIBRATION, SELF_TRAINING, SMOOTHING, TrainedModel, save_weights
from hytas.search import EvaluationStore, FinalTraining
from hytas.train import DivergedError, TrainingResult, train


def train_stage(run: Run) -> None:
    """Train the architecture of the run and write its weights.

    It trains on training and validation pixels, unless the configuration says "train": the
    architecture is chosen already, and few pixels are worth more in the training. Temperature,
    smoothing and self-training are still decided by validation pixels
    (`hytas.run.fitting.calibrating`).

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    context, folder, data = run.context, run.folder, run.context.data
    architecture = read_json(folder.architecture)
    preset, recipe = run.recipe
    network = context.network(architecture, recipe)
    forget_damaged(folder.checkpoint, run.report.line)
    learnt, watching = context.final_pixels
    try:
        found = None
        if not calibrates_own(context):
            if data.scene.has_map:
                own = FinalJob(run, folder.checkpoint, learnt, watching)
                train_side_by_side(run, [*fold_jobs(run), own], "trainings of the winner")
            found = calibrate_by_folds(run, architecture)
        with threads_of(context):
            result = train(
                network,
                data.labelled(learnt),
                data.labelled(watching),
                recipe,
                seed=context.config.seed,
                device=context.device,
                checkpoint=folder.checkpoint,
                keep=True,  # a stop after it does not repeat it
                progress=run.report.epoch,
            )
        found, rounds = _train_further(run, network, found)
    except DivergedError:
        folder.forget_checkpoints()  # now the recipe may change
        forget_calibration(folder)
        raise
    run.report.line(found.calibration.describe())
    smooth = None
    if data.scene.has_map:
        kept = None if context.start is None else context.start.smoothing
        smooth = choose_smoothing(context.config.smooth, found.judged, kept)
        run.report.line(smooth.describe())
    card = _card(run, architecture, learnt, found.calibration, smooth)
    training = {
        **result.to_dict(),
        "preset": preset,
        CALIBRATION: found.calibration.to_dict(),
        SMOOTHING: None if smooth is None else smooth.to_dict(),
        SELF_TRAINING: found.self_training.to_dict(),
        "self_training_rounds": [each.to_dict() for each in rounds],
    }
    save_weights(folder.weights, TrainedModel(network, card, training))
    folder.forget_checkpoints()


def _train_further(
    run: Run, network: nn.Module, found: Findings | None
) -> tuple[Findings, list[TrainingResult]]:
    """Train further with unlabelled pixels, in place, if held-out pixels speak for it.

    Where the folds left `found` open, the network itself is judged on the validation pixels that
    its training left out.
    """
    context, data = run.context, run.context.data
    learnt, watching = context.final_pixels
    further = partial(train_further, run, network, learnt, run.report.epoch)
    if found is not None:
        if data.scene.has_map:
            run.report.line(found.self_training.describe())
        return found, further() if found.self_training.used else []

    def look() -> tuple[Calibration, Judged]:
        found = calibrate_own(network, data.labelled(watching), context.device)
        return found, judge_own_smoothing(
            network, data, watching, context.device, found.temperature
        )

    calibration, judged = look()
    choice, rounds = SelfTraining(False, reason=refusal(context)), []
    if not choice.reason:
        kept = deepcopy(network.state_dict())
        rounds = further()
        calibrated_after, after = look()
        apart = data.split.extrapolates
        choice = choose_self_training(context.config.smooth, apart, judged, after)
        if choice.used:
            calibration, judged = calibrated_after, after
        else:
            network.load_state_dict(kept)
            rounds = []
    if data.scene.has_map:
        run.report.line(choice.describe())
    return Findings(calibration, judged, choice), rounds


def _card(
    run: Run,
    architecture: Mapping[str, Any],
    learnt: Pixels,
    calibration: Calibration,
    smooth: SmoothingChoice | None,
) -> ModelCard:
    context, data = run.context, run.context.data
    scenes = learnt_scenes(data.scene, learnt)
    guide = None
    if smooth is not None:
        guide = replace(data.guide, method=smooth.method, temperature=smooth.temperature)
    if context.start is not None and smooth is not None:
        unknown = calibration.reason != ""
        temperature = context.start.card.temperature if unknown else calibration.temperature
        changed: dict[str, Any] = {"method": smooth.method}
        if smooth.ECE_after is not None:  # pixels were enough to fit it
            changed["temperature"] = smooth.temperature
        return context.start.card_after(temperature, changed, scenes)
    return describe(
        data.scene,
        data.preprocessing,
        architecture,
        data.shape,
        calibration.temperature,
        None if guide is None else guide.to_dict(),
        context.config.scale_by,
        scenes,
    )


def learnt_scenes(scene: LabelledData, pixels: Pixels) -> list[dict[str, Any]]:
    """Return name, fingerprint and number of training pixels of each scene, for the card."""
    if not isinstance(scene, Scene):
        return [{"name": scene.name, "fingerprint": scene.fingerprint, "pixels": len(pixels)}]
    return [
        {
            "name": part.name,
            "fingerprint": part.fingerprint,
            "pixels": len(np.intersect1d(pixels, part.pixels(scene.width))),
        }
        for part in scene.parts
        if part.learnt
    ]


def seeds_stage(run: Run, train_and_check: Callable[[Run, Run], None]) -> None:
    """Train the winner with further seeds, and write mean and deviation to the metrics.

    Every further model is exported, checked and kept in its own folder. The model of the run is
    the first one. All final trainings are kept in the store of the run.

    Args:
        run: its first final training must be done.
        train_and_check: trains and checks the second run, which is `run` with another seed; makes
            damaged files of it again.
    """
    config, folder = run.context.config, run.folder
    first = read_json(folder.metrics)
    _record(run, run, first)
    wanted = [config.seed + number for number in range(config.seeds)]
    # Without a "seeds" entry, only the first seed has been trained.
    summary = first.pop("seeds", None)
    if config.seeds == 1:
        if summary is not None:
            write_json(folder.metrics, first)
        return
    reports = [first]
    further = [run.of_seed(seed) for seed in wanted[1:]]
    if run.workers is not None or run.context.data.scene.has_map:
        missing = [inner for inner in further if not inner.folder.weights.exists()]
        named = ", ".join(str(inner.context.config.seed) for inner in missing)
        train_side_by_side(
            run,
            [
                FinalJob(inner, inner.folder.checkpoint, *inner.context.final_pixels)
                for inner in missing
            ],
            f"final training with seeds {named}",
        )
    for inner in further:
        seed = inner.context.config.seed
        if not inner.folder.metrics.exists():
            run.report.line(f"final training with seed {seed}")
        train_and_check(run, inner)
        metrics = read_json(inner.folder.metrics)
        _record(run, inner, metrics)
        reports.append(metrics)
    found = {"of": wanted, **summarise([one["test"] for one in reports])}
    if all(one.get("smoothed") for one in reports):
        found["smoothed"] = summarise([one["smoothed"] for one in reports])
    if found != summary:
        write_json(folder.metrics, {**first, "seeds": found})


def copy_choice(run: Run, inner: Run) -> None:
    """Give the folder of a further seed the choices of the run and its calibration, if missing.

    The calibration is valid for the same recipe, pixels and architecture.
    """
    own, copy = run.folder, inner.folder
    if fault := copy.manifest.fault(copy.calibration):
        run.report.line(f"{copy.calibration.name}: {fault}: copied again")
        copy.calibration.unlink(missing_ok=True)
    if not copy.recipe.exists():
        write_json(copy.recipe, {"preset": run.recipe[0]})
    for path, to in ((own.architecture, copy.architecture), (own.calibration, copy.calibration)):
        if path.exists() and not to.exists():
            write_json(to, read_json(path))
            copy.manifest.record([to])


def _record(run: Run, trained: Run, metrics: dict[str, Any]) -> None:
    """Keep a final training, with its figures on the test pixels, in the store of `run`."""
    test = metrics["test"]
    with EvaluationStore(run.folder.evaluations) as store:
        store.add_final_training(
            FinalTraining(
                read_json(run.folder.architecture),
                trained.context.config.seed,
                len(metrics["training"]["history"]),
                len(trained.context.final_pixels[0]),
                test["OA"],
                test["AA"],
                test["kappa"],
            )
        )
