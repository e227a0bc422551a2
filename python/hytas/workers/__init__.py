"""Where work runs side by side: processes of this machine, a Ray cluster, or Slurm."""

from hytas.workers.opening import (
    Named,
    available_engines,
    check_workers,
    open_workers,
    probe_engines,
    worker_count,
)
from hytas.workers.seam import ExecutorWorkers, OneByOne, Shared, Workers

__all__ = [
    "ExecutorWorkers",
    "Named",
    "OneByOne",
    "Shared",
    "Workers",
    "available_engines",
    "check_workers",
    "open_workers",
    "probe_engines",
    "worker_count",
]
