"""Trains networks side by side: one a core, each with one thread."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from numpy.typing import NDArray

from hytas.run.context import Pixels, RunContext
from hytas.train import LabelledPixels

MOST_BYTES = 2**30
"""Of patches that are sent to other processes; more are cut as they are needed, by one process."""
IDLE_SECONDS = 30
"""After so long a worker process that has nothing to do ends."""
WATCH_SECONDS = 1
"""So often a worker process looks whether its parent is there still."""

T = TypeVar("T")
Labelled = Callable[[Pixels], LabelledPixels]


@dataclass(frozen=True)
class _CutPatches:
    """Patches that were cut before: what `LabelledPixels` reads, in a form that can be sent.

    Attributes:
        pixels: flat indices (N,), ascending.
        patches: theirs (N, P, P, bands).
    """

    pixels: NDArray[np.int64]
    patches: NDArray[np.float32]

    def __call__(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.patches[np.searchsorted(self.pixels, chosen)]


def side_by_side(
    context: RunContext,
    work: Callable[..., T],
    count: int,
    jobs: Callable[[Labelled], Iterable[tuple[Any, ...]]],
) -> Iterator[T]:
    """What trainings give, in the order they end.

    On a CPU as many run at once as there are cores (OMP_NUM_THREADS, where it is set), each
    with one thread, so that a training is the same however many run beside it. A GPU trains one
    after another.

    Args:
        work: one training.
        count: of the jobs.
        jobs: makes the arguments of each, one job after another; it is given what reads labelled
            pixels, in a form that can be sent to another process where there are several.

    Raises:
        OSError: a process that trained was killed.
    """
    # One training alone goes to a process, too, where several would: its last digits may depend on
    # where it runs, and a race that goes on after a kill may have one left.
    workers = _workers(context, max(count, 2)) if count else 1
    if workers <= 1:
        for job in jobs(context.labelled):
            yield work(*job)
        return
    try:
        with parallel_config(
            "loky",
            inner_max_num_threads=1,
            idle_worker_timeout=IDLE_SECONDS,
            initializer=_end_with,
            initargs=(os.getpid(),),
        ):
            yield from Parallel(workers, return_as="generator_unordered")(
                delayed(work)(*job) for job in jobs(_sendable(context))
            )
    except BrokenProcessPool:
        raise OSError(
            f"one of {workers} training processes was killed, as where memory runs out: the "
            "same command goes on, and with OMP_NUM_THREADS=1 it trains one after another"
        ) from None


def _end_with(parent: int) -> None:
    """End this process when its parent has, however that ended.

    A parent that was killed cannot end its workers, and one that waits for the rest of a message
    would wait for ever, for it holds the other end of that pipe too.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _sendable(context: RunContext) -> Labelled:
    """Reads labelled pixels of training and validation, from patches that were cut at once."""
    known = context.split.learnable
    cut = _CutPatches(known, context.labelled(known).patches(known))
    return lambda pixels: replace(context.labelled(pixels), patches=cut)


def end_workers(context: RunContext) -> None:
    """End the processes that trained, which otherwise wait for more: those of joblib's "loky",
    which a program that uses it beside a race finds shut down.

    While they wait, the threads of this process share a core (seen on Linux, with two cores:
    retraining took three times as long), and each holds some 300 MB.
    """
    if _workers(context, 2) > 1:
        get_reusable_executor().shutdown(wait=True)


def _workers(context: RunContext, trials: int) -> int:
    """Processes to train in; 1 is this one."""
    pixels = len(context.split.learnable)
    patches = 4 * pixels * context.config.patch_size**2 * context.shape.bands  # bytes
    if context.device.type != "cpu" or patches > MOST_BYTES:
        return 1
    # torch counts the cores of the machine, joblib those that a container may use.
    cores: int = cpu_count()
    return min(torch.get_num_threads(), cores, trials)
