"""From what a user names to workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hytas.errors import InputError
from hytas.workers.seam import ExecutorWorkers, OneByOne, Workers

if TYPE_CHECKING:
    import torch

MOST_BYTES = 2**30
"""Of data that is sent to other processes; more is read as it is needed, by one process."""
MOST_PROCESSES = 1024
GPU_BYTES = 8 * 2**30
"""Of a GPU's free memory for each process. A small network leaves most of a GPU idle: on an H200
four processes trained 3.3 times as many steps a second as one, and twelve 5.3 times
(docs/benchmarks/gpu.md)."""

Named = str | int | Executor | Workers | None
"""What stands for workers: a text of `workers`, a number of processes, an executor, or None for
one process a core."""


def worker_count(on_cpu: bool, sent_bytes: int, shared_gpu: torch.device | None = None) -> int:
    """Return how many processes of this machine work side by side; 1 stands for this one.

    There are as many as cores (OMP_NUM_THREADS, where it is set). A GPU does one call after
    another, unless calls may share it: then there is a process for every `GPU_BYTES` of its free
    memory, but no more than cores.

    Args:
        on_cpu: whether the work is done on a CPU.
        sent_bytes: size of the data that each process needs.
        shared_gpu: where calls may lack memory beside others.
    """
    gpu = shared_gpu is not None and shared_gpu.type == "cuda"
    if not (on_cpu or gpu) or sent_bytes > MOST_BYTES:
        return 1
    import torch
    from joblib import cpu_count

    # torch counts the cores of the machine, joblib those that a container may use.
    count: int = min(torch.get_num_threads(), cpu_count())
    if not gpu:
        return count
    torch.cuda.empty_cache()  # what this process keeps for later is free for others
    free, _ = torch.cuda.mem_get_info(shared_gpu)
    return max(1, min(count, free // GPU_BYTES))


def check_workers(text: str | None) -> None:
    """Refuse a text of `workers` that names nothing; nothing is started.

    Raises:
        InputError: naming what there is, or the address or setting that does not fit.
    """
    if text is None or text == "local":
        return
    engine, rest = _parts(text)
    if text.endswith(":"):
        raise InputError("workers", text, "an address or settings needed after the colon")
    if engine not in ENGINES and not (text.isdecimal() and 1 <= int(text) <= MOST_PROCESSES):
        raise InputError(
            "workers",
            text,
            f"must be local, a number of processes up to {MOST_PROCESSES}, {', '.join(ENGINES)}"
            ", ray://HOST:PORT or slurm:NAME=VALUE,...",
        )
    if engine == "slurm":
        from hytas.workers.slurm import parse_settings

        parse_settings(rest)
    if engine == "ray":
        from hytas.workers.ray_cluster import parse_address

        parse_address(rest)


def _parts(text: str) -> tuple[str, str]:
    """Return the engine, and its address or settings; those of ray://HOST:PORT are all of it."""
    engine, _, rest = text.partition(":")
    return engine, text if rest.startswith("//") else rest


@contextmanager
def open_workers(
    named: Named,
    *,
    on_cpu: bool = True,
    sent_bytes: int = 0,
    shared_gpu: torch.device | None = None,
) -> Iterator[Workers]:
    """Open workers, and end what was started; workers and executors that are given stay open.

    Args:
        named: what stands for them.
        on_cpu: whether the work is done on a CPU; if not, calls on a cluster ask for a GPU each.
        sent_bytes: size of the data that each local process needs.
        shared_gpu: that several local processes may use, where None stands for the workers.

    Raises:
        InputError: no such workers, or they are not there, or have another version.
    """
    if isinstance(named, Workers):
        yield named
        return
    with _opened(named, on_cpu, sent_bytes, shared_gpu) as workers:
        yield workers


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
    if isinstance(named, str) and named not in ("local", "") and not named.isdecimal():
        check_workers(named)
        engine, rest = _parts(named)
        return ENGINES[engine](rest, 0 if on_cpu else 1)
    usual = named is None or named in ("local", "")
    count = worker_count(on_cpu, sent_bytes, shared_gpu) if usual else int(named or 0)
    if count <= 1:
        return OneByOne()
    from hytas.workers.local import Processes

    return Processes(count)


def _ray(address: str, gpus: int) -> Workers:
    from hytas.workers.ray_cluster import RayWorkers

    return RayWorkers(address or None, gpus)


def _slurm(settings: str, gpus: int) -> Workers:
    from hytas.workers.slurm import SlurmWorkers

    return SlurmWorkers(settings)


ENGINES: dict[str, Callable[[str, int], Workers]] = {"ray": _ray, "slurm": _slurm}
"""Name -> from its address or settings, and the GPUs of a call, to workers."""


def available_engines() -> dict[str, str]:
    """Return engine -> "installed", or what to install."""
    from importlib.util import find_spec

    packages = {"ray": "ray", "slurm": "submitit"}
    found = {
        name: "installed" if find_spec(package) else f"pip install 'hytas[{name}]'"
        for name, package in packages.items()
    }
    return {"local": f"{os.cpu_count()} cores", **found}


def probe_engines() -> dict[str, str]:
    """Run a small task on each engine that is here; return engine -> what came of it."""
    from hytas.workers.probe import facts_here

    found = {}
    for name in ("local", *ENGINES):
        try:
            with open_workers("2" if name == "local" else name) as workers:
                list(workers.run(facts_here, [()], 1))
                found[name] = f"works, {workers.count} at once"
        except (InputError, OSError) as error:
            found[name] = str(error)
    return {**found, "local": found["local"].replace("2 at once", f"{os.cpu_count()} cores")}
