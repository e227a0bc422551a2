"""The interface of workers, which run calls in parallel."""

import functools
import os
import platform
import socket
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar
from uuid import uuid4

from hytas.errors import SLOWER, InputError, warn_of_slower_work
from hytas.plugins import carried

T = TypeVar("T")
V = TypeVar("V", covariant=True)

CallArguments = tuple[Any, ...]
"""The arguments of one call."""


class Shared(Protocol[V]):
    """A value that many calls read. It is sent to a worker once."""

    def get(self) -> V:
        """Return the value; in a worker, too."""


@dataclass(eq=False)
class Pickled(Generic[T]):
    """A shared value that is pickled with the calls."""

    value: T
    token: str = field(default_factory=lambda: uuid4().hex)

    def get(self) -> T:
        """Return the value; all calls of a worker get the same object."""
        return self.value

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, value=once(state["token"], lambda: state["value"]))


@dataclass(frozen=True, eq=False)
class Loaded(Generic[T]):
    """A shared value that each worker loads once.

    Attributes:
        load: returns it; in a worker, too.
    """

    key: str
    load: Callable[[], T]

    def get(self) -> T:
        """Return the value."""
        return once(self.key, self.load)


_MOST_CACHED = 8
_CACHE: OrderedDict[str, Any] = OrderedDict()


def once(token: str, load: Callable[[], T]) -> T:
    """Return a value of this process by its token; load it if it is not cached.

    Results that the value caches itself, such as the weight pool of an evaluator, then serve all
    calls of a worker.
    """
    if token not in _CACHE:
        _CACHE[token] = load()
        while len(_CACHE) > _MOST_CACHED:
            _CACHE.popitem(last=False)
    _CACHE.move_to_end(token)
    value: T = _CACHE[token]
    return value


@dataclass
class Spent:
    """The time of calls in other processes, for the driver that reads their results.

    Attributes:
        cpu: seconds of processors.
        away: seconds of calls on other machines, each of which has a GPU where the device is one.
    """

    cpu: float = 0.0
    away: float = 0.0


SPENT = Spent()
"""The sum of all calls that this process has read the results of."""


class CallResult(NamedTuple, Generic[T]):
    """What a call in another process gives.

    Attributes:
        seconds, cpu: that it took, and seconds of processors.
        slower: why it took longer than it might; or "".
    """

    value: T
    seconds: float
    cpu: float
    slower: str = ""


@dataclass(frozen=True)
class Timed(Generic[T]):
    """A function whose calls return a `Result`."""

    work: Callable[..., T]

    @property
    def __name__(self) -> str:
        return self.work.__name__

    def __call__(self, *job: Any) -> CallResult[T]:
        """Call `work`."""
        began, cpu = time.monotonic(), time.process_time()
        reasons: list[str] = []
        token = SLOWER.set(reasons)
        try:
            value = self.work(*job)
        finally:
            SLOWER.reset(token)
        seconds = time.monotonic() - began
        return CallResult(value, seconds, time.process_time() - cpu, "".join(reasons[:1]))


def counted(result: CallResult[T], *, here: bool) -> T:
    """Return the value of a call, and add its seconds to `SPENT`; `here` is this machine."""
    SPENT.cpu += result.cpu
    SPENT.away += 0.0 if here else result.seconds
    if result.slower:
        warn_of_slower_work(result.slower)
    return result.value


class Workers(ABC):
    """Runs calls in parallel, and yields their results in the order of the jobs.

    So the results do not depend on the number of workers. As a context manager it ends what it
    started.

    Attributes:
        name: for messages.
        sees_files: whether workers read and write the files of this machine.
        elsewhere: whether calls run in other processes.
        shares_memory: whether calls share the memory of this machine.
    """

    name: str
    _count: int = 1
    sees_files: bool = True
    elsewhere: bool = True
    shares_memory: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def count(self) -> int:
        """Calls that run at once, approximately; the size of a cluster changes."""
        return self._count

    def close(self) -> None:  # noqa: B027 # some have nothing to end
        """End what was started."""

    def share(self, value: T) -> Shared[T]:
        """Return a handle of a value, for the arguments of many jobs."""
        return Pickled(value)

    @abstractmethod
    def run(self, work: Callable[..., T], jobs: Iterable[CallArguments], count: int) -> Iterator[T]:
        """Call `work` with each of the jobs, and yield the results in their order.

        Args:
            work: a function of a module, which workers can import.
            jobs: its arguments; they are made one after another, in this process.

        Raises:
            OSError: a worker was lost.
            Exception: what `work` raised.
        """


class OneByOne(Workers):
    """Runs calls in this process, one after another."""

    name, elsewhere = "this process", False

    def run(self, work: Callable[..., T], jobs: Iterable[CallArguments], count: int) -> Iterator[T]:
        """Call `work` with each of the jobs."""
        for job in jobs:
            yield work(*job)


class ExecutorWorkers(Workers):
    """Runs calls by any `concurrent.futures.Executor`, which stays the caller's.

    Args:
        executor: of processes, or of machines whose hytas is of this version.
        count: calls that it runs at once.
        name: for messages.
        sees_files: whether its workers read and write the files of this machine.
    """

    def __init__(
        self,
        executor: Executor,
        count: int | None = None,
        name: str = "an executor",
        sees_files: bool = True,
    ) -> None:
        self.executor, self.name, self.sees_files = executor, name, sees_files
        self._count = count or os.cpu_count() or 1

    def run(self, work: Callable[..., T], jobs: Iterable[CallArguments], count: int) -> Iterator[T]:
        """Call `work` with each of the jobs; twice `count` of them are under way or wait."""
        rest, ahead = iter(jobs), deque[Future[CallResult[T]]]()
        timed = carried(Timed(work))

        def submit() -> None:
            """Submit jobs up to twice the current number of workers."""
            for job in islice(rest, max(0, 2 * self.count - len(ahead))):
                ahead.append(self.executor.submit(timed, *job))

        submit()
        try:
            while ahead:
                result = counted(ahead.popleft().result(), here=self.shares_memory)
                submit()
                yield result
        except Exception:
            # Running calls may write files, which the caller may remove after an error.
            wait([future for future in ahead if not future.cancel()])
            raise
        finally:
            for future in ahead:
                future.cancel()


@contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment, for processes that begin in the context."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


WorkerFacts = dict[str, str]


def facts_here() -> WorkerFacts:
    """Return the versions that driver and workers must share, and the host's name."""
    python = ".".join(platform.python_version_tuple()[:2])
    versions = {name: _version(name) for name in ("hytas", "torch")}
    return {"host": socket.gethostname(), "python": python, **versions}


_version = functools.cache(version)


def check_facts(
    workers: Iterable[WorkerFacts], backend: str, driver: WorkerFacts | None = None
) -> None:
    """Refuse workers of another version.

    Args:
        driver: facts that they must have; None takes those of this process.
    """
    driver = driver or facts_here()
    for facts in workers:
        for name in ("hytas", "torch", "python"):
            if facts[name] != driver[name]:
                raise InputError(
                    "workers",
                    backend,
                    f"{facts['host']} has {name} {facts[name]}, and the machine of the command has "
                    f"{driver[name]}",
                    hint="both must have the same",
                )
