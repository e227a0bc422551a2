"""Workers that run calls in parallel: processes of this machine, a Ray cluster, or Slurm."""

from hytas.workers.backends import (
    WorkersLike,
    available_backends,
    check_workers,
    load_server,
    open_workers,
    probe_backends,
    shared_workers,
    spare_processes,
    worker_count,
)
from hytas.workers.base import ExecutorWorkers, OneByOne, Shared, Workers

__all__ = [
    "ExecutorWorkers",
    "OneByOne",
    "Shared",
    "Workers",
    "WorkersLike",
    "available_backends",
    "check_workers",
    "load_server",
    "open_workers",
    "probe_backends",
    "shared_workers",
    "spare_processes",
    "worker_count",
]
