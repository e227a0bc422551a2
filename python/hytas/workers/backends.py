"""Open workers by the value of `workers`: processes, an executor, Ray or Slurm."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hytas.errors import InputError
from hytas.workers.base import ExecutorWorkers, OneByOne, Workers, facts_here

if TYPE_CHECKING:
    import torch

    from hytas.workers.local import LocalProcesses

MOST_SENT_BYTES = 2**30
"""Most data that is sent to other processes; with more, one process reads it as needed."""
MOST_PROCESSES = 1024
MOST_SPARE = 4
"""Processes that work besides those of a stage: two methods are fitted, on a few folds."""
LOCAL = ("local", "")
"""Texts for one process a core."""
GPU_BYTES = 8 * 2**30
"""Free GPU memory for each process. A small network leaves most of a GPU idle: on an H200
four processes trained 3.3 times as many steps a second as one, and twelve 5.3 times
(docs/measured.md)."""

WorkersLike = str | int | Executor | Workers | None
"""A text of `workers`, a number of processes, an executor, or None for one process a core."""


def worker_count(on_cpu: bool, sent_bytes: int, shared_gpu: torch.device | None = None) -> int:
    """Return the number of parallel processes on this machine; 1 is this process.

    It is the number of cores, or OMP_NUM_THREADS. On a GPU it is 1, unless calls may share the GPU:
    then there is a process for every `GPU_BYTES` of its free memory, up to the number of cores.

    Args:
        on_cpu: whether the work runs on a CPU.
        sent_bytes: size of the data that each process needs.
        shared_gpu: the GPU that calls may share.
    """
    gpu = shared_gpu is not None and shared_gpu.type == "cuda"
    if not (on_cpu or gpu) or sent_bytes > MOST_SENT_BYTES:
        return 1
    import torch
    from joblib import cpu_count

    # torch counts the cores of the machine, joblib the cores of the container.
    count: int = min(torch.get_num_threads(), cpu_count())
    if not gpu:
        return count
    torch.cuda.empty_cache()  # release cached memory to other processes
    free, _ = torch.cuda.mem_get_info(shared_gpu)
    return max(1, min(count, free // GPU_BYTES))


def check_workers(text: str | None) -> None:
    """Check a text of `workers`, without starting any.

    Raises:
        InputError: an unknown backend, or a wrong address or setting.
    """
    if text is None or text == "local":
        return
    backend, rest = _parts(text)
    if text.endswith(":"):
        raise InputError("workers", text, "an address or settings needed after the colon")
    if backend not in BACKENDS and not (text.isdecimal() and 1 <= int(text) <= MOST_PROCESSES):
        raise InputError(
            "workers",
            text,
            f"must be local, a number of processes up to {MOST_PROCESSES}, {', '.join(BACKENDS)}"
            ", ray://HOST:PORT or slurm:NAME=VALUE,...",
        )
    if backend == "slurm":
        from hytas.workers.slurm import parse_settings

        parse_settings(rest)
    if backend == "ray":
        from hytas.workers.ray_cluster import parse_address

        parse_address(rest)


def _parts(text: str) -> tuple[str, str]:
    """Return the backend, and its address or settings; for ray://HOST:PORT the whole text."""
    backend, _, rest = text.partition(":")
    return backend, text if rest.startswith("//") else rest


@contextmanager
def open_workers(
    named: WorkersLike,
    *,
    on_cpu: bool = True,
    sent_bytes: int = 0,
    shared_gpu: torch.device | None = None,
) -> Iterator[Workers]:
    """Open workers, and end what was started; workers and executors that are given stay open.

    Args:
        named: see `WorkersLike`.
        on_cpu: whether the work runs on a CPU; if not, each call on a cluster gets a GPU.
        sent_bytes: size of the data that each local process needs.
        shared_gpu: the GPU that local processes may share.

    Raises:
        InputError: unknown or unavailable workers, or workers of another version.
    """
    if isinstance(named, Workers):
        too_large = named.shares_memory and sent_bytes > MOST_SENT_BYTES
        yield OneByOne() if too_large else named
        return
    with _opened(named, on_cpu, sent_bytes, shared_gpu) as workers:
        yield workers


def load_server(named: WorkersLike) -> None:
    """Let the server that processes are forked from load torch, if a run has processes."""
    if (_local_count(named, True, 0, None) or 0) > 1:
        from hytas.workers.local import start_server

        start_server()


@contextmanager
def shared_workers(named: WorkersLike, device: torch.device) -> Iterator[LocalProcesses | None]:
    """Yield the processes that train on the GPU of a run, for all its stages.

    None without a GPU, or with workers of other machines: each stage then opens its own by `named`.
    """
    count = _local_count(named, False, 0, device) if device.type == "cuda" else None
    if count is None or count <= 1:
        yield None
        return
    from hytas.workers.local import LocalProcesses

    with LocalProcesses(count, str(device)) as processes:
        yield processes


def spare_processes(named: WorkersLike, sent_bytes: int) -> LocalProcesses | None:
    """Return processes for calls whose results are needed later; None if there are none to spare.

    Args:
        sent_bytes: size of the data that each process needs.
    """
    from hytas.workers.local import LocalProcesses

    if isinstance(named, LocalProcesses):
        count = named.count
    else:
        count = _local_count(named, True, sent_bytes, None) or 1
    if count <= 1 or sent_bytes > MOST_SENT_BYTES:
        return None
    return LocalProcesses(min(count // 2, MOST_SPARE))


def _local_count(
    named: WorkersLike, on_cpu: bool, sent_bytes: int, shared_gpu: torch.device | None
) -> int | None:
    """Return the number of processes of this machine; None for other workers."""
    if named is None or named in LOCAL:
        return worker_count(on_cpu, sent_bytes, shared_gpu)
    if isinstance(named, int) or (isinstance(named, str) and named.isdecimal()):
        check_workers(str(named))
        return int(named)
    return None


def _opened(
    named: str | int | Executor | None,
    on_cpu: bool,
    sent_bytes: int,
    shared_gpu: torch.device | None,
) -> Workers:
    if isinstance(named, ThreadPoolExecutor):
        raise InputError(
            "workers", rule="threads share torch's random numbers", hint="give processes"
        )
    if isinstance(named, Executor):
        return ExecutorWorkers(named)
    count = _local_count(named, on_cpu, sent_bytes, shared_gpu)
    if count is None:
        assert isinstance(named, str)
        check_workers(named)
        backend, rest = _parts(named)
        return BACKENDS[backend](rest, 0 if on_cpu else 1)
    if count <= 1:
        return OneByOne()
    from hytas.workers.local import LocalProcesses

    return LocalProcesses(count)


def _ray(address: str, gpus: int) -> Workers:
    from hytas.workers.ray_cluster import RayWorkers

    return RayWorkers(address or None, gpus)


def _slurm(settings: str, gpus: int) -> Workers:
    from hytas.workers.slurm import SlurmWorkers

    return SlurmWorkers(settings)


BACKENDS: dict[str, Callable[[str, int], Workers]] = {"ray": _ray, "slurm": _slurm}
"""Name -> function of (address or settings, GPUs of a call) that returns workers."""


def available_backends() -> dict[str, str]:
    """Return backend -> "installed", or the command that installs it."""
    from importlib.util import find_spec

    packages = {"ray": "ray", "slurm": "submitit"}
    installed = {
        name: "installed" if find_spec(package) else f"pip install 'hytas[{name}]'"
        for name, package in packages.items()
    }
    return {"local": f"{os.cpu_count()} cores", **installed}


def probe_backends() -> dict[str, str]:
    """Run a small task on each backend; return backend -> its result or error."""
    results = {}
    for name in ("local", *BACKENDS):
        try:
            with open_workers("2" if name == "local" else name) as workers:
                list(workers.run(facts_here, [()], 1))
                results[name] = f"works, {workers.count} at once"
        except (InputError, OSError) as error:
            results[name] = str(error)
    return {**results, "local": results["local"].replace("2 at once", f"{os.cpu_count()} cores")}
