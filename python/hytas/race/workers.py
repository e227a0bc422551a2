"""Processes that train side by side: one a core, each with one thread."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Self, TypeVar

import torch
from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor

MOST_BYTES = 2**30
"""Of data that is sent to other processes; more is read as it is needed, by one process."""
IDLE_SECONDS = 30
"""After so long a worker process that has nothing to do ends."""
WATCH_SECONDS = 1
"""So often a worker process looks whether its parent is there still."""

T = TypeVar("T")


def worker_count(device: torch.device, sent_bytes: int) -> int:
    """Return how many processes train side by side on `device`; 1 stands for this one.

    On a CPU there are as many as cores (OMP_NUM_THREADS, where it is set). A GPU trains one network
    after another.

    Args:
        device: where to train.
        sent_bytes: size of the data that each process needs.
    """
    if device.type != "cpu" or sent_bytes > MOST_BYTES:
        return 1
    # torch counts the cores of the machine, joblib those that a container may use.
    cores: int = cpu_count()
    return min(torch.get_num_threads(), cores)


class Workers:
    """Runs calls side by side in other processes, or one by one in this process if `count` is 1.

    Use as a context manager: the processes end with it. They are joblib's "loky", which a program
    that uses it beside a race finds shut down. If they stayed, they would share a core while they
    wait (seen on Linux, with two cores: the training after the race took three times as long), and
    each holds some 300 MB.

    Args:
        count: processes.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._started:
            get_reusable_executor().shutdown(wait=True)

    def run(
        self, work: Callable[..., T], jobs: Iterable[tuple[Any, ...]], count: int
    ) -> Iterator[T]:
        """Call `work` with each of the jobs, and yield the results in the order they are ready.

        Every process has one thread, so a result does not depend on how many run beside it.

        Args:
            work: a function of a module, which other processes can import.
            jobs: its arguments; they are made one after another, in this process.
            count: of the jobs, one or more.

        Raises:
            OSError: a process was killed.
        """
        if self.count <= 1:
            for job in jobs:
                yield work(*job)
            return
        # One job alone goes to a process, too: its last digits may depend on where it runs, and a
        # race that goes on after a kill may have one left.
        processes = min(self.count, max(count, 2))
        self._started = True
        try:
            with parallel_config(
                "loky",
                inner_max_num_threads=1,
                idle_worker_timeout=IDLE_SECONDS,
                initializer=_end_with,
                initargs=(os.getpid(),),
            ):
                yield from Parallel(processes, return_as="generator_unordered")(
                    delayed(work)(*job) for job in jobs
                )
        except BrokenProcessPool:
            raise OSError(
                f"one of {processes} training processes was killed, as where memory runs out: the "
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
