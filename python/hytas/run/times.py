"""What each stage of a run took: `times.json`, and their sums."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.workers.base import SPENT

KEPT_SECONDS = 5.0
"""A kill loses the times of at most so long."""
START = "start"
"""The entry of what a command took before its first stage."""
UNITS = ("seconds", "cpu_seconds", "gpu_seconds")
Times = dict[str, dict[str, Any]]


def read_times(path: Path) -> Times:
    """Stage -> `UNITS`, "ended" (UTC) and "command" ("" from Python); empty without a file.

    A file that is damaged counts as none: nothing is decided by it but how long a run has left.
    """
    try:
        values = read_json(path)
    except (InputError, OSError):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, dict)}


def spent_before(path: Path) -> float:
    """Return the seconds that earlier parts of a run took."""
    try:
        return sum(float(one["seconds"]) for one in read_times(path).values())
    except (AttributeError, KeyError, TypeError, ValueError):  # forged: the report names it
        return 0.0


def all_times(folder: RunFolder) -> Times:
    """Return the times of a run, of its further seeds, and of its control with its seeds."""
    times = read_times(folder.times)
    inner = {path: path.name.replace("-", " ") for path in sorted(folder.path.glob("seed-*"))}
    inner |= dict.fromkeys(folder.path.glob(folder.control.name), "the control")
    for path, name in inner.items():
        for stage, entry in all_times(RunFolder(path)).items():
            times[f"{stage} of {name}"] = entry
    return times


@contextmanager
def kept_time(path: Path, stage: str, command: str, *, on_gpu: bool) -> Iterator[None]:
    """Add what a stage takes to the file, every few seconds and at its end.

    CPU seconds are those of this process and of the calls that came back from workers. GPU seconds
    are the time for which a GPU is held: here, or by each call that has a GPU of its own.

    Args:
        on_gpu: whether the device of the run is a GPU.
    """
    before = read_times(path).get(stage, {})
    began, cpu, away = time.monotonic(), time.process_time() + SPENT.cpu, SPENT.away
    ended = threading.Event()

    def keep() -> None:
        seconds = time.monotonic() - began
        gpu = max(seconds, SPENT.away - away) if on_gpu else 0.0
        spent = seconds, time.process_time() + SPENT.cpu - cpu, gpu
        _write(path, stage, _sums(before, spent), command)

    def keep_on() -> None:
        while not ended.wait(KEPT_SECONDS):
            with suppress(OSError):  # the end of the stage tries again
                keep()

    keeper = threading.Thread(target=keep_on, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
        keep()


def add_start(path: Path, began: float, command: str) -> None:
    """Add what a command took before its first stage: imports, reading the scene.

    Args:
        began: when the process began, by `time.time()`.
    """
    spent = time.time() - began, time.process_time(), 0.0
    _write(path, START, _sums(read_times(path).get(START, {}), spent), command)


def _sums(before: Mapping[str, Any], spent: Sequence[float]) -> dict[str, float]:
    return {
        unit: round(float(before.get(unit, 0.0)) + value, 2)
        for unit, value in zip(UNITS, spent, strict=True)
    }


def _write(path: Path, stage: str, sums: Mapping[str, float], command: str) -> None:
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    entry = {**sums, "ended": ended, "command": command}
    write_json(path, {**read_times(path), stage: entry})


def run_cost(folder: RunFolder) -> dict[str, Any]:
    """Return the `UNITS` of a run until now: of each stage ("stages") and in all."""
    stages = {
        name: {unit: float(entry.get(unit, 0.0)) for unit in UNITS}
        for name, entry in all_times(folder).items()
    }
    total = {unit: round(sum(entry[unit] for entry in stages.values()), 2) for unit in UNITS}
    return {"stages": stages, **total}
