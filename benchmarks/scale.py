"""What more than one worker is worth: throughput, overhead, lost workers, and where it ends.

    pip install '.[ray]'; python benchmarks/scale.py > scale.md

Arguments name parts (throughput, overhead, kills, growth), else all are run. Figures that are
compared come from one run. `growth` simulates a driver, its queue and its workers with the times
that it measures, and checks the simulation against real runs.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import heapq
import random
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from hytas._engine import Feasible
from hytas.data import load_scene
from hytas.job import run_pipeline
from hytas.proxies import Evaluator, with_workers
from hytas.run import RunConfig
from hytas.search import Evaluation, EvaluationStore
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
    evaluator = Evaluator("dss", SHAPE)
    for name in ("2", "ray", "2", "ray"):
        with open_workers(name) as workers, with_workers(evaluator, workers) as scorer:
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
    shared, batch = workers.share(Evaluator("dss", SHAPE)), networks(BATCH)
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


def scored_batch(number: int, asked: Sequence[dict[str, Any]]) -> list[Evaluation]:
    """A batch as the driver of a search keeps it."""
    costs = {"params": 10**5, "macs": 10**6}
    return [
        Evaluation(number * len(asked) + place, 0, genes, costs, {"dss": 1.0}, {}, 0.01)
        for place, genes in enumerate(asked)
    ]


def store_rate() -> float:
    """Candidates a second that the store keeps, a batch at a time."""
    batches, asked = 300, networks(BATCH)
    with tempfile.TemporaryDirectory() as name, EvaluationStore(Path(name) / "store") as store:
        started = time.perf_counter()
        for number in range(batches):
            store.add(scored_batch(number, asked))
        return batches * BATCH / (time.perf_counter() - started)


def simulate(
    workers: int, seconds: float, hand_over: float, rate: float, batch: int = BATCH, tasks: int = 0
) -> float:
    """Candidates a second of one driver that hands over batches and keeps what comes back.

    Twice as many tasks as workers are under way or wait, and results are read in the order of the
    tasks.

    Args:
        workers: of one task each.
        seconds: of a task.
        hand_over: seconds of the driver for a task.
        rate: candidates a second that the store keeps.
        batch: candidates of a task.
        tasks: how many; 0 takes enough for a steady state.
    """
    tasks = tasks or 20 * workers
    clock, done, handed = 0.0, 0, 0
    free = [0.0] * workers  # when each worker has nothing to do
    ends: deque[float] = deque()
    while done < tasks:
        while handed < tasks and len(ends) < 2 * workers:
            clock += hand_over
            end = max(clock, heapq.heappop(free)) + seconds
            heapq.heappush(free, end)
            ends.append(end)
            handed += 1
        clock = max(clock, ends.popleft()) + batch / rate
        done += 1
    return tasks * batch / clock


def sleep_task(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number


def real_rate(count: int, seconds: float, tasks: int) -> float:
    """Candidates a second of a driver that keeps batches of tasks that sleep."""
    import ray

    asked = networks(BATCH)
    ray.init(address="local", num_cpus=count, include_dashboard=False, logging_level="error")
    try:
        with (
            open_workers("ray") as workers,
            tempfile.TemporaryDirectory() as name,
            EvaluationStore(Path(name) / "store") as store,
        ):
            list(workers.run(sleep_task, [(0, 0.2)] * 4 * count, 4 * count))  # starts processes
            started = time.perf_counter()
            jobs = ((number, seconds) for number in range(tasks))
            for number in workers.run(sleep_task, jobs, tasks):
                store.add(scored_batch(number, asked))
            return tasks * BATCH / (time.perf_counter() - started)
    finally:
        ray.shutdown()


def growth() -> None:
    """The simulation beside real runs with few workers, and for many."""
    with open_workers("ray") as workers:
        hand_over = overhead_of(workers) / 1000
    rate = store_rate()
    checks = []
    for count, seconds in ((1, 0.5), (2, 0.5), (4, 0.5)):
        tasks = 20 * count
        real = real_rate(count, seconds, tasks)
        expected = simulate(count, seconds, hand_over, rate, tasks=tasks)
        checks.append((count, seconds, f"{expected:.0f}", f"{real:.0f}", f"{real / expected:.2f}"))
    table(
        "The simulation beside real runs of tasks that sleep",
        ("workers", "s a task", "simulated candidates a second", "real", "ratio"),
        checks,
    )
    rows = []
    for count in (1, 10, 100, 1000):
        row: list[object] = [count]
        for seconds, batch in ((1.0, 32), (10.0, 32), (60.0, 32), (8.0, 256)):
            found = simulate(count, seconds, hand_over, rate, batch)
            row.append(f"{found:,.0f} ({found * seconds / batch / count:.0%})")
        rows.append(row)
    table(
        f"Simulated candidates a second; {1000 * hand_over:.1f} ms to hand over a task, and a "
        f"store that keeps {rate:,.0f} a second (in brackets: of what the workers could do)",
        ("workers", *(f"32 in {s} s" for s in (1, 10, 60)), "256 in 8 s"),
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
        if name not in PARTS:
            sys.exit(f"{name}: must be one of {', '.join(PARTS)}")
        PARTS[name]()
