"""Measure speed and memory of a model on this machine, each setting in a process of its own."""

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hytas.deploy.model import DeployedModel
from hytas.errors import InputError
from hytas.model_card import IMAGE
from hytas.types import Array

ROUNDS = 4
"""How often every setting is measured, in turn, so that a busy moment slows all settings."""


@dataclass(frozen=True)
class BenchSetting:
    """What to measure.

    Attributes:
        runtime: the module whose `main` runs the model.
        provider: "cpu" or "cuda".
        batch: patches at a time; for a scene graph the rows of a tile, which is 64 pixels wide.
    """

    model: str
    runtime: str
    provider: str
    threads: int
    batch: int
    seconds: float


def bench(
    settings: Sequence[BenchSetting],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[dict[str, Any]]:
    """Measure every setting, `ROUNDS` times in turn.

    Returns:
        For each setting: its fields, `ms` (the fastest call: other programs only add time, so it
        repeats best), `p10`, `p90`, `spread` (the fastest call of the slowest round divided by that
        of the fastest round), `cpu_ms` (least processor time of a call over all threads),
        `pixels_per_second` of the fastest call, `peak_mb` (resident memory of the whole process)
        and `run_mb` (memory that running added).
    """
    times: list[list[list[float]]] = [[] for _ in settings]
    busy: list[list[float]] = [[] for _ in settings]
    results: list[dict[str, Any]] = [{} for _ in settings]
    for turn in range(ROUNDS):
        for index, setting in enumerate(settings):
            result = measure_apart(setting)
            times[index].append(result["ms"])
            busy[index] += result["cpu_ms"]
            results[index] = result
            progress(turn * len(settings) + index + 1, ROUNDS * len(settings))
    return [
        _summarise(setting, result, rounds, cpu)
        for setting, result, rounds, cpu in zip(settings, results, times, busy, strict=True)
    ]


def _summarise(
    setting: BenchSetting, result: dict[str, Any], rounds: list[list[float]], cpu: list[float]
) -> dict[str, Any]:
    every = sorted(ms for times in rounds for ms in times)
    fastest = [min(times) for times in rounds]
    return {
        **asdict(setting),
        "ms": every[0],
        "cpu_ms": min(cpu),
        "p10": every[len(every) // 10],
        "p90": every[len(every) * 9 // 10],
        "spread": max(fastest) / min(fastest),
        "calls": len(every),
        "pixels_per_second": 1000.0 * result["pixels"] / every[0],
        "peak_mb": result["peak_mb"],
        "run_mb": result["run_mb"],
    }


def measure_apart(setting: BenchSetting) -> dict[str, Any]:
    """Run `main` of the runtime's module in a fresh process."""
    command = [sys.executable, "-m", setting.runtime, json.dumps(asdict(setting))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(
            "bench",
            rule=f"{setting.runtime} at batch {setting.batch} and {setting.threads} thread(s) "
            f"failed: {_reason(done)}",
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _reason(done: "subprocess.CompletedProcess[str]") -> str:
    if done.returncode < 0:
        return f"signal {-done.returncode} ended it: is there too little memory?"
    words = done.stderr.strip().splitlines() or ["no output"]
    return re.sub(r"^[\w.]+(Error|Exception|Fail): ", "", words[-1])[:300]


def repeat(
    call: Callable[[], Any], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the milliseconds of each call, for `seconds` after a warm-up; at least three calls."""
    call()
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = clock()
        call()
        times.append(1000.0 * (clock() - start))
    return times


def fastest(
    calls: Sequence[Callable[[], Any]],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the milliseconds of the fastest run of each call, over `ROUNDS` rounds in turn.

    Args:
        calls: to measure, each run twice before.
        seconds: to measure each call, over all rounds.
        clock: of wall or processor time, in seconds.
    """
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for place, call in enumerate(calls):
            best[place] = min(best[place], *repeat(call, seconds / ROUNDS, clock))
    return best


def resident_mb() -> float:
    """Return the peak resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.is_file():
        # getrusage would include the peak of the parent process.
        lines = status.read_text(encoding="ascii").splitlines()
        return float(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def print_times(call: Callable[[], Any], pixels: int, seconds: float) -> None:
    """Measure `call` and print the result that `bench` reads."""
    before = resident_mb()
    times = repeat(call, seconds)
    peak = resident_mb()
    cpu = repeat(call, seconds / 4, time.process_time)
    result = {"ms": times, "cpu_ms": cpu, "pixels": pixels, "peak_mb": peak}
    result["run_mb"] = peak - before
    print(json.dumps(result))


def example(model: DeployedModel, shape: tuple[int, ...]) -> Array:
    """Return raw values near the centre of every band, in the model's element type."""
    card = model.card
    bands, offset, scale = (card.preprocessing[name] for name in ("bands", "offset", "scale"))
    values = np.zeros(shape, np.float64)
    noise = np.random.default_rng(0).standard_normal((*shape[:-1], len(bands)))
    values[..., bands] = np.asarray(offset) + noise * np.asarray(scale)
    if card.numpy_dtype.kind in "iu":
        limits = np.iinfo(card.numpy_dtype)
        values = np.clip(values, limits.min, limits.max)
    return values.astype(card.numpy_dtype)


def main(argument: str) -> None:
    """Measure one setting in onnxruntime, and print the result."""
    setting = BenchSetting(**json.loads(argument))
    model = DeployedModel.load(
        setting.model, setting.provider, threads=setting.threads, one_call=True
    )
    side, bands = model.card.patch_size, model.card.bands
    if model.card.graph not in ("patch", IMAGE):
        tile = example(model, (setting.batch + side - 1, 64 + side - 1, bands))
        valid = np.ones((setting.batch, 64), np.bool_)
        runs = {
            "scene": lambda: model.run_tile_maps(tile),
            "smooth-scene": lambda: model.run_tile_smoothed(tile, valid),
        }
        print_times(runs[model.card.graph], setting.batch * 64, setting.seconds)
    else:
        patches = example(model, (setting.batch, side, side, bands))
        print_times(lambda: model.run(patches), setting.batch, setting.seconds)


RUNTIME = "hytas.deploy.bench"


def bench_settings(
    model: str | Path,
    *,
    providers: Sequence[str] = ("cpu",),
    threads: Sequence[int] = (1,),
    batches: Sequence[int] = (1, 32),
    seconds: float = 1.0,
    runtime: str = RUNTIME,
) -> list[BenchSetting]:
    """Return a setting for every combination of the arguments."""
    return [
        BenchSetting(str(model), runtime, provider, count, batch, seconds)
        for provider in providers
        for count in threads
        for batch in batches
    ]


if __name__ == "__main__":
    main(sys.argv[1])
