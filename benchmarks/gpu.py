"""One table of what a GPU does for hytas, next to the CPU of the same machine.

    make gpu                # python benchmarks/gpu.py [--data IndianPine.mat] [--out runs/gpu.md]
    make gpu DEVICE=cpu     # the rehearsal: the same code on the CPU, with small sizes

It has the tests marked gpu, scores, training steps and whole runs. Each section runs in a process
of its own, with its share of the seconds that are left. A section that fails or takes longer leaves
a row that says so, with the rows that it wrote before. The table is written after every section.
"""

import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("HYTAS_SHARED", ROOT.parent / "shared"))
SCENE = SHARED / "data" / "IndianPine.mat"
Row = dict[str, Any]


class Size(NamedTuple):
    """How much is done.

    Attributes:
        seconds: for all sections. With the building of hytas, `make gpu` takes five minutes.
        search: population and generations of the search by DSS.
        steps: optimiser steps of a training that is timed.
        run: settings of whole runs.
    """

    seconds: float
    search: tuple[int, int]
    steps: int
    run: dict[str, Any]


SHORT = {"population": 8, "generations": 2, "finalists": 2, "race_steps": 4, "steps": 8}
SIZES = {"cuda": Size(280, (50, 20), 1000, {}), "cpu": Size(900, (10, 2), 20, SHORT)}
# Like winners of a search under 100K-params and under 2M-params.
CONV: dict[str, Any] = json.loads("""{
    "space": "hytas-wide", "tokens": "pixel", "patch": 7, "pooling": "mean", "fusion": "no",
    "embed_dim": 80, "band_width": 3, "band_stride": 2, "band_mixer": "attention",
    "band_gate": "no", "band_heads": 2, "band_depth": 0, "band_mlp": [], "pixel_mixer": "conv3",
    "pixel_gate": "yes", "pixel_heads": 2, "pixel_depth": 2, "pixel_mlp": [2, 2]
}""")
WIDE = {**CONV, "pixel_mixer": "attention", "pooling": "class", "embed_dim": 192}
NETWORKS = {"gated convolutions, width 80": CONV, "gated attention, width 192": WIDE}


@dataclass
class Bench:
    """What a section reads, and the file of its rows."""

    device: str
    size: Size
    data: str
    rows: Path

    def put(self, what: str, device: str, value: float, unit: str, better: str = "more") -> None:
        """Keep a figure of a device, of which more or less is better."""
        self._write(what=what, device=device, value=value, unit=unit, better=better)

    def say(self, what: str, words: str) -> None:
        """Keep a row of words."""
        self._write(what=what, words=words)

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Leave a row if what is inside fails, and go on."""
        try:
            yield
        except Exception as error:
            traceback.print_exc()
            self.say(what, f"failed: {type(error).__name__}: {' '.join(str(error).split())}"[:200])

    @cached_property
    def scene(self) -> Any:
        """The scene of a file, or a synthetic one."""
        import hytas

        if self.data != "synthetic":
            return hytas.load_scene(self.data)
        return hytas.synthetic_scene(height=56, width=56, bands=64)

    @cached_property
    def prepared(self) -> Any:
        """The scene with its split and scaling, for patches of 7 x 7 pixels."""
        from hytas.run import RunConfig
        from hytas.run.prepared import prepare_scene

        return prepare_scene(RunConfig(budget="100K-params", patch_size=7), self.scene)

    def _write(self, **row: Any) -> None:
        with self.rows.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def machine(bench: Bench) -> None:
    """What the figures were measured on."""
    import torch

    import hytas

    name = "CPU, a rehearsal whose figures mean nothing"
    if bench.device == "cuda":
        device = torch.cuda.get_device_properties(0)
        name = f"{device.name}, {device.total_memory / 2**30:.0f} GiB"
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    scene = bench.scene
    bench.say("device", name)
    bench.say("processor", f"{processor[1] if processor else '?'}, {os.cpu_count()} cores")
    bench.say("software", f"hytas {hytas.__version__} {commit}, torch {torch.__version__}")
    bench.say("scene", f"{scene.name}, {scene.height} x {scene.width} x {scene.bands}")


def tests(bench: Bench) -> None:
    """The tests marked gpu."""
    # What the project's own settings ask for, such as that no library warns, is not the question.
    command = [sys.executable, "-m", "pytest", "tests/device", "-m", "gpu", "-q", "-ra"]
    command += ["-o", "addopts=", "-o", "filterwarnings=default", "-p", "no:cacheprovider"]
    environment = os.environ | {"HYTAS_TEST_DEVICE": bench.device, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr, file=sys.stderr)
    lines = ["no output", *done.stderr.splitlines(), *done.stdout.splitlines()]
    bad = [line for line in lines if line.startswith(("FAILED", "ERROR", "SKIPPED"))]
    passed = done.returncode == 0 and " passed" in lines[-1]
    words = "; ".join([lines[-1].strip("= "), *bad])
    bench.say("tests marked gpu", words if passed else f"failed: {words}")


def scores(bench: Bench) -> None:
    """A search by DSS as a run does it."""
    from hytas.proxies import Evaluator, with_workers

    shape, (population, generations) = bench.prepared.shape, bench.size.search
    for device in dict.fromkeys([bench.device, "cpu"]):
        with bench.attempt(f"search on {device}"):
            evaluator = Evaluator("dss", shape, device=device)
            evaluator.score([CONV, WIDE])  # the device starts
            # A run searches by DSS on the CPU, with all cores.
            with with_workers(evaluator, None) as scorer:
                begun = time.perf_counter()
                evolved(shape, scorer, population, generations)
                title = f"search, {population * generations} candidates of 100K-params by DSS"
                bench.put(title, device, time.perf_counter() - begun, "s", "less")


def evolved(shape: Any, scorer: Any, population: int, generations: int) -> None:
    """Search by DSS."""
    from hytas import Feasible
    from hytas.search import EvaluationStore, StrategySettings, search
    from hytas.spaces import open_space

    feasible = Feasible(*open_space("hytas-wide", "100K-params", offered=shape.variables()))
    settings = StrategySettings(population=population, generations=generations)

    def by_score(items: Sequence[Any]) -> list[float]:
        return [item.scores["dss"] for item in items]

    with (
        tempfile.TemporaryDirectory() as folder,
        EvaluationStore(Path(folder) / "evaluations.sqlite") as store,
    ):
        search(feasible, scorer, by_score, settings, store)


def training(bench: Bench) -> None:
    """Optimiser steps a second of the shipped recipe, 64 pixels each, on one thread of a CPU."""
    import torch

    torch.set_num_threads(1)
    for title, architecture in NETWORKS.items():
        for device in dict.fromkeys([bench.device, "cpu"]):
            for captured in (False, True) if device == bench.device else (False,):
                what = f"{'captured' if captured else 'single'} operations, {title}"
                with bench.attempt(f"training on {device}, {what}"):
                    rate, begin = training_steps(bench, architecture, device, captured)
                    bench.put(f"training steps, {what}", device, rate, "a second")
                    bench.put(f"until the second epoch, {what}", device, begin, "s", "less")


def training_steps(
    bench: Bench, architecture: Mapping[str, Any], device: str, captured: bool
) -> tuple[float, float]:
    """Optimiser steps a second after the first epoch, and the seconds until then."""
    from hytas.models import build_network
    from hytas.train import Recipe, loop, train
    from hytas.train.captured import ResidentSteps, captured_steps

    on_cpu = device == "cpu"  # which runs the same steps without a capture, as a rehearsal
    steps_of = (ResidentSteps if on_cpu else captured_steps) if captured else lambda *_: None
    data = bench.prepared
    chosen, watched = map(data.labelled, (data.split.train_and_validation, data.split.validation))
    network = build_network(architecture, data.shape, drop_path=0.1, seed=0)
    share = 50 if on_cpu else 1 if captured else 5
    steps, an_epoch = max(1, bench.size.steps // share), math.ceil(len(chosen) / 64)
    recipe = Recipe(batch_size=64, epochs=1 + math.ceil(steps / an_epoch))
    ends: list[float] = []

    def note(_: object) -> None:
        ends.append(time.perf_counter())

    begun = time.perf_counter()
    with mock.patch.object(loop, "captured_steps", steps_of):
        train(network, chosen, watched, recipe, seed=0, device=device, progress=note)
    return an_epoch * (len(ends) - 1) / (ends[-1] - ends[0]), ends[0] - begun


def whole_run(budget: str, bench: Bench, device: str = "") -> None:
    """`hytas search` with the defaults, on the device or on the CPU; a row for each stage."""
    from hytas.job import run_pipeline
    from hytas.run import Report, RunConfig
    from hytas.train import Recipe

    device, settings = device or bench.device, dict(bench.size.run)
    recipe = Recipe(steps=settings.pop("steps", Recipe().steps))
    begun = time.perf_counter()

    class Clock(Report):
        name, since = "start", begun

        def stage(self, name: str) -> None:
            now = time.perf_counter()
            bench.put(f"{self.name}, {budget}", device, now - self.since, "s", "less")
            self.name, self.since = name, now

    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(budget=budget, recipe=recipe, **settings)
        clock = Clock()
        outcome = run_pipeline(config, bench.scene, f"{folder}/run", device=device, report=clock)
    clock.stage("end")
    bench.put(f"whole run, {budget}", device, time.perf_counter() - begun, "s", "less")
    if outcome.metrics:
        bench.put(f"OA, {budget}", device, outcome.metrics["test"]["OA"], "", "")


SECTIONS: dict[str, tuple[Callable[[Bench], None], float]] = {
    "machine": (machine, 20),
    "tests": (tests, 50),
    "scores": (scores, 35),
    "training": (training, 30),
    "run": (partial(whole_run, "100K-params"), 45),
    "run-2M": (partial(whole_run, "2M-params"), 75),
    "run-cpu": (partial(whole_run, "100K-params", device="cpu"), 100),
}
"""Name -> what it does, and how many of the seconds are its share."""


def run_section(name: str, options: argparse.Namespace, seconds: float, folder: Path) -> list[Row]:
    """The rows of a section, measured in a process of its own within `seconds`."""
    rows, log = folder / f"{name}.jsonl", folder / f"{name}.log"
    rows.touch()
    command = [sys.executable, __file__, "--device", options.device, "--data", options.data]
    command += ["--section", name, "--rows", str(rows)]
    # Threads that wait for each other soon sleep, as in the commands of hytas.
    environment = {"GOMP_SPINCOUNT": "3000", "PYTHONUNBUFFERED": "1"} | os.environ
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=file, stderr=file, start_new_session=True
        )
        try:
            status = process.wait(seconds)
            reason = f"signal {-status} ended it" if status < 0 else ""
        except subprocess.TimeoutExpired:
            status, reason = 0, f"took longer than the {seconds:.0f} s left to it"
        finally:  # and all that it started
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    log_end = ["no output", *log.read_text(encoding="utf-8").strip().splitlines()][-40:]
    reason = log_end[-1][:200] if status > 0 else reason
    if reason:
        found.append({"what": f"section {name}", "words": f"failed: {reason}"})
    if any(map(failed, found)):
        print(f"--- the log of {name} ends:", *log_end, "---", sep="\n", file=sys.stderr)
    return found


def failed(row: Row) -> bool:
    """Whether a row stands for something that should have worked."""
    return str(row.get("words", "")).startswith("failed")


def number(value: float) -> str:
    """Three digits, and no exponent where a person can do without."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Sequence[Row], device: str, seconds: float) -> str:
    """The page: the machine, and a table with a line for each thing that was measured."""
    command = f"`python benchmarks/gpu.py --device {device}`"
    lines = [f"{command}, {time.strftime('%Y-%m-%d')}, {seconds:.0f} s.", ""]
    lines += ["| what | GPU | CPU | times better |", "|---|---|---|---|"]
    figures: dict[str, dict[str, Row]] = {}
    for row in rows:
        if "value" in row:
            figures.setdefault(row["what"], {})[row["device"]] = row
    for what, of in figures.items():
        gpu, cpu = (of.get(device) for device in ("cuda", "cpu"))
        cells = [f"{number(one['value'])} {one['unit']}" if one else "" for one in (gpu, cpu)]
        ratio = ""
        if gpu and cpu and gpu["better"]:
            times = gpu["value"] / cpu["value"]
            ratio = number(times if gpu["better"] == "more" else 1 / times)
        lines.append(f"| {' | '.join([what, *cells, ratio])} |")
    words = [(row["what"], row["words"].replace("|", "/")) for row in rows if "words" in row]
    lines += [f"| {what} | {text} | | |" for what, text in words]
    return "\n".join(lines) + "\n"


def run_all(options: argparse.Namespace) -> int:
    """Run the sections, write the table after each, and print it; 1 if anything failed."""
    # Sections have sessions of their own: who ends this process shall end them, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rows: list[Row] = []
    started = time.monotonic()
    names: list[str] = options.sections
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(names):
            shares = sum(SECTIONS[later][1] for later in names[place:])
            left = options.seconds - (time.monotonic() - started)
            seconds = max(left * SECTIONS[name][1] / shares, 0.0)
            print(f"{name}: at most {seconds:.0f} s", file=sys.stderr, flush=True)
            rows += run_section(name, options, seconds, Path(folder))
            page = table(rows, options.device, time.monotonic() - started)
            options.out.write_text(page, encoding="utf-8")
    print(page, f"written to {options.out}", sep="\n")
    return int(any(map(failed, rows)))


def main() -> int:
    """Run one section where that is asked for, else all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--device", choices=list(SIZES), default="cuda")
    add("--data", help="scene; default: Indian Pines where it is found; on the CPU synthetic")
    add("--seconds", type=float, help="for all sections; default: 280, on the CPU 900")
    add("--sections", nargs="+", choices=SECTIONS, help="only these; on the CPU without run-cpu")
    add("--out", type=Path, help="default: runs/gpu-DEVICE.md")
    add("--section", choices=SECTIONS, help=argparse.SUPPRESS)
    add("--rows", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    real = options.device == "cuda" and SCENE.is_file()
    options.data = options.data or (str(SCENE) if real else "synthetic")
    # On a CPU "run" measures what "run-cpu" would.
    options.sections = options.sections or list(SECTIONS)[: -1 if options.device == "cpu" else None]
    options.seconds = options.seconds or SIZES[options.device].seconds
    options.out = options.out or ROOT / "runs" / f"gpu-{options.device}.md"
    if options.section:
        bench = Bench(options.device, SIZES[options.device], options.data, options.rows)
        SECTIONS[options.section][0](bench)
        return 0
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            f"--device cuda: torch {torch.__version__} finds no CUDA device here; "
            "make gpu DEVICE=cpu is the rehearsal without one"
        )
    return run_all(options)


if __name__ == "__main__":
    sys.exit(main())
