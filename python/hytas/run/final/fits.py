"""Do the fits of a final training, and read what they gave."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from hytas.decide.records import HeldOut
from hytas.errors import InputError
from hytas.run.final.task import HELD_OUT, NEIGHBOURS, UNLABELLED, FinalTask, Fold, some
from hytas.run.prepared import PreparedData
from hytas.run.progress import Report
from hytas.store import Store
from hytas.train import logits_of
from hytas.train.fit import Fit, Fitted, begin_with
from hytas.train.loop import Watch
from hytas.types import Pixels
from hytas.workers import open_workers
from hytas.workers.backends import MOST_SENT_BYTES


def fit_all(
    task: FinalTask,
    fits: Sequence[Fit],
    report: Report,
    what: str,
    watch: Watch = Watch(),
    beside: Sequence[Fit] = (),
) -> None:
    """Do fits of a task, in parallel where there are workers.

    Args:
        what: the fits are, for a line of the log.
        watch: follows a fit in this process.
        beside: further fits, which are done beside these where there are workers.

    Raises:
        OSError: memory is too small for a fit.
    """
    store, source = task.store, task.source
    if all(store.get(fit, weights=True) is not None for fit in fits):
        return
    on_cpu = source.device.type == "cpu"
    with open_workers(task.workers, on_cpu=on_cpu, sent_bytes=source.patch_bytes) as pool:
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


def result_of(store: Store, fit: Fit) -> Fitted:
    """Return what a fit gave.

    Raises:
        DivergedError: its training failed.
        InputError: it has not been done.
    """
    if (fitted := store.get(fit)) is None:
        raise InputError(store.folder, rule="lacks a result of the final training")
    _ = fitted.done
    return fitted


def network_after(store: Store, fit: Fit) -> nn.Module:
    """Return the network of a fit that has been done, with its weights."""
    network = store.source.network(fit)
    assert isinstance(network, nn.Module)
    begin_with(network, store.files(fit).weights)
    return network


def records_of(task: FinalTask) -> list[HeldOut]:
    """Return the records that decide for the winner of a run.

    Raises:
        DivergedError: a training of the winner's architecture failed.
        InputError: a fit has not been done.
    """
    return [record_of(task.data, task.store, fold) for fold in task.folds]


def record_of(data: PreparedData, store: Store, fold: Fold) -> HeldOut:
    """Return the record of the pixels that are held out from a fold, whose fits have been done."""
    first = fold.first
    logits = result_of(store, first).logits
    pixels, neighbours, unlabelled = first.logits.values()
    linear = [result_of(store, fit).logits for fit in fold.linear]
    whole = [np.concatenate([one[name] for name in (HELD_OUT, NEIGHBOURS)]) for one in linear]
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
    after = None if fold.last is first else store.get(fold.last)
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
    pixels = some(held_out)
    compared, neighbours = data.with_neighbours(held_out)
    own, near = (logits_of(network, data.unlabelled(each), device) for each in (pixels, neighbours))
    targets, of_compared = data.targets(pixels), data.targets(compared)
    return HeldOut(trained, pixels, targets, compared, of_compared, neighbours, own, near)
