"""Workers of a Ray cluster; without an address, Ray starts on this machine."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from hytas.errors import InputError, one_line
from hytas.workers.probe import check_facts, facts_here
from hytas.workers.seam import ExecutorWorkers, Job, Shared, once

T = TypeVar("T")
RETRIES = 10
"""So often a call is given to another worker if its worker is lost."""
INSTALL = "workers ray: Ray is not installed; pip install 'hytas[ray]'"


@dataclass(frozen=True, eq=False)
class InStore(Generic[T]):
    """A value in Ray's object store."""

    reference: Any

    def get(self) -> T:
        """Return the value; a worker fetches it once."""
        import ray

        return once(self.reference.hex(), lambda: cast("T", ray.get(self.reference)))


class RayExecutor(Executor):
    """Ray tasks as a `concurrent.futures.Executor`.

    Args:
        gpus: GPUs that each call needs.
    """

    def __init__(self, gpus: int = 0) -> None:
        import ray

        self._ray = ray
        self._task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(_call)
        self._references: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Hand a call to the cluster."""
        reference = self._task.remote(fn, args, kwargs)
        future: Future[T] = reference.future()
        self._references[future] = reference
        future.add_done_callback(lambda done: self._references.pop(done, None))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take back what waits, or what is under way too."""
        if cancel_futures:
            for reference in list(self._references.values()):
                self._ray.cancel(reference, force=True)


class RayWorkers(ExecutorWorkers):
    """Runs calls on a Ray cluster. Ray gives a call that was lost to another worker.

    Args:
        address: `ray://host:port` or `host:port`; None takes `RAY_ADDRESS`, or starts Ray here.
        gpus: GPUs that each call needs.

    Raises:
        InputError: Ray is not installed, no cluster is at the address, or a worker has another
            version of hytas, torch or Python.
    """

    def __init__(self, address: str | None = None, gpus: int = 0) -> None:
        try:
            import ray
        except ImportError:
            raise InputError(INSTALL) from None
        self._ray, self._own = ray, not ray.is_initialized()
        if self._own:
            _connect(ray, address)
        try:
            nodes = [node for node in ray.nodes() if node["Alive"]]
            unit = "GPU" if gpus else "CPU"
            count = int(sum(node["Resources"].get(unit, 0) for node in nodes)) // max(1, gpus)
            if not count:
                raise InputError(f"workers ray: the cluster has no {unit} to work on")
            check_facts(_probe(ray, nodes), "ray")
        except BaseException:
            self._leave()
            raise
        hosts = {node["NodeManagerHostname"] for node in nodes}
        here = hosts == {facts_here()["host"]}
        super().__init__(RayExecutor(gpus), count, f"Ray ({len(nodes)} nodes)", here)

    def close(self) -> None:
        """Take back what waits, and leave the cluster."""
        self.executor.shutdown(cancel_futures=True)
        self._leave()

    def share(self, value: T) -> Shared[T]:
        """Put a value into the object store."""
        return InStore(self._ray.put(value))

    def run(self, work: Callable[..., T], jobs: Iterable[Job], count: int) -> Iterator[T]:
        """Call `work` with each of the jobs.

        Raises:
            OSError: a call lost its worker more often than it is given to another one.
        """
        lost = (
            self._ray.exceptions.WorkerCrashedError,
            self._ray.exceptions.NodeDiedError,
            self._ray.exceptions.OutOfMemoryError,
            self._ray.exceptions.RaySystemError,
        )
        try:
            yield from super().run(work, jobs, count)
        except lost as error:
            raise OSError(
                f"workers ray: a call lost its worker {RETRIES + 1} times: {one_line(error)}"
            ) from None
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, Exception) else error) from None

    def _leave(self) -> None:
        if self._own:
            self._ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    named = address or os.environ.get("RAY_ADDRESS")
    try:
        ray.init(
            address=address,
            include_dashboard=None if named else False,
            logging_level="error",
            log_to_driver=True,
            configure_logging=False,
        )
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"workers ray: no cluster answers at {named or 'this machine'}: {one_line(error)}"
        ) from None


def _probe(ray: Any, nodes: Iterable[Any]) -> list[dict[str, str]]:
    """Ask each node for its versions."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = ray.remote(num_cpus=0, max_retries=RETRIES)(facts_here)
    there = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
    found: list[dict[str, str]] = ray.get(
        [asked.options(scheduling_strategy=place).remote() for place in there]
    )
    return found


def _call(work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    return work(*args, **kwargs)
