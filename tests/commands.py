"""The commands, as a user runs them: in this process, or each in a process of its own."""

import io
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

import traces
from hytas.references import classical

Run = Callable[..., subprocess.CompletedProcess[str]]

LOADED = ("hytas.run", "hytas.run.display", "onnxscript", "sklearn.ensemble", "sklearn.svm", "rich")
LOADED += ("hytas.export", "hytas.report", "hytas.cli.search", "jinja2", "matplotlib.style")
LOADED += ("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg")
LOADED += ("onnxscript.rewriter", "onnxscript.evaluator", "safetensors.torch", "scipy.io")
LOADED += ("torch._dynamo", "torch.onnx.ops", "torch.onnx._internal.exporter._core", "warm_traces")
"""Modules that most commands import: copies of the process have them."""


def save_time(patch: pytest.MonkeyPatch) -> None:
    """Trace each network structure once, and leave files in the system's cache.

    No test cuts the power; a run waits a second for the disk.
    """
    traces.trace_once(patch)
    patch.setattr(os, "fsync", lambda handle: None)


def command(*arguments: object) -> list[str]:
    """Return the command as a list for `subprocess`."""
    code = "from hytas.cli.main import run; run()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def run_copy(
    *arguments: object, cwd: Path | None = None, largest_file: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `hytas ARGUMENTS` in a copy of a process that has torch.

    So torch need not be imported again, which takes longer than most commands. The process that is
    copied has no threads, which a copy would lack.

    Args:
        arguments: of the command.
        cwd: the folder it runs in.
        largest_file: the limit on the size of a file, in bytes; it stands for a full disk.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        child = start_copy(*arguments, cwd=cwd, largest_file=largest_file, out=out, err=err)
        child.join()
        texts = [file.read_text(encoding="utf-8") if file.exists() else "" for file in (out, err)]
    assert child.exitcode is not None
    return subprocess.CompletedProcess(["hytas", *arguments], child.exitcode, *texts)


def run_here(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `hytas ARGUMENTS` in this process, if it is quick, refused, or not about processes."""
    from hytas.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), chdir(cwd or Path.cwd()):
        try:
            run(list(map(str, arguments)))
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 1
    return subprocess.CompletedProcess(
        ["hytas", *arguments], status, out.getvalue(), err.getvalue()
    )


def start_copy(
    *arguments: object,
    out: Path,
    err: Path,
    cwd: Path | None = None,
    largest_file: int | None = None,
) -> ForkServerProcess:
    """Begin what `run_copy` runs, with its output in two files."""
    multiprocessing.set_forkserver_preload(list(LOADED))
    quick = {name: getattr(classical, name) for name in ("TREES", "COSTS", "WIDTHS")}
    given = list(map(str, arguments))
    work = (given, os.fspath(cwd or Path.cwd()), dict(os.environ), largest_file, out, err, quick)
    child = multiprocessing.get_context("forkserver").Process(target=_run, args=work)
    child.start()
    return child


def _run(
    arguments: list[str],
    cwd: str,
    environment: dict[str, str],
    largest_file: int | None,
    out: Path,
    err: Path,
    quick: dict[str, Any],
) -> None:
    from hytas.cli.main import run

    # The server ignores it if workers of hytas were the first to start it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for path, number in ((out, 1), (err, 2)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", write_through=True)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if traces.VARIABLE in os.environ:
        save_time(pytest.MonkeyPatch())
    for name, value in quick.items():  # reference methods as the tests have them
        setattr(classical, name, value)
    run(arguments)
