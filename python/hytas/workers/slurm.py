"""Workers of a Slurm cluster, by submitit: each `run` is a job array."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

from hytas.errors import InputError, one_line
from hytas.plugins import carried
from hytas.workers.base import (
    CallArguments,
    CallResult,
    Loaded,
    Shared,
    Timed,
    WorkerFacts,
    Workers,
    check_facts,
    counted,
    facts_here,
)

T = TypeVar("T")
CLUSTERS = ("slurm", "local", "debug")
MOST_AT_ONCE = 64
# Name in `workers` -> (name in submitit, type).
SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "partition": ("slurm_partition", str),
    "account": ("slurm_account", str),
    "qos": ("slurm_qos", str),
    "cpus": ("cpus_per_task", int),
    "gpus": ("gpus_per_node", int),
    "memory": ("mem_gb", float),
    "time": ("timeout_min", int),
}


class SlurmWorkers(Workers):
    """Runs calls as jobs of Slurm, in a folder that all its machines share.

    Args:
        settings: `NAME=VALUE` with commas between them: the names of `SETTINGS`; `jobs`, the
            number of parallel jobs; `folder` of calls and results; `cluster`, one of `CLUSTERS`, of
            which "local" starts processes here and "debug" runs calls in this process.
    """

    def __init__(self, settings: str) -> None:
        try:
            import submitit
        except ImportError:
            hint = "pip install 'hytas[slurm]'"
            raise InputError("workers", "slurm", "submitit is not installed", hint) from None
        given = parse_settings(settings)
        self.folder = Path(given.pop("folder", ".hytas-jobs")).resolve()
        self._count = int(given.pop("jobs", MOST_AT_ONCE))
        cluster = given.pop("cluster", "slurm")
        self.name = f"Slurm ({cluster})"
        try:
            self._executor = submitit.AutoExecutor(folder=self.folder, cluster=cluster)
        except RuntimeError as error:
            raise InputError("workers", "slurm", one_line(error)) from None
        own = {SETTINGS[name][0]: value for name, value in given.items()}
        slurm = {"slurm_array_parallelism": self.count} if cluster == "slurm" else {}
        self._executor.update_parameters(**own, **slurm)
        self._jobs: list[Any] = []
        self._shared: list[Path] = []

    def close(self) -> None:
        """Cancel unfinished jobs, and remove shared values."""
        for job in self._jobs:
            if not job.done():
                job.cancel()
        for path in self._shared:
            path.unlink(missing_ok=True)

    def share(self, value: T) -> Shared[T]:
        """Write a value into the shared folder."""
        import cloudpickle

        path = self.folder / f"shared-{uuid4().hex}.pkl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._shared.append(path)
        path.write_bytes(cloudpickle.dumps(value))
        return Loaded(str(path), partial(_load, path))

    def run(self, work: Callable[..., T], jobs: Iterable[CallArguments], count: int) -> Iterator[T]:
        """Submit all jobs as one array, and yield their results.

        What a job prints goes to standard error, each line with the job and its host.

        Raises:
            InputError: a machine of Slurm has other versions.
            OSError: a job was lost.
        """
        from submitit.core.utils import UncompletedJobError

        driver, outcome = facts_here(), carried(_outcome)
        with self._executor.batch():
            submitted = [self._executor.submit(outcome, driver, work, job) for job in jobs]
        self._jobs = submitted
        for job in submitted:
            try:
                result, error, host = job.result()
            except UncompletedJobError as lost:
                raise OSError(
                    f"workers slurm: job {job.job_id} was lost: {one_line(lost)}"
                ) from None
            _print_output(job, host)
            if error is not None:
                raise error
            yield counted(cast("CallResult[T]", result), here=False)


def _print_output(job: Any, host: str) -> None:
    for line in f"{job.stdout() or ''}\n{job.stderr() or ''}".splitlines():
        if line.strip() and not line.startswith("submitit "):  # lines of submitit itself
            print(f"(job {job.job_id}, {host}) {line}", file=sys.stderr)


def _outcome(
    driver: WorkerFacts, work: Callable[..., T], job: CallArguments
) -> tuple[CallResult[T] | None, Exception | None, str]:
    """Call `work`; return an error as a value, with the host's name."""
    here = facts_here()
    try:
        check_facts([here], "slurm", driver)
        return Timed(work)(*job), None, here["host"]
    except Exception as error:
        return None, error, here["host"]


def parse_settings(text: str) -> dict[str, Any]:
    """Return the settings of a text such as "partition=gpu,cpus=8,time=60"."""
    types: dict[str, Callable[[str], Any]] = {"folder": str, "jobs": int, "cluster": str}
    types |= {name: read for name, (_, read) in SETTINGS.items()}
    settings: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if not value or name not in types:
            rule = f"{part!r}: must be NAME=VALUE, the name one of {', '.join(types)}"
            raise InputError("workers", "slurm", rule)
        try:
            settings[name] = types[name](value)
        except ValueError:
            raise InputError("workers", "slurm", f"{part!r}: must be a number") from None
        if types[name] is not str and not 0 < settings[name] < math.inf:
            raise InputError("workers", "slurm", f"{part!r}: must be above 0, and finite")
    if settings.get("cluster", CLUSTERS[0]) not in CLUSTERS:
        raise InputError("workers", "slurm", f"cluster must be one of {', '.join(CLUSTERS)}")
    return settings


def _load(path: Path) -> Any:
    import cloudpickle

    return cloudpickle.loads(path.read_bytes())  # written by this user's driver
