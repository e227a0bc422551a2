"""Processes of this machine, one a core, each with one thread.

They are forked from a server that has torch and hytas loaded: one start takes a few seconds, each
process some milliseconds. `ProcessPoolExecutor` runs them.
"""

import mmap
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing import connection, forkserver, parent_process
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from cloudpickle import dumps

from hytas.plugins import carried
from hytas.workers.base import (
    CallArguments,
    CallResult,
    ExecutorWorkers,
    Loaded,
    Shared,
    Timed,
    Workers,
    counted,
    environment,
)

PRELOADED = ["torch", "hytas.proxies.evaluator", "hytas.race.task", "hytas.train.loop"]
THREADS = [f"{name}_NUM_THREADS" for name in ("OMP", "MKL", "OPENBLAS", "BLIS", "NUMEXPR")]
"""Settings of libraries that would start threads before a process forks."""
ALLOCATOR = {"hugetlb": 1, "mmap_threshold": 1 << 25, "trim_threshold": 1 << 28}
"""Settings of glibc's malloc: pages of 2 MiB, where the system grants them, and freed memory that
serves the next training step. A step then takes up to 15 % less time (notes/decisions.md)."""
ALIGNED = 64
"""Bytes at a multiple of which an array begins."""

T = TypeVar("T")


class LocalProcesses(Workers):
    """Runs calls in processes of this machine, which end when it is closed."""

    name, shares_memory = "processes of this machine", True

    def __init__(self, count: int, device: str = "cpu") -> None:
        self._count, self._device = count, device
        self._context = _Context()
        self._executor: ProcessPoolExecutor | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._idle = True

    def close(self) -> None:
        """End the processes; running calls are killed."""
        self._stop()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def share(self, value: T) -> Shared[T]:
        """Write a value into a file that all processes map into their memory."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hytas-")
        with tempfile.NamedTemporaryFile(dir=self._folder.name, delete=False) as file:
            buffers: list[pickle.PickleBuffer] = []
            text = dumps(value, protocol=5, buffer_callback=buffers.append)
            parts = []
            for part in [text, *(buffer.raw() for buffer in buffers)]:
                file.seek(-file.tell() % ALIGNED, os.SEEK_CUR)
                parts.append((file.tell(), len(part)))
                file.write(part)
        return Loaded(file.name, partial(_read, file.name, parts))

    def run(self, work: Callable[..., T], jobs: Iterable[CallArguments], count: int) -> Iterator[T]:
        """Call `work` with each of the jobs.

        Every process has one thread, so a result does not depend on the number of processes.

        Raises:
            OSError: a process was killed.
        """
        # A single job also runs in a worker process: its last digits may depend on the process, and
        # a restarted race may have one training left.
        processes = min(self.count, max(count, 2))
        calls = ((dumps((work, job)),) for job in jobs)
        self._idle = False
        try:
            here = ExecutorWorkers(self._opened(), processes)
            here.shares_memory = True
            yield from here.run(_call, calls, count)
        except BrokenProcessPool:
            raise _lost(processes) from None
        except GeneratorExit:  # calls that no one waits for would go on, and write files
            self._stop()
            raise
        self._idle = True

    def start(self) -> None:
        """Let all processes start the device of the run, which takes seconds."""
        self.begin(start_device, [(self._device,)] * self.count)

    def begin(self, work: Callable[..., T], jobs: Iterable[CallArguments]) -> list[Callable[[], T]]:
        """Begin calls of `work`, and return for each a function that waits for its result.

        Such a function raises what `run` raises. Calls that no one waits for end with the workers.
        """
        self._idle, timed = False, carried(Timed(_call))
        try:
            calls = [self._opened().submit(timed, dumps((work, job))) for job in jobs]
        except BrokenProcessPool:
            raise _lost(self.count) from None
        return [partial(self._result, call) for call in calls]

    def _stop(self) -> None:
        if self._executor is not None:
            for process in () if self._idle else self._context.started:
                process.kill()
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor, self._context, self._idle = None, _Context(), True

    def _opened(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self.count, self._context, _begin, (dict(os.environ),)
            )
        return self._executor

    def _result(self, call: Future[CallResult[Any]]) -> Any:
        try:
            return counted(call.result(), here=True)
        except BrokenProcessPool:
            raise _lost(self.count) from None


_STARTED: list[float] = []
"""When this process started its server, by `time.monotonic()`."""


def start_server() -> None:
    """Start the server that processes are forked from, which loads torch meanwhile."""
    if _STARTED:
        return
    with _nameless_main(), _for_workers(), _no_interrupt():
        forkserver.set_forkserver_preload(PRELOADED)
        forkserver.ensure_running()
    _STARTED.append(time.monotonic())


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which would leave a traceback while they load torch."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def server_age() -> float:
    """Return the seconds since this process started its server; 0 if it has not."""
    return time.monotonic() - _STARTED[0] if _STARTED else 0.0


def _lost(processes: int) -> OSError:
    return OSError(
        f"one of {processes} worker processes was killed, as where memory runs out: the same "
        "command goes on, and fewer workers need less memory"
    )


def start_device(name: str) -> None:
    """Let this process start a GPU, which takes seconds."""
    import torch

    ones = torch.ones(8, 8, device=name)
    float((ones @ ones).sum())


def _read(path: str, parts: Sequence[tuple[int, int]]) -> Any:
    """Return the value in a file, whose arrays all processes share; parts are (offset, bytes)."""
    with Path(path).open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    text, *buffers = (whole[start : start + size] for start, size in parts)
    return pickle.loads(text, buffers=buffers)  # this process's parent wrote it


class _Process(ForkServerProcess):
    """A process that does not import the user's script, which may lack a `__main__` guard."""

    def start(self) -> None:
        """Start the process."""
        start_server()
        with _nameless_main(), _for_workers():
            super().start()


class _Context(ForkServerContext):
    """Starts processes from the server, and lists them."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Process] = []

    def Process(self, *args: Any, **kwargs: Any) -> _Process:  # type: ignore[override] # noqa: N802
        self.started.append(_Process(*args, **kwargs))
        return self.started[-1]


@contextmanager
def _nameless_main() -> Iterator[None]:
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _for_workers() -> AbstractContextManager[None]:
    """Set the environment of processes of one thread; it acts on processes that begin anew."""
    tunables = (f"glibc.malloc.{name}={value}" for name, value in ALLOCATOR.items())
    allocator = os.environ.get("GLIBC_TUNABLES", ":".join(tunables))
    return environment({**dict.fromkeys(THREADS, "1"), "GLIBC_TUNABLES": allocator})


def _begin(variables: dict[str, str]) -> None:
    """Prepare a worker process.

    It takes the environment of its parent, ignores Ctrl-C, and ends when its parent ends.
    """
    os.environ.update(variables)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _call(text: bytes) -> Any:
    work, job = pickle.loads(text)  # this process's parent wrote it
    return work(*job)
