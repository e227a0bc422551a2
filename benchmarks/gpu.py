"""One table of what a GPU does for hytas: tests, proxies, search, training, memory, inference.

    make gpu                # python benchmarks/gpu.py [--data IndianPine.mat] [--out runs/gpu.md]
    make gpu DEVICE=cpu     # the rehearsal: the same code on the CPU, with small sizes

Each section runs in a process of its own, with its share of the seconds that are left. A section
that fails or takes longer leaves a row that says so, with what it measured before. The table is
written after every section. Each figure stands beside what it is compared with, which is measured
on the same machine in the same section.

A new section is a function here and a line in SECTIONS.
"""

import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SCENE = "data/IndianPine.mat"
SECONDS = 460.0
"""For all sections; with the building of hytas before it, `make gpu` stays under nine minutes."""
CPU_UNTIL = 0.5
"""Of a section's time, after which the device is measured alone: it has the first claim."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """How much is done.

    Attributes:
        tests: expression of pytest that chooses among the tests marked gpu; "" takes all.
        matrix: rows of the square matrices of the product.
        shape: bands, classes and patch side of the networks that proxies score.
        spaces: whose architectures proxies score.
        candidates: most architectures scored for one figure.
        seconds: for which one figure is measured.
        search: population, generations, finalists, steps of the race's first rung and of the
            final training, 0 to end with the race.
        memory: whose peak is measured.
        networks: how many of NETWORKS are trained and run.
        steps: optimiser steps of a training that is timed.
        pixels: in a step.
        batches: patches a call of onnxruntime.
        scene: height, width and bands of the scene where Indian Pines is absent.
    """

    tests: str
    matrix: int
    shape: tuple[int, int, int]
    spaces: tuple[str, ...]
    candidates: int
    seconds: float
    search: tuple[int, int, int, int, int]
    memory: tuple[str, ...]
    networks: int
    steps: int
    pixels: tuple[int, ...]
    batches: tuple[int, ...]
    scene: tuple[int, int, int]


SIZES = {
    "full": Size(
        tests="",
        matrix=8192,
        shape=(200, 16, 7),
        spaces=("hytas-wide", "hytas"),
        candidates=3072,
        seconds=1.5,
        search=(50, 20, 8, 40, 300),
        memory=("snip", "dss", "training"),
        networks=2,
        steps=120,
        pixels=(64, 512),
        batches=(1, 64, 1024),
        scene=(145, 145, 200),
    ),
    "small": Size(
        tests="",
        matrix=512,
        shape=(200, 16, 7),
        spaces=("hytas-wide", "hytas"),
        candidates=8,
        seconds=0.3,
        search=(8, 2, 2, 4, 8),
        memory=("snip", "dss", "training"),
        networks=2,
        steps=8,
        pixels=(64,),
        batches=(1, 32),
        scene=(56, 64, 72),
    ),
    "smallest": Size(
        tests="same_seed",
        matrix=64,
        shape=(20, 3, 7),
        spaces=("hytas",),
        candidates=2,
        seconds=0.01,
        search=(4, 1, 2, 1, 0),
        memory=("snip",),
        networks=1,
        steps=2,
        pixels=(64,),
        batches=(4,),
        scene=(32, 32, 20),
    ),
}

SIDE = 7
PROXIES = ("dss", "snip", "grasp")
PLAIN = "plain loop, same device"
HYTAS = {
    "space": "hytas",
    "depth": 7,
    "embed_dim": 112,
    "num_heads": [4] * 7,
    "mlp_ratio": [4] * 7,
}
# As the winner of a search under 100K-params.
SMALL = {
    "space": "hytas-wide",
    "tokens": "pixel",
    "patch": 7,
    "band_width": 3,
    "band_stride": 2,
    "pooling": "class",
    "fusion": "no",
    "embed_dim": 80,
    "band_depth": 0,
    "pixel_depth": 1,
    "band_mixer": "attention",
    "band_gate": "no",
    "band_heads": 2,
    "pixel_mixer": "attention",
    "pixel_gate": "no",
    "pixel_heads": 4,
    "band_mlp": [],
    "pixel_mlp": [3],
}
NETWORKS = {"small winner, 87K": SMALL, "HyTAS, depth 7, width 112": HYTAS}
LARGEST = HYTAS | {"depth": 10, "embed_dim": 240, "num_heads": [6] * 10, "mlp_ratio": [6] * 10}


@dataclass
class Bench:
    """What a section is given, and where its rows go.

    Attributes:
        ends: of `time.monotonic`; after it nothing is measured on the CPU any more.
    """

    device: str
    size: Size
    data: str
    rows: Path
    ends: float = math.inf

    def put(
        self,
        what: str,
        value: float,
        unit: str,
        beside: str = "",
        other: float | None = None,
        better: str = "more",
    ) -> None:
        """Keep one figure, and the one that it stands beside.

        Args:
            better: "more" or "less" of it, for the ratio; "" gives none.
        """
        ratio = None
        if better and other:
            ratio = value / other if better == "more" else other / value if value else None
        self._write(
            what=what,
            measured=f"{number(value)} {unit}".strip(),
            beside=beside,
            other="" if other is None else f"{number(other)} {unit}".strip(),
            ratio="" if ratio is None else number(ratio),
        )

    def put_beside_cpu(
        self, what: str, measure: Callable[[str], float], unit: str, better: str = "more"
    ) -> float:
        """Measure on the device, then on the CPU alone, and keep both; the first comes back."""
        found = measure(self.device)
        self.put(what, found, unit)  # stays where the CPU takes too long
        if time.monotonic() > self.ends:
            return found
        other = found if self.device == "cpu" else measure("cpu")
        self.put(what, found, unit, self.cpu, other, better)
        return found

    def say(self, what: str, words: str) -> None:
        """Keep a row of words."""
        self._write(what=what, measured=words)

    def fact(self, what: str, words: str) -> None:
        """Keep a line for the head of the page."""
        self._write(fact=what, measured=words)

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Leave a row if what is inside fails, and go on."""
        try:
            yield
        except Exception as error:
            import traceback

            traceback.print_exc()
            self.say(what, f"failed: {in_one_line(error)}")

    def _write(self, **row: str) -> None:
        with self.rows.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    @cached_property
    def scene(self) -> Any:
        """Indian Pines, or a synthetic scene of the size's extent."""
        import hytas

        if self.data != "synthetic":
            return hytas.load_scene(self.data)
        height, width, bands = self.size.scene
        return hytas.synthetic_scene(height=height, width=width, bands=bands)

    @cached_property
    def cpu(self) -> str:
        """What the CPU's column is called."""
        import torch

        count = torch.get_num_threads()
        return f"CPU, {count} core{'s' if count > 1 else ''}"

    @cached_property
    def networks(self) -> dict[str, dict[str, Any]]:
        """Those that are trained and run, by name."""
        return dict(list(NETWORKS.items())[: self.size.networks])


def number(value: float) -> str:
    """Three digits, and no exponent where a person can do without."""
    if not math.isfinite(value) or value == 0 or abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}" if math.isfinite(value) else str(value)
    return f"{value:.3g}"


def in_one_line(error: BaseException) -> str:
    """The kind of an error and the beginning of its words."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def wait(device: str) -> None:
    """Wait until the device has done what it was asked for."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def median_seconds(call: Callable[[], object], device: str, seconds: float) -> float:
    """Median time of a call, after one to warm up; at least three calls."""
    call()
    wait(device)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        wait(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rate(
    score: Callable[[Sequence[Any]], object], items: Sequence[Any], seconds: float, first: int = 1
) -> float:
    """Items a second, of as many together as take about `seconds`; a call of `first` warms up."""
    score(items[:first])
    count = min(first, len(items))
    while True:
        start = time.perf_counter()
        score(items[:count])
        took = time.perf_counter() - start
        if took >= seconds / 2 or count == len(items):
            return count / took
        count = min(len(items), max(2 * count, int(count * 0.8 * seconds / max(took, 1e-6))))


# The sections.


def machine(bench: Bench) -> None:
    """What the figures were measured on, and its ceilings."""
    import numpy as np
    import onnxruntime
    import torch

    import hytas

    if bench.device == "cuda":
        if not torch.cuda.is_available():
            raise SystemExit(no_cuda(torch.__version__))
        found = torch.cuda.get_device_properties(0)
        bench.fact("name", found.name)
        bench.fact(
            "device",
            f"{found.name}, {found.total_memory / 2**30:.0f} GiB, {found.multi_processor_count} "
            f"multiprocessors, compute capability {found.major}.{found.minor}",
        )
    else:
        bench.fact("name", "CPU")
        bench.fact("device", "CPU: a rehearsal, whose figures mean nothing")
    bench.fact("processor", f"{processor()}, {os.cpu_count()} cores, {bench.cpu}")
    bench.fact(
        "software",
        f"hytas {hytas.__version__}{commit()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__} "
        f"({', '.join(onnxruntime.get_available_providers())}), numpy {np.__version__}",
    )
    scene = bench.scene
    where = "" if bench.data != "synthetic" else f" ({SCENE} was not found or not asked for)"
    bench.fact(
        "scene",
        f"{scene.name}, {scene.height} x {scene.width} x {scene.bands}, {bench.data}{where}",
    )
    rows = bench.size.matrix

    def product(device: str) -> float:
        left, right = torch.rand(2, rows, rows, device=device)
        return 2e-12 * rows**3 / median_seconds(lambda: left @ right, device, bench.size.seconds)

    def copy(device: str) -> float:
        source = torch.ones(4 * rows, rows, device=device)
        target = torch.empty_like(source)
        spent = median_seconds(lambda: target.copy_(source), device, bench.size.seconds)
        return 2e-9 * source.nbytes / spent

    for what, unit, measure in (
        (f"float32 product, {rows} x {rows}", "TFLOP/s", product),
        ("copy in memory, read and written", "GB/s", copy),
    ):
        with bench.attempt(what):
            bench.put_beside_cpu(what, measure, unit)


def processor() -> str:
    """The processor's name."""
    known = Path("/proc/cpuinfo")
    if known.is_file():
        for line in known.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The commit of the sources, where git knows it."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" at {done.stdout.strip()}"


def tests(bench: Bench) -> None:
    """The tests marked gpu, in the files that have any."""
    marked = re.compile(r"mark\.gpu\b")
    files = [
        str(path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if marked.search(path.read_text(encoding="utf-8"))
    ]
    # What the project's own settings ask for, such as that no library warns, is not the question.
    command = [sys.executable, "-m", "pytest", *files, "-m", "gpu", "-q", "-ra"]
    command += ["-o", "addopts=", "-o", "filterwarnings=default", "-p", "no:cacheprovider"]
    command += ["-k", bench.size.tests] if bench.size.tests else []
    environment = os.environ | {"HYTAS_TEST_DEVICE": bench.device}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr, file=sys.stderr)
    lines = (done.stdout.strip() or done.stderr.strip() or "no output").splitlines()
    bad = [line for line in lines if line.startswith(("FAILED", "ERROR", "SKIPPED"))]
    words = "; ".join([lines[-1].strip("= "), *bad])
    passed = done.returncode == 0 and " passed" in lines[-1]
    bench.say("tests marked gpu", words if passed else f"failed: {words}")


Scorer = Callable[[Sequence[Mapping[str, Any]]], list[float]]


def candidates(size: Size, space: str) -> list[dict[str, Any]]:
    """Architectures of a space of 100,000 to a million parameters, drawn uniformly by gene."""
    import hytas

    whole = hytas.SearchSpace.builtin(space, hytas.InputShape(*size.shape).variables())
    feasible = hytas.Feasible(whole, hytas.Budget.parse("100K..1M-params"))
    return list(whole.unpack(feasible.sample(size.candidates, 0, "choices")))


def labelled_batch(size: Size) -> tuple[Any, Any]:
    """A patch of noise for each class: time does not depend on the values."""
    import torch

    bands, classes, side = size.shape
    generator = torch.Generator().manual_seed(0)
    return torch.randn(classes, side, side, bands, generator=generator), torch.arange(classes)


def scorer(
    size: Size, names: str, device: str, precision: str = "float32", workers: Any = None
) -> Scorer:
    """What scores architectures with the named proxies; the first one's scores come back."""
    import hytas
    from hytas.proxies.spread import SpreadEvaluator

    evaluator = hytas.Evaluator(
        names,
        hytas.InputShape(*size.shape),
        batch=labelled_batch(size),
        device=device,
        precision=precision,
    )

    chosen = evaluator if workers is None else SpreadEvaluator(evaluator, workers)

    def score(architectures: Sequence[Mapping[str, Any]]) -> list[float]:
        results = chosen.score(architectures)
        for result in results:
            for name, reason in result["reasons"].items():
                raise RuntimeError(f"{name}: {reason}")
        return [next(iter(result["scores"].values())) for result in results]

    return score


def plain_scorer(size: Size, name: str, device: str) -> Scorer:
    """The plain loop: build each network with torch.nn and score it alone, by the formula."""
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import hytas
    from hytas.models.layers import Attention

    shape = hytas.InputShape(*size.shape)
    patches, labels = (tensor.to(device) for tensor in labelled_batch(size))
    ones = torch.ones_like(patches[:1])

    def one(architecture: Mapping[str, Any]) -> float:
        network = hytas.build_network(architecture, shape, seed=0).to(device).eval()
        linear = {n: m.weight for n, m in network.named_modules() if isinstance(m, nn.Linear)}
        weights = list(linear.values())
        if name == "grasp":
            with sdpa_kernel(SDPBackend.MATH):  # the others cannot be differentiated twice
                loss = F.cross_entropy(network(patches), labels)
                grads = torch.autograd.grad(loss, weights, create_graph=True)
            along = torch.stack([(g.detach() * g).sum() for g in grads]).sum()
            curved = torch.autograd.grad(along, weights)
            return float(sum((h * w.detach()).sum() for h, w in zip(curved, weights, strict=True)))
        loss = network(ones).sum() if name == "dss" else F.cross_entropy(network(patches), labels)
        grads = dict(zip(linear, torch.autograd.grad(loss, weights), strict=True))
        salient = {n: (grads[n] * w.detach()).abs().sum() for n, w in linear.items()}
        if name == "snip":
            return float(sum(salient.values()))
        attention = [n for n in linear if "attention" in n]
        attends = any(isinstance(module, Attention) for module in network.modules())
        assert attends == bool(attention), f"the attention of {architecture} has another name"
        for n in attention:
            nuclear = (torch.linalg.svdvals(m.detach()).sum() for m in (grads[n], linear[n]))
            salient[n] = math.prod(nuclear)
        return float(sum(salient.values()))

    return lambda architectures: [one(architecture) for architecture in architectures]


def proxies(bench: Bench) -> None:
    """Architectures a second, beside the plain loop on the device and the CPU's cores."""
    from hytas.workers import open_workers

    with open_workers("local") as cores:
        proxies_beside(bench, cores)
    reduced_precision(bench)


def proxies_beside(bench: Bench, cores: Any) -> None:
    """The same, with the workers that stand for the CPU's cores."""
    from hytas.proxies import PROXIES as KNOWN

    alone = [name for name, proxy in KNOWN.items() if not proxy.needs_supernet]
    every = ",".join(alone).replace("logsynflow", "logsynflow:domain=symmetric")
    size, unit = bench.size, "architectures/s"
    for space in size.spaces:
        drawn = candidates(size, space)
        for name in (*PROXIES, every):
            what = f"{'all together' if name == every else name}, {space}"
            with bench.attempt(what):

                def speed(device: str, name: str = name, drawn: Sequence[Any] = drawn) -> float:
                    if device == "cpu":
                        score = scorer(size, name, device, workers=cores)
                        return rate(score, drawn, size.seconds, 2 * cores.count)
                    return rate(scorer(size, name, device), drawn, size.seconds)

                found = bench.put_beside_cpu(what, speed, unit)
                if name != every:
                    plain = rate(plain_scorer(size, name, bench.device), drawn, size.seconds)
                    bench.put(what, found, unit, PLAIN, plain)


def reduced_precision(bench: Bench) -> None:
    """SNIP in reduced precision: how fast, and how alike its ranks."""
    import numpy as np

    drawn = candidates(bench.size, "hytas-wide")
    ranked = drawn[:100]
    exact = scorer(bench.size, "snip", bench.device)
    for precision in ("tf32", "bf16") if bench.device == "cuda" else ("bf16",):
        what = f"snip, hytas-wide, {precision}"
        with bench.attempt(what):
            reduced = scorer(bench.size, "snip", bench.device, precision)
            speeds = [rate(score, drawn, bench.size.seconds) for score in (reduced, exact)]
            bench.put(what, speeds[0], "architectures/s", "float32, same device", speeds[1])
            ranks = [np.argsort(np.argsort(score(ranked))) for score in (reduced, exact)]
            kept = float(np.corrcoef(*ranks)[0, 1])
            bench.put(f"{what}: Spearman with float32", kept, f"({len(ranked)} architectures)")


class Clock:
    """A run's report that keeps when each kind of news first and last came."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}

    def __getattr__(self, kind: str) -> Callable[..., None]:
        def note(*_: object, **__: object) -> None:
            now = time.perf_counter() - self.started
            self.first.setdefault(kind, now)
            self.last[kind] = now

        return note

    def parts(self) -> dict[str, float]:
        """Seconds of each part that a run had; the clock is read when the run has ended."""
        end = time.perf_counter() - self.started
        searched = self.last["search"]
        first, last = self.first.get("epoch", end), self.last.get("epoch", end)
        found = {
            "whole run": end,
            "search": searched,
            "race": first - searched,
            "final training": last - first,
            "export, checks, map": end - last,
        }
        return {part: seconds for part, seconds in found.items() if seconds > 0}


def search(bench: Bench) -> None:
    """A whole search and race under 100,000 parameters, on the device and on the CPU alone."""
    import hytas

    population, generations, finalists, first, last = bench.size.search
    config = hytas.RunConfig(
        budget="100K-params",
        population=population,
        generations=generations,
        finalists=finalists,
        race_steps=first,
        recipe=hytas.Recipe(steps=last) if last else hytas.Recipe(epochs=0),
    )

    def run(device: str) -> tuple[dict[str, float], float | None]:
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder:
            outcome = hytas.run_pipeline(
                config, bench.scene, Path(folder) / "run", device=device, report=clock
            )
            accuracy = outcome.metrics["test"]["OA"] if outcome.metrics else None
            return clock.parts(), accuracy

    names = {
        "search": f"search, {population * generations} architectures by DSS",
        "race": f"race, {finalists} finalists from {first} steps on",
        "final training": f"final training, {last} steps at most",
    }
    accuracy_row = "OA of model.onnx"
    parts, accuracy = run(bench.device)
    for part, seconds in parts.items():
        bench.put(names.get(part, part), seconds, "s")
    if accuracy is not None:
        bench.put(accuracy_row, accuracy, "")
    if time.monotonic() > bench.ends:
        return
    with bench.attempt("the same on the CPU alone"):
        others, other = (parts, accuracy) if bench.device == "cpu" else run("cpu")
        for part, seconds in parts.items():
            bench.put(names.get(part, part), seconds, "s", bench.cpu, others.get(part), "less")
        if accuracy is not None:
            bench.put(accuracy_row, accuracy, "", bench.cpu, other, "")


def training_steps(
    bench: Bench, architecture: Mapping[str, Any], device: str, batch: int
) -> tuple[float, int]:
    """Optimiser steps a second of the shipped recipe, and the pixels in a step."""
    import hytas
    from hytas.data import PatchReader
    from hytas.train import LabelledPixels, train

    scene = bench.scene
    pixels = hytas.make_split(scene, patch_size=SIDE).learnable
    scaling = hytas.Preprocessing.fit_scene(scene, pixels)
    reader = PatchReader(scene.cube, SIDE)

    def labelled(chosen: Any) -> Any:
        return LabelledPixels(
            lambda some: scaling.apply(reader(some)),
            chosen,
            scene.targets(chosen),
            scene.classes,
            scaling.dark,
        )

    shape = hytas.InputShape(len(scaling.bands), scene.classes, SIDE)
    network = hytas.build_network(architecture, shape, drop_path=0.1, seed=0)
    an_epoch = math.ceil(len(pixels) / batch)
    # The first epoch warms up.
    recipe = hytas.Recipe(batch_size=batch, epochs=1 + math.ceil(bench.size.steps / an_epoch))
    ends: list[float] = []
    train(
        network,
        labelled(pixels),
        labelled(pixels[:0]),
        recipe,
        seed=0,
        device=device,
        progress=lambda _: ends.append(time.perf_counter()),
    )
    return an_epoch * (len(ends) - 1) / (ends[-1] - ends[0]), min(batch, len(pixels))


def training(bench: Bench) -> None:
    """Pixels a second of a training, in the recipe's batches and in large ones."""
    for title, architecture in bench.networks.items():
        for batch in bench.size.pixels:
            what = f"training, {title}, {batch} pixels a step"
            with bench.attempt(what):

                def speed(
                    device: str, architecture: Any = architecture, batch: int = batch
                ) -> float:
                    steps, pixels = training_steps(bench, architecture, device, batch)
                    return steps * pixels

                bench.put_beside_cpu(what, speed, "pixels/s")


def peak_mib(bench: Bench, what: str, device: str) -> float:
    """Peak memory that a work takes: of the GPU's, or by how far it raised this process's."""
    import torch

    from hytas.deploy.bench import resident_mb

    size, title = bench.size, list(bench.networks)[-1]
    works: dict[str, Callable[[], object]] = {
        "dss": lambda: scorer(size, "dss", device)(candidates(size, "hytas")),
        "snip": lambda: scorer(size, "snip", device)([LARGEST]),
        "plain": lambda: plain_scorer(size, "snip", device)([LARGEST]),
        "training": lambda: training_steps(bench, NETWORKS[title], device, 64),
    }
    before = resident_mb()
    works[what]()
    if device == "cuda":
        return float(torch.cuda.max_memory_allocated()) / 2**20
    return resident_mb() - before


def memory(bench: Bench) -> None:
    """Peak memory of scores and of a training; each in a process of its own."""

    def apart(what: str, device: str) -> float:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(peak_mib, bench, what, device).result()

    titles = {
        "snip": "snip, the largest network of hytas",
        "dss": f"dss, {bench.size.candidates} networks of hytas",
        "training": f"training, {list(bench.networks)[-1]}, 64 pixels a step",
    }
    for what in bench.size.memory:
        title = titles[what]
        with bench.attempt(title):
            found = bench.put_beside_cpu(title, lambda at, of=what: apart(of, at), "MiB", "")
            if what == "snip":
                bench.put(title, found, "MiB", PLAIN, apart("plain", bench.device), "less")


def untrained(bench: Bench, architecture: Mapping[str, Any], path: Path) -> Any:
    """An untrained model of the scene, which is also written to `path` as an ONNX file."""
    import hytas
    from hytas.export import describe, export_onnx
    from hytas.models import SensorModel

    scene = bench.scene
    scaling = hytas.Preprocessing.fit_scene(scene, hytas.make_split(scene).learnable)
    shape = hytas.InputShape(len(scaling.bands), scene.classes, SIDE)
    model = SensorModel(hytas.build_network(architecture, shape), scaling).eval()
    export_onnx(model, path, describe(scene, scaling, architecture, shape))
    return model


def inference(bench: Bench) -> None:
    """onnxruntime on the device, beside the CPU's cores and torch eager."""
    with tempfile.TemporaryDirectory() as folder:
        for place, (title, architecture) in enumerate(bench.networks.items()):
            file = Path(folder) / f"{place}.onnx"
            model = untrained(bench, architecture, file)
            with bench.attempt(f"onnxruntime, whole scene, {title}"):
                whole_scene(bench, f"onnxruntime, whole scene, {title}", file)
            for batch in reversed(bench.size.batches):
                what = f"onnxruntime, {title}, {batch} patches a call"
                with bench.attempt(what):
                    calls(bench, what, file, model, batch)


def onnxruntime_speed(
    bench: Bench, what: str, unit: str, speed: Callable[[str], float]
) -> float | None:
    """Keep the speed on the device beside the CPU's, or the CPU's alone where that is all."""
    import onnxruntime

    from hytas.deploy import working_providers

    if bench.device in working_providers():
        return bench.put_beside_cpu(what, speed, unit)
    bench.put(f"{what}, CPU alone", speed("cpu"), unit)
    bench.say(
        what,
        f"not measured: onnxruntime {onnxruntime.__version__} has no provider here for "
        f"{bench.device}; onnxruntime-gpu has one for CUDA",
    )
    return None


def whole_scene(bench: Bench, what: str, file: Path) -> None:
    """Pixels a second of classifying the scene, as `hytas classify` does."""
    import hytas

    def speed(provider: str) -> float:
        deployed = hytas.DeployedModel.load(file, provider)
        start = time.perf_counter()
        hytas.classify_scene(deployed, bench.scene.cube)
        return bench.scene.height * bench.scene.width / (time.perf_counter() - start)

    onnxruntime_speed(bench, what, "pixels/s", speed)


def calls(bench: Bench, what: str, file: Path, model: Any, batch: int) -> None:
    """Patches a second, `batch` a call, by onnxruntime and by torch eager."""
    import torch

    import hytas
    from hytas.deploy.bench import example

    deployed = hytas.DeployedModel.load(file, "cpu")
    raw = example(deployed, (batch, SIDE, SIDE, bench.scene.bands))
    seconds = bench.size.seconds

    def speed(provider: str) -> float:
        opened = hytas.DeployedModel.load(file, provider, one_call=True)
        return batch / median_seconds(lambda: opened.run(raw), "cpu", seconds)

    found = onnxruntime_speed(bench, what, "patches/s", speed)
    model, patches = model.to(bench.device), torch.from_numpy(raw)

    def eager() -> None:  # with both copies, as onnxruntime's call has them
        with torch.inference_mode():
            model(patches.to(bench.device)).cpu()

    other = batch / median_seconds(eager, bench.device, seconds)
    if found is None:
        bench.put(what.replace("onnxruntime", "torch eager"), other, "patches/s")
    else:
        bench.put(what, found, "patches/s", "torch eager, same device", other)


class Section(NamedTuple):
    """A section: what it does, and how many of the seconds are its share."""

    run: Callable[[Bench], None]
    share: float


SECTIONS = {
    "machine": Section(machine, 40),
    "tests": Section(tests, 70),
    "proxies": Section(proxies, 95),
    "search": Section(search, 125),
    "training": Section(training, 40),
    "memory": Section(memory, 40),
    "inference": Section(inference, 50),
}


# What runs the sections.


def run_section(name: str, options: argparse.Namespace, seconds: float, folder: Path) -> list[Row]:
    """The rows of a section, measured in a process of its own within `seconds`."""
    rows, log = folder / f"{name}.jsonl", folder / f"{name}.log"
    rows.touch()
    command = [sys.executable, __file__, "--device", options.device, "--size", options.size]
    command += ["--data", options.data, "--section", name, "--rows", str(rows)]
    command += ["--seconds", str(seconds)]
    # Threads that wait for each other soon sleep, as in the commands of hytas.
    environment = {"GOMP_SPINCOUNT": "3000", "PYTHONUNBUFFERED": "1"} | os.environ
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=file, stderr=file, start_new_session=True
        )
        try:
            status = process.wait(seconds)
            reason = "" if status == 0 else last_words(log, status)
        except subprocess.TimeoutExpired:
            reason = f"took longer than the {seconds:.0f} s left to it"
        finally:
            end(process)
    found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    if reason:
        found.append({"what": f"section {name}", "measured": f"failed: {reason}"})
    if any(failed(row) for row in found):
        words = log.read_text(encoding="utf-8").splitlines()[-40:]
        print("\n".join([f"--- the log of {name} ends:", *words, "---"]), file=sys.stderr)
    return found


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a section and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_words(log: Path, status: int) -> str:
    """Why a section ended."""
    words = log.read_text(encoding="utf-8").strip().splitlines() or ["no output"]
    return f"signal {-status} ended it" if status < 0 else words[-1][:200]


def failed(row: Row) -> bool:
    """Whether a row stands for something that should have worked."""
    return str(row["measured"]).startswith("failed")


def table(found: Mapping[str, tuple[float, list[Row]]], options: argparse.Namespace) -> str:
    """The page: the machine, and one table of all rows.

    Args:
        found: of each section the seconds that it took, and its rows.
    """
    facts = {
        row["fact"]: row["measured"] for _, rows in found.values() for row in rows if "fact" in row
    }
    spent = sum(seconds for seconds, _ in found.values())
    lines = [
        f"# GPU benchmarks: {facts.pop('name', options.device)}",
        "",
        f"`python benchmarks/gpu.py --device {options.device} --size {options.size}`, "
        f"{time.strftime('%Y-%m-%d')}, {spent:.0f} s.",
        "",
        *(f"- {what}: {words}" for what, words in facts.items()),
        "",
        "| section | what | measured | beside it | | times better |",
        "|---|---|---|---|---|---|",
    ]
    for name, (seconds, rows) in found.items():
        figures = [row for row in rows if "fact" not in row]
        compared = {row["what"] for row in figures if row.get("beside")}
        section = f"{name}, {seconds:.0f} s"
        for row in figures:
            if not row.get("beside") and row["what"] in compared:
                continue  # it stands again beside something
            cells = [section, *(row.get(key, "") for key in ("what", "measured"))]
            cells += [row.get(key, "") for key in ("beside", "other", "ratio")]
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
            section = ""
    return "\n".join(lines) + "\n"


def run_all(options: argparse.Namespace) -> int:
    """Run the sections, write the table after each, and print it; 1 if anything failed."""
    # Sections have sessions of their own: who ends this process shall end them, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    found: dict[str, tuple[float, list[Row]]] = {}
    started = time.monotonic()
    names = list(options.sections)
    out: Path = options.out
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(names):
            shares = sum(SECTIONS[later].share for later in names[place:])
            left = options.seconds - (time.monotonic() - started)
            seconds = max(left * SECTIONS[name].share / shares, 0.0)
            print(f"{name}: at most {seconds:.0f} s", file=sys.stderr, flush=True)
            begun = time.monotonic()
            rows = run_section(name, options, seconds, Path(folder))
            found[name] = time.monotonic() - begun, rows
            out.write_text(table(found, options), encoding="utf-8")
            if name == "machine" and not any("fact" in row for row in rows):
                return 2  # nothing can be measured here, and its log says why
    print(out.read_text(encoding="utf-8"))
    print(f"written to {out}", file=sys.stderr)
    return int(any(failed(row) for _, rows in found.values() for row in rows))


def no_cuda(torch_version: str) -> str:
    """What to say where the GPU is missing."""
    return (
        f"--device cuda: torch {torch_version} finds no CUDA device here; "
        "make gpu DEVICE=cpu is the rehearsal without one"
    )


def lacking() -> tuple[list[str], list[str]]:
    """What building hytas with the packages that are here lacks, and what running it lacks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    def absent(requirements: Sequence[str]) -> list[str]:
        names = [re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements]
        return [name for name in dict.fromkeys(names) if not is_installed(name)]

    building = absent(project["build-system"]["requires"])
    compilers = [os.environ.get("CXX", "c++"), "g++", "clang++"]
    if not any(shutil.which(name) for name in compilers):
        building.append("a C++ compiler")
    if not (shutil.which("cmake") or importlib.util.find_spec("cmake")):
        building.append("cmake")
    running = absent([*project["project"]["dependencies"], "pytest"])
    # The one or the other: which is the platform's choice.
    if is_installed("onnxruntime") or is_installed("onnxruntime-gpu"):
        running = [name for name in running if not name.startswith("onnxruntime")]
    return building, running


def is_installed(name: str) -> bool:
    """Whether a distribution of that name is there."""
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def check(device: str) -> None:
    """Refuse, before hytas is built with the packages that are here, what cannot end well."""
    building, running = lacking()
    without = [name for name in (*building, *running) if name in (*building, "torch", "numpy")]
    if without:
        raise SystemExit(
            f"{sys.executable} lacks {', '.join(without)}: hytas can be neither built nor run "
            "with it; name an interpreter that has them (make gpu VENV= PYTHON=...), or leave "
            "VENV out to install them where there is a network"
        )
    if running:
        print(f"{sys.executable} lacks {', '.join(running)}; going on without", file=sys.stderr)
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(no_cuda(torch.__version__))


def scene_here() -> str:
    """The file of Indian Pines, or "synthetic"."""
    shared = os.environ.get("HYTAS_SHARED")
    folders = [Path(shared)] if shared else [ROOT.parent / "shared", ROOT / "shared"]
    files = [folder / SCENE for folder in folders if (folder / SCENE).is_file()]
    return str(files[0]) if files else "synthetic"


def main() -> int:
    """Run one section where that is asked for, else all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--size", choices=SIZES, help="default: full; on the CPU small")
    parser.add_argument("--data", help="scene; default: Indian Pines where it is found")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all sections")
    parser.add_argument(
        "--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="only these"
    )
    parser.add_argument("--out", type=Path, help="default: runs/gpu-DEVICE.md")
    parser.add_argument("--check", action="store_true", help="only tell what is missing here")
    parser.add_argument("--section", choices=SECTIONS, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.size = options.size or ("full" if options.device == "cuda" else "small")
    options.data = options.data or scene_here()
    options.out = options.out or ROOT / "runs" / f"gpu-{options.device}.md"
    if options.check:
        check(options.device)
        return 0
    if options.section is None:
        return run_all(options)
    ends = time.monotonic() + CPU_UNTIL * options.seconds
    bench = Bench(options.device, SIZES[options.size], options.data, options.rows, ends)
    SECTIONS[options.section].run(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
