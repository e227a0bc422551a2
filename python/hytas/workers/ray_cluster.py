"""Workers of a Ray cluster; without an address, Ray starts on this machine."""

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

from hytas.errors import InputError, one_line
from hytas.workers.base import (
    CallArguments,
    ExecutorWorkers,
    Loaded,
    Shared,
    WorkerFacts,
    check_facts,
    environment,
    facts_here,
)

T = TypeVar("T")
RETRIES = 10
"""Number of retries of a call whose worker is lost."""
HERE = "local"  # Ray's name for a cluster that starts on this machine
CONNECT_SECONDS = 10
ATTEMPTS = "RAY_gcs_server_port_wait_time_s"
ADDRESS = re.compile(r"(ray://)?(?P<host>[^\s/:@\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")


class RayExecutor(Executor):
    """Ray tasks as a `concurrent.futures.Executor`.

    Args:
        gpus: GPUs that each call needs.
    """

    def __init__(self, gpus: int = 0) -> None:
        import ray

        self._ray = ray
        self._task: Any = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(_call)
        self._facts = facts_here()
        self._waiting: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Hand a call to the cluster; if its future is cancelled, it ends, even if it runs."""
        reference = self._task.options(name=fn.__name__).remote(self._facts, fn, args, kwargs)
        future: Future[T] = Future()

        def settle(done: Future[T]) -> None:
            self._waiting.discard(future)
            if not future.set_running_or_notify_cancel():
                return
            if error := done.exception():
                future.set_exception(error)
            else:
                future.set_result(done.result())

        def cancel(ended: Future[T]) -> None:
            if ended.cancelled():
                self._ray.cancel(reference, force=True)

        self._waiting.add(future)
        future.add_done_callback(cancel)
        reference.future().add_done_callback(settle)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel waiting and running calls."""
        if cancel_futures:
            for future in list(self._waiting):
                future.cancel()


class RayWorkers(ExecutorWorkers):
    """Runs calls on a Ray cluster. Ray gives a call that was lost to another worker.

    Args:
        address: `ray://host:port`, `host:port` or "auto"; None takes `RAY_ADDRESS`, or starts Ray
            on this machine.
        gpus: GPUs that each call needs.
    """

    def __init__(self, address: str | None = None, gpus: int = 0) -> None:
        try:
            import ray
        except ImportError:
            hint = "pip install 'hytas[ray]'"
            raise InputError("workers", "ray", "Ray is not installed", hint) from None
        self._ray: Any = ray
        self._own = not ray.is_initialized()
        address = address or os.environ.get("RAY_ADDRESS") or HERE
        if self._own:
            _connect(ray, address)
        self._unit, self._each = ("GPU", gpus) if gpus else ("CPU", 1)
        try:
            if not self._capacity():
                raise InputError("workers", "ray", f"the cluster has no {self._unit} to work on")
            _check_nodes(ray)
        except BaseException:
            self._leave()
            raise
        # Machines that join later may not see the files of this one.
        super().__init__(RayExecutor(gpus), 1, "Ray", self._own and address == HERE)

    @property
    def count(self) -> int:
        """Calls that run at once, by the current size of the cluster."""
        return max(1, self._capacity())

    def close(self) -> None:
        """Cancel waiting calls, and leave the cluster."""
        self.executor.shutdown(cancel_futures=True)
        self._leave()

    def share(self, value: T) -> Shared[T]:
        """Put a value into the object store."""
        reference = self._ray.put(value)
        return Loaded(reference.hex(), partial(_fetched, reference))

    def run(self, work: Callable[..., T], jobs: Iterable[CallArguments], count: int) -> Iterator[T]:
        """Call `work` with each of the jobs.

        Raises:
            OSError: a call lost its worker more often than it is given to another one, or the
                cluster is gone.
        """
        try:
            yield from super().run(work, jobs, count)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, Exception) else error) from None
        except self._ray.exceptions.RayError as error:
            raise OSError(
                f"workers ray: the cluster, or the worker of a call for the {RETRIES + 1}th time, "
                f"was lost; the same command continues from here: {one_line(error)}"
            ) from None

    def _capacity(self) -> int:
        return int(self._ray.cluster_resources().get(self._unit, 0)) // self._each

    def _leave(self) -> None:
        if self._own:
            self._ray.shutdown()


def parse_address(address: str) -> tuple[str, int] | None:
    """Return the host and the port of an address; None without a host, such as "auto"."""
    if address in ("", "auto", HERE):
        return None
    match = ADDRESS.fullmatch(address)
    if not match or not 0 < int(match["port"]) < 2**16:
        rule = f"{address!r}: must be ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT"
        raise InputError("workers", "ray", rule)
    return match["host"].strip("[]"), int(match["port"])


def _connect(ray: Any, address: str) -> None:
    named = parse_address(address)
    try:
        if named:
            # Ray itself would try for twenty minutes.
            socket.create_connection(named, CONNECT_SECONDS).close()
        # One attempt to reach the head node (40 s), not twenty.
        attempts = {} if named is None else {ATTEMPTS: os.environ.get(ATTEMPTS, "1")}
        with environment(attempts):
            ray.init(
                address=address,
                include_dashboard=False if address == HERE else None,
                logging_level="error",
                log_to_driver=True,
                configure_logging=False,
            )
    except Exception as error:  # Ray raises it on a busy machine
        hint = "; if it has a token, set RAY_AUTH_MODE=token" if named else ""
        raise InputError(
            "workers", "ray", f"no cluster answers at {address}: {one_line(error)}{hint}"
        ) from None


def _check_nodes(ray: Any) -> None:
    """Refuse a cluster with a machine of another version.

    A machine that joins later is checked by its first call.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe = ray.remote(num_cpus=0, max_retries=RETRIES)(facts_here)
    # Soft, because a machine may leave before it replies.
    nodes = [
        NodeAffinitySchedulingStrategy(node["NodeID"], soft=True)
        for node in ray.nodes()
        if node["Alive"]
    ]
    try:
        facts = ray.get([probe.options(scheduling_strategy=node).remote() for node in nodes])
    except ray.exceptions.RayError as error:
        raise InputError(
            "workers", "ray", f"a machine cannot run hytas: {one_line(error)}"
        ) from None
    check_facts(facts, "ray")


def _fetched(reference: Any) -> Any:
    """Return a value of Ray's object store."""
    import ray

    return ray.get(reference)


def _call(
    driver: WorkerFacts, work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> T:
    check_facts([facts_here()], "ray", driver)
    return work(*args, **kwargs)
