"""The fits of the final training: of folds, whose results decide, and of the winner."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from hytas.decide.decisions import LEAST_PIXELS
from hytas.decide.records import HeldOut
from hytas.errors import InputError
from hytas.run.context import Run
from hytas.run.folder import read_json
from hytas.run.prepared import PreparedData
from hytas.run.soft_labels import ROUNDS, round_recipe
from hytas.run.start import Scratch
from hytas.spaces.names import linear_architecture, network_of
from hytas.store import Store
from hytas.train import Recipe, logits_of
from hytas.train.fit import Fit, Fitted, begin_with
from hytas.train.loop import Watch
from hytas.types import Pixels
from hytas.workers import WorkersLike, open_workers
from hytas.workers.backends import MOST_SENT_BYTES

MOST_PIXELS = 5000
"""Held-out pixels of a record that fit a temperature; one number needs no more."""
HELD_OUT, NEIGHBOURS, UNLABELLED = "held out", "neighbours", "unlabelled"


class Fold(NamedTuple):
    """The fits on one fold, and the pixels that are held out from them.

    Attributes:
        compared: flat indices of the held-out pixels that smoothing is compared on.
        first: of the winner's architecture.
        last: after self-training; `first` without it.
        linear: of the networks in closed form.
    """

    compared: Pixels
    first: Fit
    last: Fit
    linear: tuple[Fit, ...]


def first_fit(run: Run, trained: Pixels, watched: Pixels, held_out: Pixels) -> Fit:
    """Return a fit of the run's architecture by its recipe.

    A teacher that was trained on held-out pixels does not take part.
    """
    context, (_, recipe) = run.context, run.recipe
    architecture = read_json(run.choice.architecture)
    if isinstance(context.origin, Scratch):  # a mean is fitted in parts
        architecture = network_of(architecture)
    teacher = context.teacher
    taught = teacher is not None and not np.intersect1d(teacher.seen, held_out).size
    return Fit(architecture, recipe, context.config.seed, trained, watched, taught=taught)


def self_training_after(first: Fit, logits: Mapping[str, Pixels]) -> Fit:
    """Return the last round of self-training that follows a fit.

    Args:
        logits: pixels whose logits its result holds.
    """
    recipe, fit = round_recipe(first.recipe, len(first.trained)), first
    for number in range(ROUNDS):
        # Another seed in each round: other pixels, and other noise on the labelled ones.
        seed = int(np.random.SeedSequence([first.seed, number]).generate_state(1)[0])
        fit = Fit(
            first.architecture,
            recipe,
            seed,
            first.trained,
            first.trained[:0],
            start=fit,
            self_trains=True,
            logits=logits if number == ROUNDS - 1 else {},
        )
    return fit


def winner_fit(run: Run, self_trains: bool) -> Fit:
    """Return the final training of a run; its end, if self-training follows."""
    context = run.context
    if context.holds_out_validation:  # the record of its validation pixels is its own
        (fold,), _ = folds_of(run)
        return fold.last if self_trains else fold.first
    first = first_fit(run, *context.final_pixels, context.data.split.test)
    return self_training_after(first, {}) if self_trains else first


def folds_of(run: Run) -> tuple[list[Fold], int]:
    """Return the fits whose results decide for the winner of a run; none with few pixels.

    The second value is how many pixels could be held out.

    A network is too confident on pixels that it was trained on. Where the final training uses all
    labelled pixels, its architecture is also trained without the pixels of each fold
    (`Split.folds_like_test`). No label of a test pixel is read. A teacher that was trained on
    pixels of a fold does not teach there.
    """
    context = run.context
    if context.holds_out_validation:
        trained, watched = context.final_pixels
        return [_fold(run, trained, watched, watched)], len(watched)
    run = run.decides
    pairs = context.folds()
    pixels = sum(len(held_out) for _, held_out in pairs)
    if pixels < LEAST_PIXELS:
        return [], pixels
    return [_fold(run, trained, trained[:0], held_out) for trained, held_out in pairs], pixels


def _fold(run: Run, trained: Pixels, watched: Pixels, held_out: Pixels) -> Fold:
    data, seed = run.context.data, run.context.config.seed
    compared, neighbours = data.with_neighbours(held_out)
    voting = data.pixels_that_vote(seed)
    groups = {
        HELD_OUT: _some(held_out),
        NEIGHBOURS: neighbours,
        UNLABELLED: held_out[:0] if voting is None else voting.pixels,
    }
    first = replace(first_fit(run, trained, watched, held_out), logits=groups)
    last = first if run.no_self_training else self_training_after(first, groups)
    linear = tuple(replace(linear_fit(fit, trained), logits=groups) for fit in run.context.fits)
    return Fold(compared, first, last, linear)


def linear_fit(fit: str, trained: Pixels) -> Fit:
    """Return the fit of a network in closed form, which no seed changes."""
    return Fit(linear_architecture(fit), Recipe(), 0, trained, trained[:0])


def fit_all(
    run: Run,
    fits: Sequence[Fit],
    workers: WorkersLike,
    what: str,
    watch: Watch = Watch(),
    beside: Sequence[Fit] = (),
) -> None:
    """Do fits of a run, in parallel where there are workers.

    Args:
        what: the fits are, for a line of the log.
        watch: follows a fit in this process.
        beside: further fits, which are done beside these where there are workers.

    Raises:
        OSError: memory is too small for a fit.
    """
    store, source, report = run.store, run.context.source, run.report
    if all(store.get(fit, weights=True) is not None for fit in fits):
        return
    on_cpu = source.device.type == "cpu"
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=source.patch_bytes) as pool:
        sent = None
        if pool.elsewhere:
            fits = [*beside, *fits]
            report.line(f"{what} in parallel: {pool.name}")
            fits_memory = source.scene_bytes + source.patch_bytes <= MOST_SENT_BYTES
            sent = source.packed(with_data=pool.shares_memory and fits_memory)

        def pixels(done: int, total: int) -> None:
            report.pixels("train", done, total)

        shown = pixels if pool.elsewhere or len(fits) > 1 else None
        for _, fitted in store.run(
            fits, pool, sent=sent, weights=True, watch=watch, progress=shown
        ):
            if fitted.lacks_memory:
                raise OSError(f"{what}: {fitted.reason}")


def result_of(run: Run, fit: Fit) -> Fitted:
    """Return what a fit of the run gave.

    Raises:
        DivergedError: its training failed.
        InputError: it has not been done.
    """
    if (fitted := run.store.get(fit)) is None:
        raise InputError(run.store.folder, rule="lacks a result of the final training")
    _ = fitted.done
    return fitted


def network_after(store: Store, fit: Fit) -> nn.Module:
    """Return the network of a fit that has been done, with its weights."""
    network = store.source.network(fit)
    assert isinstance(network, nn.Module)
    begin_with(network, store.files(fit).weights)
    return network


def records_of(run: Run) -> list[HeldOut]:
    """Return the records that decide for the winner of a run.

    Raises:
        DivergedError: a training of the winner's architecture failed.
        InputError: a fit has not been done.
    """
    return [_record(run, fold) for fold in folds_of(run)[0]]


def _record(run: Run, fold: Fold) -> HeldOut:
    data, first = run.context.data, fold.first
    logits = result_of(run, first).logits
    pixels, neighbours, unlabelled = first.logits.values()
    linear = [result_of(run, fit).logits for fit in fold.linear]
    whole = [np.concatenate([one[name] for name in first.logits]) for one in linear]
    record = HeldOut(
        first.trained,
        pixels,
        data.task.coded(data.targets(pixels)),
        fold.compared,
        data.targets(fold.compared),
        neighbours,
        logits[HELD_OUT],
        logits[NEIGHBOURS],
        unlabelled=unlabelled,
        unlabelled_logits=logits[UNLABELLED],
        linear=np.stack(whole) if whole else np.zeros((0, 0, 1), np.float32),
        task=data.task,
    )
    after = None if fold.last is first else run.store.get(fold.last)
    if after is None or after.reason:  # a self-training that diverges is not used
        return record
    return replace(
        record,
        logits_after=after.logits[HELD_OUT],
        neighbour_logits_after=after.logits[NEIGHBOURS],
        unlabelled_logits_after=after.logits[UNLABELLED],
    )


def observed(
    network: nn.Module, data: PreparedData, trained: Pixels, held_out: Pixels, device: torch.device
) -> HeldOut:
    """Return the record of a network that was trained on some pixels and not on others."""
    pixels = _some(held_out)
    compared, neighbours = data.with_neighbours(held_out)
    own, near = (logits_of(network, data.unlabelled(each), device) for each in (pixels, neighbours))
    targets, of_compared = data.targets(pixels), data.targets(compared)
    return HeldOut(trained, pixels, targets, compared, of_compared, neighbours, own, near)


def _some(pixels: Pixels) -> Pixels:
    """Return at most `MOST_PIXELS` of the pixels, evenly spread."""
    if len(pixels) <= MOST_PIXELS:
        return pixels
    return pixels[np.linspace(0, len(pixels) - 1, MOST_PIXELS).astype(np.int64)]
