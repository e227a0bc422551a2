"""Processes of this machine, one a core, each with one thread."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor

from hytas.workers.seam import Job, Workers

IDLE_SECONDS = 30
"""After so long a worker process that has nothing to do ends."""
WATCH_SECONDS = 1
"""So often a worker process looks whether its parent is there still."""

T = TypeVar("T")


class Processes(Workers):
    """Runs calls in processes of this machine.

    They are joblib's "loky", which a program that uses it beside them finds shut down. If they
    stayed, they would share a core while they wait (seen on Linux, with two cores: the training
    after the race took three times as long), and each holds some 300 MB.

    Args:
        count: processes.
    """

    name, beside = "processes of this machine", True

    def __init__(self, count: int) -> None:
        self._count = count
        self._started = False

    def close(self) -> None:
        """End the processes."""
        if self._started:
            get_reusable_executor().shutdown(wait=True)

    def run(self, work: Callable[..., T], jobs: Iterable[Job], count: int) -> Iterator[T]:
        """Call `work` with each of the jobs.

        Every process has one thread, so a result does not depend on how many run beside it.

        Raises:
            OSError: a process was killed.
        """
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
                yield from Parallel(processes, return_as="generator")(
                    delayed(work)(*job) for job in jobs
                )
        except BrokenProcessPool:
            raise OSError(
                f"one of {processes} worker processes was killed, as where memory runs out: the "
                "same command goes on, and with OMP_NUM_THREADS=1 it works one after another"
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
