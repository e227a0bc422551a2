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
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[1]
SCENE = "data/IndianPine.mat"
SECONDS = {"cuda": 280.0, "cpu": 900.0}
"""For all sections; with the building of hytas before it, `make gpu` takes five minutes."""
SIDE = 7
Row = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """How much is done.

    Attributes:
        search: population and generations of the search by DSS.
        every: candidates that all proxies score.
        steps: optimiser steps of a training that is timed, 64 pixels each.
        run: settings of whole runs beside their budget.
    """

    search: tuple[int, int]
    every: int
    steps: int
    run: dict[str, Any]


SHORT = {"population": 8, "generations": 2, "finalists": 2, "race_steps": 4, "steps": 8}
SIZES = {"full": Size((50, 20), 50, 1000, {}), "small": Size((10, 2), 2, 20, SHORT)}
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
    """What a section is given, and where its rows go."""

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
            import traceback

            traceback.print_exc()
            self.say(what, f"failed: {type(error).__name__}: {' '.join(str(error).split())}"[:200])

    @property
    def devices(self) -> list[str]:
        """The device, and the CPU beside it."""
        return list(dict.fromkeys([self.device, "cpu"]))

    @cached_property
    def scene(self) -> Any:
        """Indian Pines, or a synthetic scene of the size's extent."""
        import hytas

        if self.data != "synthetic":
            return hytas.load_scene(self.data)
        return hytas.synthetic_scene(height=56, width=56, bands=64)

    def _write(self, **row: Any) -> None:
        with self.rows.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


# The sections.


def machine(bench: Bench) -> None:
    """What the figures were measured on."""
    import torch

    import hytas

    name = "CPU, a rehearsal whose figures mean nothing"
    if bench.device == "cuda":
        device = torch.cuda.get_device_properties(0)
        name = f"{device.name}, {device.total_memory / 2**30:.0f} GiB"
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    scene = bench.scene
    bench.say("device", name)
    bench.say("processor", f"{processor()}, {os.cpu_count()} cores")
    bench.say("software", f"hytas {hytas.__version__} {commit}, torch {torch.__version__}")
    bench.say("scene", f"{scene.name}, {scene.height} x {scene.width} x {scene.bands}")


def processor() -> str:
    """The processor's name."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.machine())


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
    lines = (done.stdout.strip() or done.stderr.strip() or "no output").splitlines()
    bad = [line for line in lines if line.startswith(("FAILED", "ERROR", "SKIPPED"))]
    words = "; ".join([lines[-1].strip("= "), *bad])
    passed = done.returncode == 0 and " passed" in lines[-1]
    bench.say("tests marked gpu", words if passed else f"failed: {words}")


def scores(bench: Bench) -> None:
    """A search by DSS, and scores of its last candidates alone, by DSS and by all proxies."""
    import hytas
    from hytas.proxies import PROXIES, proxy_batch, with_workers

    scene = bench.scene
    pixels = hytas.make_split(scene, patch_size=SIDE).train_and_validation
    scaling = hytas.Preprocessing.fit_scene(scene, pixels)
    shape = hytas.InputShape(len(scaling.bands), scene.classes, SIDE)
    batch = proxy_batch(scene, pixels, scaling, SIDE)
    names = [name for name, proxy in PROXIES.items() if proxy.observes]
    every = ",".join(names).replace("logsynflow", "logsynflow:domain=symmetric")
    population, generations = bench.size.search
    count = population * generations
    last: list[dict[str, Any]] = []
    for device in bench.devices:
        with bench.attempt(f"search on {device}"):
            evaluator = hytas.Evaluator("dss", shape, device=device)
            evaluator.score([CONV, WIDE])  # the device starts
            # A run searches by DSS on the CPU, with all cores.
            with with_workers(evaluator, None) as scorer:
                begun = time.perf_counter()
                found = evolved(shape, scorer, population, generations)
                title = f"search, {count} candidates of 100K-params by DSS"
                bench.put(title, device, time.perf_counter() - begun, "s", "less")
                last = last or found[-5 * population :]
            for text, some in (("dss", last), (every, last[-bench.size.every :])):
                what = "DSS" if text == "dss" else f"all {len(names)} proxies"
                alone = hytas.Evaluator(text, shape, batch=batch, device=device)
                alone.score(some[:2])
                begun = time.perf_counter()
                alone.score(some)
                rate = len(some) / (time.perf_counter() - begun)
                title = f"{what}, {len(some)} evolved candidates in one process"
                bench.put(title, device, rate, "a second")


def evolved(shape: Any, scorer: Any, population: int, generations: int) -> list[dict[str, Any]]:
    """The candidates of a search by DSS, in their order."""
    from hytas import Feasible
    from hytas.proxies import fitness, parse_proxies
    from hytas.search import EvaluationStore, SearchSettings, search
    from hytas.spaces import open_space

    space, budget = open_space("hytas-wide", "100K-params", offered=shape.variables())
    (spec,) = parse_proxies("dss")
    settings = SearchSettings(population=population, generations=generations)
    with (
        tempfile.TemporaryDirectory() as folder,
        EvaluationStore(Path(folder) / "evaluations.sqlite") as store,
    ):
        search(
            Feasible(space, budget),
            scorer,
            lambda items: fitness(spec, [item.scores for item in items]),
            settings,
            store,
        )
        return [item.architecture for item in store.evaluations()]


def training(bench: Bench) -> None:
    """Optimiser steps a second of the shipped recipe, 64 pixels each, on one thread of a CPU."""
    import torch

    torch.set_num_threads(1)
    for title, architecture in NETWORKS.items():
        for device in bench.devices:
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
    import hytas
    from hytas.data import PatchReader
    from hytas.train import LabelledPixels, loop, train
    from hytas.train.captured import ResidentSteps, captured_steps

    on_cpu = device == "cpu"  # which runs the same steps without a capture, as a rehearsal
    steps_of = (ResidentSteps if on_cpu else captured_steps) if captured else lambda *_: None
    scene = bench.scene
    split = hytas.make_split(scene, patch_size=SIDE)
    scaling = hytas.Preprocessing.fit_scene(scene, split.train_and_validation)
    reader = PatchReader(scene.cube, SIDE)
    training, watched = (
        LabelledPixels(
            lambda some: scaling.apply(reader(some)),
            chosen,
            scene.targets(chosen),
            scene.classes,
            scaling.dark,
        )
        for chosen in (split.train_and_validation, split.validation)
    )
    shape = hytas.InputShape(len(scaling.bands), scene.classes, SIDE)
    network = hytas.build_network(architecture, shape, drop_path=0.1, seed=0)
    share = 50 if on_cpu else 1 if captured else 5
    steps, an_epoch = max(1, bench.size.steps // share), math.ceil(len(training) / 64)
    recipe = hytas.Recipe(batch_size=64, epochs=1 + math.ceil(steps / an_epoch))
    ends: list[float] = []
    begun = time.perf_counter()
    with mock.patch.object(loop, "captured_steps", steps_of):
        train(
            network,
            training,
            watched,
            recipe,
            seed=0,
            device=device,
            progress=lambda _: ends.append(time.perf_counter()),
        )
    return an_epoch * (len(ends) - 1) / (ends[-1] - ends[0]), ends[0] - begun


class Clock:
    """The report of a run: it keeps a row for each stage that ends.

    Args:
        put: takes the name of a stage and its seconds.
    """

    def __init__(self, put: Callable[[str, float], None]) -> None:
        self.put = put
        self.begun = self.stage_begun = time.perf_counter()
        self.name = "start"

    def __getattr__(self, event: str) -> Callable[..., None]:
        return lambda *_, **__: None  # other events of a report

    def stage(self, name: str) -> None:
        """Keep the row of the stage before."""
        now = time.perf_counter()
        self.put(self.name, now - self.stage_begun)
        self.name, self.stage_begun = name, now


def whole_run(budget: str, on_cpu: bool = False) -> Callable[[Bench], None]:
    """Return a section: `hytas search` with the defaults, on the device or on the CPU."""

    def section(bench: Bench) -> None:
        import hytas

        if on_cpu and bench.device == "cpu":
            return  # that was measured already
        settings = dict(bench.size.run)
        if steps := settings.pop("steps", 0):
            settings["recipe"] = hytas.Recipe(steps=steps)
        config = hytas.RunConfig(budget=budget, **settings)
        device = "cpu" if on_cpu else bench.device
        clock = Clock(lambda part, took: bench.put(f"{part}, {budget}", device, took, "s", "less"))
        with tempfile.TemporaryDirectory() as folder:
            outcome = hytas.run_pipeline(
                config, bench.scene, Path(folder) / "run", device=device, report=clock
            )
        clock.stage("")
        clock.put("whole run", time.perf_counter() - clock.begun)
        if outcome.metrics:
            bench.put(f"OA, {budget}", device, outcome.metrics["test"]["OA"], "", "")

    return section


SECTIONS: dict[str, tuple[Callable[[Bench], None], float]] = {
    "machine": (machine, 20),
    "tests": (tests, 50),
    "scores": (scores, 35),
    "training": (training, 30),
    "run": (whole_run("100K-params"), 45),
    "run-2M": (whole_run("2M-params"), 75),
    "run-cpu": (whole_run("100K-params", on_cpu=True), 100),
}
"""Name -> what it does, and how many of the seconds are its share."""


# What runs the sections.


def run_section(name: str, options: argparse.Namespace, seconds: float, folder: Path) -> list[Row]:
    """The rows of a section, measured in a process of its own within `seconds`."""
    rows, log = folder / f"{name}.jsonl", folder / f"{name}.log"
    rows.touch()
    command = [sys.executable, __file__, "--device", options.device, "--size", options.size]
    command += ["--data", options.data, "--section", name, "--rows", str(rows)]
    # Threads that wait for each other soon sleep, as in the commands of hytas.
    environment = {"GOMP_SPINCOUNT": "3000", "PYTHONUNBUFFERED": "1"} | os.environ
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=file, stderr=file, start_new_session=True
        )
        try:
            status = process.wait(seconds)
            words = log.read_text(encoding="utf-8").strip().splitlines() or ["no output"]
            reason = words[-1][:200] if status > 0 else f"signal {-status} ended it"
            reason = "" if status == 0 else reason
        except subprocess.TimeoutExpired:
            reason = f"took longer than the {seconds:.0f} s left to it"
        finally:  # and all that it started
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    if reason:
        found.append({"what": f"section {name}", "words": f"failed: {reason}"})
    if any(failed(row) for row in found):
        lines = log.read_text(encoding="utf-8").splitlines()[-40:]
        print("\n".join([f"--- the log of {name} ends:", *lines, "---"]), file=sys.stderr)
    return found


def failed(row: Row) -> bool:
    """Whether a row stands for something that should have worked."""
    return str(row.get("words", "")).startswith("failed")


def number(value: float) -> str:
    """Three digits, and no exponent where a person can do without."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Sequence[Row], options: argparse.Namespace, seconds: float) -> str:
    """The page: the machine, and a table with a line for each thing that was measured."""
    lines = [
        "# GPU benchmarks",
        "",
        f"`python benchmarks/gpu.py --device {options.device} --size {options.size}`, "
        f"{time.strftime('%Y-%m-%d')}, {seconds:.0f} s.",
        "",
        "| what | GPU | CPU | times better |",
        "|---|---|---|---|",
    ]
    figures: dict[str, dict[str, Row]] = {}
    for row in rows:
        if "value" in row:
            figures.setdefault(row["what"], {})[row["device"]] = row
    for what, of in figures.items():
        cells = [
            f"{number(of[device]['value'])} {of[device]['unit']}".strip() if device in of else ""
            for device in ("cuda", "cpu")
        ]
        better = next(iter(of.values()))["better"]
        ratio = ""
        if len(of) == 2 and better:
            gpu, cpu = (of[device]["value"] for device in ("cuda", "cpu"))
            ratio = number(gpu / cpu if better == "more" else cpu / gpu)
        lines.append(f"| {' | '.join([what, *cells, ratio])} |")
    for row in rows:
        if "words" in row and "what" in row:
            lines.append(f"| {row['what']} | {row['words'].replace('|', '/')} | | |")
    return "\n".join(lines) + "\n"


def run_all(options: argparse.Namespace) -> int:
    """Run the sections, write the table after each, and print it; 1 if anything failed."""
    # Sections have sessions of their own: who ends this process shall end them, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rows: list[Row] = []
    started = time.monotonic()
    names = list(options.sections)
    out: Path = options.out
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(names):
            shares = sum(SECTIONS[later][1] for later in names[place:])
            left = options.seconds - (time.monotonic() - started)
            seconds = max(left * SECTIONS[name][1] / shares, 0.0)
            print(f"{name}: at most {seconds:.0f} s", file=sys.stderr, flush=True)
            rows += run_section(name, options, seconds, Path(folder))
            out.write_text(table(rows, options, time.monotonic() - started), encoding="utf-8")
    print(out.read_text(encoding="utf-8"))
    print(f"written to {out}", file=sys.stderr)
    return int(any(failed(row) for row in rows))


def check(device: str, building: bool) -> None:
    """Refuse what cannot end well, also before hytas is built with the packages that are here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], "pytest"]
    wanted += project["build-system"]["requires"] if building else []
    names = [re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in wanted]
    lacking = [name for name in dict.fromkeys(names) if not is_installed(name)]
    if is_installed("onnxruntime-gpu"):
        lacking = [name for name in lacking if name != "onnxruntime"]
    if lacking:
        raise SystemExit(
            f"{sys.executable} lacks {', '.join(lacking)}: name an interpreter that has them (make "
            "gpu VENV= PYTHON=...), or leave VENV out to install them where there is a network"
        )
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            f"--device cuda: torch {torch.__version__} finds no CUDA device here; "
            "make gpu DEVICE=cpu is the rehearsal without one"
        )


def is_installed(name: str) -> bool:
    """Whether a distribution of that name is there."""
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


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
    parser.add_argument(
        "--data", help="scene; default: Indian Pines where it is found; on the CPU synthetic"
    )
    parser.add_argument(
        "--seconds", type=float, help="for all sections; default: 280, on the CPU 900"
    )
    parser.add_argument(
        "--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="only these"
    )
    parser.add_argument("--out", type=Path, help="default: runs/gpu-DEVICE.md")
    parser.add_argument("--check", action="store_true", help="only tell what is missing here")
    parser.add_argument("--section", choices=SECTIONS, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.size = options.size or ("full" if options.device == "cuda" else "small")
    options.data = options.data or (scene_here() if options.device == "cuda" else "synthetic")
    options.seconds = options.seconds or SECONDS[options.device]
    options.out = options.out or ROOT / "runs" / f"gpu-{options.device}.md"
    if options.check or options.section is None:
        check(options.device, options.check)
    if options.check:
        return 0
    if options.section is None:
        return run_all(options)
    bench = Bench(options.device, SIZES[options.size], options.data, options.rows)
    SECTIONS[options.section][0](bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
