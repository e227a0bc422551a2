"""Judge damaged inputs in a worker process, so that a crash or an endless loop is only a verdict.

Allowed outcomes are a return, `InputError` and `OSError`. Anything else is a failure: another
exception, a crash, more than 5 s of processor time, or more than 1 GB of memory.
"""

import json
import os
import resource
import select
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

SECONDS = 5.0
MEGABYTES = 1000
# A worker that is only kept waiting by a busy machine is not slow; one that sleeps is. The child
# that reads untrusted files ends after 60 s.
WALL_SECONDS = 120.0
# Memory asked for but never touched is no failure; this limit protects the machine alone.
MOST_BYTES = 16 * 2**30
ALLOWED = ("returned", "refused")


class Verdict(NamedTuple):
    """What became of an input: "returned", "refused", or the kind of its failure."""

    kind: str
    detail: str
    seconds: float = 0.0
    megabytes: float = 0.0

    @property
    def is_failure(self) -> bool:
        """Whether the outcome is none of those allowed."""
        return self.kind not in ALLOWED


class Judge:
    """Looks at inputs one after another in a worker, which is replaced after a crash.

    Use it with `with`; the worker ends with it.
    """

    def __init__(self, targets: str = "fuzz_targets") -> None:
        """Take the module whose TARGETS the worker knows."""
        self._targets = targets
        self._worker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def __call__(self, target: str, path: Path) -> Verdict:
        """Return what becomes of `path`, the first file of an input, in the target of that name."""
        worker = self._worker if self._worker is not None else self._start()
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps([target, str(path)]).encode() + b"\n")
        worker.stdin.flush()
        line = _line(worker.stdout, WALL_SECONDS)
        if line is None:
            self._stop()
            return Verdict("slow", f"no answer in {WALL_SECONDS:g} s", WALL_SECONDS)
        if not line:
            status = worker.wait()
            self._stop()
            return Verdict("crash", f"the worker ended with status {status}")
        verdict = Verdict(*json.loads(line))
        if verdict.seconds > SECONDS:
            return verdict._replace(kind="slow", detail=f"{verdict.kind}: {verdict.detail}")
        if verdict.megabytes > MEGABYTES:
            return verdict._replace(kind="large", detail=f"{verdict.kind}: {verdict.detail}")
        return verdict

    def _start(self) -> subprocess.Popen[bytes]:
        self._worker = subprocess.Popen(
            [sys.executable, str(Path(__file__)), self._targets],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HYTAS_UNTRUSTED": "1", "OMP_NUM_THREADS": "1"},
        )
        assert self._worker.stdout is not None
        if _line(self._worker.stdout, 120.0) != b"ready\n":
            self._stop()
            raise RuntimeError(f"the worker cannot import {self._targets}")
        return self._worker

    def _stop(self) -> None:
        if self._worker is None:
            return
        self._worker.kill()
        for pipe in (self._worker.stdin, self._worker.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # what was not read by a worker that crashed
                continue
        self._worker.wait()
        self._worker = None


def _line(pipe: IO[bytes], seconds: float) -> bytes | None:
    """The next line; b"" at the end, None if none comes in time."""
    ready, _, _ = select.select([pipe], [], [], seconds)
    return pipe.readline() if ready else None


def _worker(targets: str) -> None:
    """Answer each [target, path] of standard input with a verdict on standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a target prints is none of the answers
    warnings.simplefilter("ignore")
    table = __import__(targets).TARGETS
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers.write(b"ready\n")
    answers.flush()
    for line in sys.stdin.buffer:
        name, path = json.loads(line)
        verdict = _look(table[name].look, Path(path))
        answers.write(json.dumps(verdict).encode() + b"\n")
        answers.flush()


def _look(look: object, path: Path) -> Verdict:
    from hytas.errors import InputError

    assert callable(look)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory is counted from here
    before, start = _peak(), time.process_time()
    try:
        look(path)
        kind, detail = "returned", ""
    except (InputError, OSError) as error:
        kind, detail = "refused", f"{type(error).__name__}: {error}"
    except BaseException as error:
        kind, detail = "raised", _where(error)
    return Verdict(kind, detail[:2000], time.process_time() - start, (_peak() - before) / 1e6)


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__}: {error}{place}"


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    _worker(sys.argv[1])
