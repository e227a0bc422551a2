"""What more than one worker is worth: throughput, overhead, lost workers, and where it ends.

    pip install '.[ray]'; python benchmarks/scale.py > scale.md

Arguments name parts (throughput, overhead, kills, growth), else all are run. Figures that are
compared come from one run. `growth` simulates a driver, its queue and its workers with the times
that `overhead` measures, and checks the simulation against real runs.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import heapq
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from hytas._engine import Feasible
from hytas.data import load_scene
from hytas.proxies import Evaluator, spread_over
from hytas.run import RunConfig, run_pipeline
from hytas.search import EvaluationStore
from hytas.spaces import open_space
from hytas.spaces.shape import InputShape
from hytas.train import Recipe
from hytas.workers import Workers, open_workers
from hytas.workers.ray_cluster import RayWorkers

SHAPE = InputShape(bands=200, classes=16, patch_size=7)
NETWORKS = 384
BATCH = 32
EMPTY_TASKS = 400
SECONDS_BETWEEN_KILLS = 20
COMMITS = 18_000.0  # candidates that the store takes a second


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\n**{title}**\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def networks(count: int) -> list[dict[str, Any]]:
    space, budget = open_space("hytas-wide", "20K..200K-params", offered=SHAPE.variables())
    return list(space.unpack(Feasible(space, budget).sample(count, 0, "choices")))


def throughput() -> None:
    """Candidates a second, on the processes of this machine and on Ray, in turns."""
    asked, rows = networks(NETWORKS), {}
    evaluator = Evaluator("dss", SHAPE, workers=1)
    for name in ("2", "ray", "2", "ray"):
        with open_workers(name) as workers, spread_over(evaluator, workers) as scorer:
            scorer.score(asked[: 2 * BATCH])  # imports
            started = time.perf_counter()
            scorer.score(asked)
            rate = NETWORKS / (time.perf_counter() - started)
            rows.setdefault(workers.name, []).append(rate)
    best = {name: max(found) for name, found in rows.items()}
    local = next(iter(best.values()))
    table(
        f"{NETWORKS} candidates by dss, 2 workers, the better of two turns",
        ("workers", "candidates a second", "of local"),
        [(name, f"{rate:.1f}", f"{rate / local:.2f}") for name, rate in best.items()],
    )


def nothing(shared: Any, batch: Sequence[object]) -> list[dict[str, float]]:
    shared.get()
    return [{"score": 0.0} for _ in batch]


def overhead_of(workers: Workers) -> float:
    """Milliseconds of a task that computes nothing, with a batch of architectures."""
    shared, batch = workers.share(Evaluator("dss", SHAPE, workers=1)), networks(BATCH)
    list(workers.run(nothing, [(shared, batch)] * 8, 8))
    started = time.perf_counter()
    list(workers.run(nothing, [(shared, batch)] * EMPTY_TASKS, EMPTY_TASKS))
    return 1000 * (time.perf_counter() - started) / EMPTY_TASKS


def overhead() -> None:
    rows = []
    for name in ("2", "ray"):
        with open_workers(name) as workers:
            rows.append((workers.name, f"{overhead_of(workers):.2f}"))
    table(f"Empty tasks of {BATCH} candidates", ("workers", "ms a task"), rows)


class Counted(RayWorkers):
    """Ray, with a line in a file for each start of a task."""

    def __init__(self, starts: Path) -> None:
        super().__init__()
        self.starts, self.tasks = starts, 0

    def run(self, work: Callable[..., Any], jobs: Iterable[Any], count: int) -> Iterator[Any]:
        def noted() -> Iterator[Any]:
            for job in jobs:
                self.tasks += 1
                yield self.starts, self.tasks, work, job

        return super().run(start, noted(), count)


def start(starts: Path, number: int, work: Callable[..., Any], job: Sequence[Any]) -> Any:
    with starts.open("a") as file:
        file.write(f"{number}\n")
    return work(*job)


def kill_workers(over: threading.Event, killed: list[str]) -> None:
    """Kill a random process that works on a task, now and then.

    Ray's own agents, "ray::DashboardAgent" and "ray::RuntimeEnvAgent", are spared: a machine
    leaves the cluster with them.
    """
    chance = random.Random(0)
    while not over.wait(SECONDS_BETWEEN_KILLS):
        found = [
            p for p in psutil.process_iter(["name"]) if p.info["name"] == f"ray::{start.__name__}"
        ]
        if found:
            victim = chance.choice(found)
            victim.kill()
            killed.append(victim.info["name"])


def kills() -> None:
    """A search and a race whose workers are killed, beside one that is left alone."""
    scene = load_scene("synthetic")
    config = RunConfig(
        budget="60K-params",
        data="synthetic",
        population=128,
        generations=8,
        finalists=4,
        race_steps=60,
        proxy="snip,dss",
        recipe=Recipe(epochs=0),
    )
    killed: list[str] = []
    over = threading.Event()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_pipeline(config, scene, folder / "alone", device="cpu", workers="2")
        threading.Thread(target=kill_workers, args=(over, killed), daemon=True).start()
        with Counted(folder / "starts") as workers:
            run_pipeline(config, scene, folder / "killed", device="cpu", workers=workers)
            over.set()
        again = len((folder / "starts").read_text().split()) - workers.tasks
        kept = [_kept(folder / name) for name in ("alone", "killed")]
    same = [one == other for one, other in zip(*kept, strict=True)]
    table(
        f"A worker killed every {SECONDS_BETWEEN_KILLS} s in a search and a race on Ray",
        ("killed", "tasks", "tasks run twice", "same winner", "same scores", "same trainings"),
        [(len(killed), workers.tasks, again, *("yes" if one else "no" for one in same))],
    )


def _kept(run: Path) -> tuple[Any, ...]:
    with EvaluationStore(run / "evaluations.sqlite", read_only=True) as store:
        scored = [(e.id, e.architecture, e.scores) for e in store.evaluations()]
        trained = [(t.steps, t.fold, t.figures) for t in store.trainings()]
    return (run / "architecture.json").read_text(), scored, trained


def simulate(workers: int, seconds: float, hand_over: float, tasks: int = 4000) -> float:
    """Candidates a second of one driver that hands over batches and keeps what comes back.

    The driver hands over a task in `hand_over` seconds, and keeps its batch at the store's rate. A
    task takes `seconds` on a worker. Twice as many tasks as workers are under way or wait.
    """
    clock, done, handed = 0.0, 0, 0
    free = [0.0] * workers  # when each worker has nothing to do
    heapq.heapify(free)
    ends: list[float] = []
    while done < tasks:
        while handed < tasks and len(ends) < 2 * workers:
            clock += hand_over
            begin = max(clock, heapq.heappop(free))
            heapq.heappush(free, begin + seconds)
            ends.append(begin + seconds)  # results are taken in the order of the tasks
            handed += 1
        clock = max(clock, ends.pop(0)) + BATCH / COMMITS
        done += 1
    return tasks * BATCH / clock


def sleep_task(seconds: float) -> list[int]:
    time.sleep(seconds)
    return [0] * BATCH


def growth() -> None:
    """The simulation for many workers, and beside real runs with few."""
    with open_workers("ray") as workers:
        hand_over = overhead_of(workers) / 1000
    checks = []
    for count, seconds in ((1, 0.1), (2, 0.1), (4, 0.1), (4, 0.5)):
        import ray

        ray.init(num_cpus=count, include_dashboard=False, logging_level="error")
        with open_workers("ray") as workers:
            list(workers.run(sleep_task, [(0.0,)] * 2 * count, 2 * count))  # imports
            tasks = 30 * count
            started = time.perf_counter()
            list(workers.run(sleep_task, [(seconds,)] * tasks, tasks))
            real = tasks * BATCH / (time.perf_counter() - started)
        ray.shutdown()
        expected = simulate(count, seconds, hand_over, tasks)
        checks.append((count, seconds, f"{expected:.0f}", f"{real:.0f}", f"{real / expected:.2f}"))
    table(
        "The simulation beside real runs of tasks that sleep",
        ("workers", "s a task", "simulated candidates a second", "real", "ratio"),
        checks,
    )
    rows = [
        (
            count,
            *(
                f"{rate:,.0f} ({rate * seconds / BATCH / count:.0%})"
                for seconds in (1.0, 10.0, 60.0)
                for rate in [simulate(count, seconds, hand_over)]
            ),
        )
        for count in (1, 10, 100, 1000)
    ]
    table(
        f"Simulated candidates a second, {1000 * hand_over:.1f} ms to hand over a task of {BATCH} "
        "(in brackets: of what the workers could do)",
        ("workers", "1 s a task", "10 s a task", "60 s a task"),
        rows,
    )


PARTS: dict[str, Callable[[], None]] = {
    "throughput": throughput,
    "overhead": overhead,
    "kills": kills,
    "growth": growth,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
