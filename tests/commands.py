"""The commands, each in a process of its own, as a user runs them."""

import importlib
import io
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import BinaryIO

Run = Callable[..., subprocess.CompletedProcess[str]]

LOADED = ("hytas.run", "hytas.cli.console", "onnxscript", "sklearn.ensemble", "sklearn.svm", "rich")
"""Modules that most commands import: copies of the process have them."""


def command(*arguments: object) -> list[str]:
    """Return the command as a list for `subprocess`."""
    code = "from hytas.cli.main import run; run()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def run_copy(
    *arguments: object, cwd: Path | None = None, largest_file: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `hytas ARGUMENTS` in a copy of this process.

    So torch need not be imported again, which takes longer than most commands.

    Args:
        arguments: of the command.
        cwd: the folder it runs in.
        largest_file: the limit on the size of a file, in bytes; it stands for a full disk.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = start_copy(*arguments, cwd=cwd, largest_file=largest_file, out=out, err=err)
        child.join()
        texts = [_read(file) for file in (out, err)]
    assert child.exitcode is not None
    return subprocess.CompletedProcess(["hytas", *arguments], child.exitcode, *texts)


def start_copy(
    *arguments: object,
    out: BinaryIO,
    err: BinaryIO,
    cwd: Path | None = None,
    largest_file: int | None = None,
) -> ForkProcess:
    """Begin what `run_copy` runs, with its output in two files."""
    for name in LOADED:
        importlib.import_module(name)
    work = (list(map(str, arguments)), cwd, largest_file, out, err)
    child = multiprocessing.get_context("fork").Process(target=_run, args=work)
    child.start()
    return child


def _run(
    arguments: list[str],
    cwd: Path | None,
    largest_file: int | None,
    out: BinaryIO,
    err: BinaryIO,
) -> None:
    from hytas.cli.main import run

    for file, number in ((out, 1), (err, 2)):
        os.dup2(file.fileno(), number)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", write_through=True)
    if cwd is not None:
        os.chdir(cwd)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    warnings.resetwarnings()  # pytest makes errors of them
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)
    run(arguments)


def _read(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
