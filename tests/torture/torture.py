"""Kill hytas at random moments, break its disk, run it twice at once: the results stay the same.

    python tests/torture/torture.py [--kills 100] [--faults 20] [--seed 0] [--keep FOLDER]

Each job is a command whose result is known from one undisturbed run. After every disturbance the
same command runs again, and what it leaves must equal that result to the byte. A command that fails
must end with status 2 and one line. The exit status is 1 if anything differs; its folder is kept.
"""

import argparse
import csv
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.io
from faulty import inject

RUN = [sys.executable, "-c", "from hytas.cli.main import run; run()"]
# A server has imported what takes seconds, and each command is a fork of it: moments to be killed
# at then lie in the work, not in the imports.
SERVER = multiprocessing.get_context("forkserver")
CHECKPOINT_SECONDS = 0.1
SHORT = ["--population", "6", "--generations", "2", "--finalists", "4", "--race-steps", "20"]
# What tells seconds, or which process worked; the manifest has the digest of the store.
VARYING = {".lock", "evaluations.sqlite", "manifest.json", "report.html", "run.log", "times.json"}
GIVE_UP = 600.0


@dataclass(frozen=True)
class Job:
    """A command that writes into a folder of its own.

    Attributes:
        name: in the report.
        arguments: of the command, from the folder of the scene and the job's own folder.
        prepared: whether the folder begins as a copy of the finished search.
    """

    name: str
    arguments: Callable[[Path, Path], Sequence[object]]
    prepared: bool = False


def _search(epochs: int) -> Callable[[Path, Path], Sequence[object]]:
    def arguments(scene: Path, out: Path) -> Sequence[object]:
        where = ["--data", scene / "field.mat", "--out", out / "run", "--budget", "60K-params"]
        return ["search", *where, *SHORT, "--epochs", epochs]

    return arguments


def _train(scene: Path, out: Path) -> Sequence[object]:
    where = ["--data", scene / "field.mat", "--out", out / "run", "--arch", scene / "arch.json"]
    return ["train", *where, "--epochs", 24]


def _export(scene: Path, out: Path) -> Sequence[object]:
    formats = ["--formats", "onnx,torchscript,onnx-scene"]
    return ["export", out / "run", "--data", scene / "field.mat", *formats]


def _classify(scene: Path, out: Path) -> Sequence[object]:
    maps = ["--out", out / "map.png", "--confidence", out / "confidence.tif"]
    return ["classify", out / "run" / "model.onnx", scene / "large.npy", *maps]


def _score(scene: Path, out: Path) -> Sequence[object]:
    where = ["--data", scene / "field.mat", "--archs", scene / "archs.jsonl"]
    return ["score", *where, "--proxy", "dss,snip", "--out", out / "scores.csv"]


JOBS = (
    Job("search and race", _search(0)),
    Job("search, race and training", _search(6)),
    Job("training", _train),
    Job("export", _export, prepared=True),
    Job("classify", _classify, prepared=True),
    Job("score", _score),
)


def write_scene(folder: Path) -> None:
    """A small scene, a large one of the same sensor, and architectures to score."""
    random = np.random.default_rng(0)
    labels = np.zeros((24, 20), np.uint8)
    labels[1:7, 1:19], labels[9:15, 1:19], labels[17:23, 1:19] = 2, 5, 9
    spectra = random.integers(500, 3000, (10, 16))
    cube = (spectra[labels] + random.normal(0, 150, (24, 20, 16))).astype(np.int16)
    scipy.io.savemat(folder / "field.mat", {"cube": cube, "gt": labels})
    np.save(folder / "large.npy", np.tile(cube, (20, 20, 1)))
    sample = ["space", "sample", "--variable", "bands=16", "--budget", "60K-params", "-n", "200"]
    done = subprocess.run([*RUN, *sample], capture_output=True, check=True)
    (folder / "archs.jsonl").write_bytes(done.stdout)
    (folder / "arch.json").write_bytes(done.stdout.splitlines()[0])


def what_is_there(folder: Path) -> dict[str, Any]:
    """Return the files of a folder -> digests, and what a store tells beside seconds."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.name in VARYING or path.is_dir():
            continue
        content = path.read_bytes()
        if path.suffix == ".csv":
            content = b"\n".join(sorted(_without_seconds(path)))
        elif path.parent.name == "fits" and path.suffix == ".npz":
            content = _fitted(path)
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    for path in sorted(folder.rglob("evaluations.sqlite")):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
            rows = store.execute("SELECT id, architecture, costs, scores FROM evaluations")
            found["evaluated"] = [json.dumps(row) for row in rows.fetchall()]
    return found


def _without_seconds(path: Path) -> list[bytes]:
    lines = path.read_text().splitlines()
    names = lines[0].split(",")
    kept = [place for place, name in enumerate(names) if "second" not in name]
    return [",".join(row[place] for place in kept).encode() for row in csv.reader(lines)]


def _fitted(path: Path) -> bytes:
    """Return what the result of a fit holds beside seconds."""

    def without_seconds(values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name != "seconds"}

    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    facts = json.loads(arrays.pop("facts").tobytes(), object_hook=without_seconds)
    whole = {name: (values.shape, values.tobytes()) for name, values in arrays.items()}
    return repr((facts, sorted(whole.items()))).encode()


class Ended(NamedTuple):
    """How a command ended: its status, negative where a signal ended it, and what it complained."""

    status: int | None
    errors: str


class Command(SERVER.Process):  # type: ignore[name-defined, misc]
    """A command of hytas as a process.

    Args:
        arguments: of `hytas`.
        errors: file for what it writes to standard error.
        point: a fault point, or nothing.
    """

    def __init__(self, arguments: list[str], errors: Path, point: str) -> None:
        super().__init__()
        self.arguments, self.errors, self.point = arguments, errors, point

    def run(self) -> None:
        """Do it, in the new process."""
        from hytas.cli.main import run
        from hytas.train import loop

        for number, path in ((1, os.devnull), (2, self.errors)):
            file = os.open(path, os.O_WRONLY | os.O_CREAT)
            os.dup2(file, number)
            os.close(file)
        loop.CHECKPOINT_SECONDS = CHECKPOINT_SECONDS
        if self.point:
            inject(self.point)
        run(self.arguments)

    def work(self, seconds: float, step: float = 0.01) -> float:
        """Wait until it took `seconds` of processor time, or ended; return what it took.

        Of the processor, for on a busy machine the time that passes says nothing of the moment.
        It is read every `step` seconds.
        """
        taken = 0.0
        while taken < seconds and self.is_alive():
            with suppress(OSError):
                fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
                taken = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
            self.join(step)
        return taken


class Torture:
    """Runs jobs, disturbs them, and compares.

    Args:
        folder: for scenes, references and trials; trials that went wrong stay in it.
        seed: of the moments.
        preload: the module that the server of commands imports first.
    """

    def __init__(self, folder: Path, seed: int, preload: str = "warm") -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.scene = folder / "scene"
        self.scene.mkdir(parents=True)
        write_scene(self.scene)
        self.references: dict[str, tuple[dict[str, Any], float]] = {}
        self.failures: list[str] = []
        self.trials = self.started = 0
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        SERVER.set_forkserver_preload([preload])

    def reference(self, job: Job) -> tuple[dict[str, Any], float]:
        """Return what an undisturbed run leaves, and its seconds of processor time."""
        if job.name not in self.references:
            out = self._fresh(job)
            command = self._start(job, out)
            seconds = command.work(GIVE_UP, 0.1)
            done = self._end(command)
            if done.status != 0:
                raise RuntimeError(f"{job.name}, undisturbed: {done.errors}")
            self.references[job.name] = (what_is_there(out), seconds)
            if job is JOBS[1]:
                shutil.copytree(out, self.folder / "finished", dirs_exist_ok=True)
        return self.references[job.name]

    def kill(self, job: Job, most: int = 5) -> int:
        """Kill a job at up to `most` random moments, then let it end; return the kills."""
        _, seconds = self.reference(job)
        out, kills = self._fresh(job), 0
        for _ in range(most):
            process = self._start(job, out)
            process.work(self.random.uniform(0.0, seconds))
            if process.exitcode is not None:
                break
            process.kill()
            process.join()
            kills += 1
        self._compare(job, out, f"killed {kills} times")
        return kills

    def fault(self, job: Job, point: str) -> None:
        """Let a call of the file system fail, then run the job on a whole disk."""
        self.reference(job)
        out = self._fresh(job)
        done = self._run(job, out, point)
        self._judge(job, done, point)
        self._compare(job, out, point)

    def twice(self, job: Job) -> None:
        """Run a job in two processes on one folder: one does it, the other refuses or agrees."""
        self.reference(job)
        out = self._fresh(job)
        both = [self._start(job, out) for _ in range(2)]
        ended = [self._end(process) for process in both]
        for done in ended:
            self._judge(job, done, "twice at once")
        if all(done.status != 0 for done in ended):
            self._fail(job, out, "twice at once: neither did it")
        self._compare(job, out, "twice at once")

    def _fresh(self, job: Job) -> Path:
        self.trials += 1
        out = self.folder / f"trial {self.trials}"
        if job.prepared:
            self.reference(JOBS[1])
            shutil.copytree(self.folder / "finished", out)
        else:
            out.mkdir()
        return out

    def _start(self, job: Job, out: Path, point: str = "") -> "Command":
        self.started += 1
        errors = self.folder / f"errors {self.started}"
        command = Command(list(map(str, job.arguments(self.scene, out))), errors, point)
        command.start()
        return command

    def _end(self, command: "Command") -> Ended:
        command.work(GIVE_UP, 0.5)
        if command.exitcode is None:
            command.kill()
            command.join()
            return Ended(None, f"given up after {GIVE_UP:g} s of processor time")
        return Ended(command.exitcode, command.errors.read_text())

    def _run(self, job: Job, out: Path, point: str = "") -> Ended:
        return self._end(self._start(job, out, point))

    def _judge(self, job: Job, done: Ended, what: str) -> None:
        """A disturbed run ends well, or with status 2 and one line that is no traceback."""
        if done.status not in (0, 2):
            self._fail(job, None, f"{what}: status {done.status}: {done.errors[-2000:]}")
        elif done.status == 2:
            told = [line for line in done.errors.splitlines() if line.startswith("error: ")]
            if len(told) != 1 or "Traceback" in done.errors:
                self._fail(job, None, f"{what}: does not say what failed: {done.errors[-2000:]}")

    def _compare(self, job: Job, out: Path, what: str) -> None:
        done = self._run(job, out)
        if done.status != 0:
            self._fail(job, out, f"{what}, then run again: {done.errors[-2000:]}")
            return
        expected, _ = self.references[job.name]
        found = what_is_there(out)
        names = sorted(expected.keys() | found.keys())
        differing = [name for name in names if expected.get(name) != found.get(name)]
        if differing:
            self._fail(job, out, f"{what}: other {', '.join(differing)}")
        else:
            shutil.rmtree(out)

    def _fail(self, job: Job, out: Path | None, what: str) -> None:
        where = "" if out is None else f" (kept in {out})"
        self.failures.append(f"{job.name}: {what}{where}")
        print(f"FAILED {self.failures[-1]}", flush=True)


def fault_points(count: int, chooser: random.Random) -> list[str]:
    """Return fault points of every kind, in turn."""
    points = []
    for number in range(count):
        kind = ("fsync", "rename", "write")[number % 3]
        high = 60_000 if kind == "write" else 12
        points.append(f"{kind}:{chooser.randint(1, high)}")
    return points


def main() -> int:
    """Torture, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder that stays; else a temporary one")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="torture"))
    torture = Torture(folder, options.seed)
    kills = turn = 0
    while kills < options.kills:
        job = JOBS[turn % len(JOBS)]
        kills += torture.kill(job, min(8, options.kills - kills))
        turn += 1
        print(f"{job.name}: {kills}/{options.kills} kills", flush=True)
    for turn, point in enumerate(fault_points(options.faults, torture.random)):
        job = JOBS[turn % len(JOBS)]
        torture.fault(job, point)
        print(f"{job.name}: {point}", flush=True)
    for job in JOBS:
        torture.twice(job)
        print(f"{job.name}: twice at once", flush=True)
    print(f"{kills} kills, {options.faults} faults, {len(torture.failures)} failures")
    if not torture.failures and options.keep is None:
        shutil.rmtree(folder)
    return 1 if torture.failures else 0


if __name__ == "__main__":
    sys.exit(main())
