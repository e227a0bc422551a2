"""Read files in a child process, where a damaged file does no harm.

The libraries of the field crash on some damaged files, or take all memory. So a child process calls
them, with limits of memory and processor time. It responds with a record in JSON, and values of
arrays as bytes. The child starts with the first file, serves all further ones, and ends when it is
idle or when its parent ends. No setting of GDAL in the environment reaches it.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.limits import bytes_of
from hytas.data.readers.messages import bytes_in, fill, receive, restored, send
from hytas.data.record import Contents, Key
from hytas.errors import InputError
from hytas.types import Array

WALL_SECONDS = 60.0
BYTES_PER_SECOND = 5e6
"""Slowest reading that is waited for."""
_TOO_MUCH = "reading it takes too much time or memory"
_OF_GDAL = ("GDAL_", "OGR_", "CPL_", "no_proxy", "NO_PROXY")
CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hytas.data.readers.child import serve; serve()"
)
"""The program of the child; its argument is the module path."""


class Guard:
    """A child process that reads files; made again when it has ended.

    Attributes:
        apart: whether a child reads; else this process does, without the limits of a child.
        child: the process, if there is one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.apart = True
        self.child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._fatal: dict[tuple[Any, ...], str] = {}

    def contents(self, reader: str, paths: Sequence[Path]) -> Contents:
        """Return the record of a file, or of files that belong together.

        Args:
            reader: of `table.Format`; its function takes the paths.
            paths: of the files; the first one names the record.

        Raises:
            ValueError: the child crashed, took too much time or memory, or the file is broken.
        """
        request = {"reader": reader, "paths": [str(path) for path in paths]}
        response, _ = self._ask({**request, "bytes": 0}, 0)
        contents: Contents = restored(response["contents"])
        return replace(
            contents,
            variables=tuple(
                replace(each, read=partial(self._part, request, number))
                for number, each in enumerate(contents.variables)
            ),
        )

    def call(
        self, reader: str, path: Path, arguments: dict[str, Any], most: int
    ) -> tuple[dict[str, Any], bytes]:
        """Return the facts and the bytes, `most` at most, of a function that reads a file.

        Args:
            reader: "module:function" from this package on.

        Raises:
            InputError, OSError, ValueError: as for `contents`.
        """
        request = {"reader": reader, "paths": [str(path)], "arguments": arguments, "bytes": most}
        response, data = self._ask(request, most)
        assert data is not None  # the child sends some
        return response["facts"], data.tobytes()

    def _part(self, request: dict[str, Any], number: int, key: Key) -> Array:
        ends = [(part.start, part.stop) for part in key]
        most = bytes_of((stop - start for start, stop in ends), 16)
        wanted = {**request, "number": number, "key": ends, "bytes": most}
        response, array = self._ask(wanted, most)
        if "texts" in response:
            return np.array(response["texts"], np.str_)
        if array is None:
            rule = f"holds values of type {response['dtype']}; real numbers are needed"
            raise InputError(rule=rule)
        return array

    def _ask(self, request: dict[str, Any], most: int) -> tuple[dict[str, Any], Array | None]:
        file = request["reader"], *(_state(path) for path in request["paths"])
        if file in self._fatal:
            raise ValueError(self._fatal[file])
        try:
            with self._lock:
                response, array = self._respond(request, most)
        except ValueError as error:  # a child is not started for this file again
            self._fatal[file] = str(error)
            raise
        _raise(response)
        return response, array

    def _respond(self, request: dict[str, Any], most: int) -> tuple[dict[str, Any], Array | None]:
        for last in (False, True):
            child = self._running()
            if child is None:
                return _here(request)
            try:
                return _exchange(child, request, most)
            except (EOFError, BrokenPipeError):
                status = child.wait()
                self._stop()
                # A child that was idle ends with 0, which is no reason to refuse the file.
                if last or status != 0:
                    raise ValueError(_why(-status)) from None
            except TimeoutError:
                self._stop()
                raise ValueError(_TOO_MUCH) from None
            except BaseException:  # the rest of the response is still in the pipe
                self._stop()
                raise
        raise AssertionError

    def _running(self) -> subprocess.Popen[bytes] | None:
        """Return the child, started if it is not there; None where no process can be started."""
        if not self.apart:
            return None
        if self.child is not None and self._owner == os.getpid():
            return self.child
        # One thread is enough; a pool of threads is slow to start.
        few = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(_OF_GDAL)}
        command = [sys.executable, "-c", CHILD, json.dumps(sys.path)]
        try:
            child = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**kept, **few},
            )
        except OSError:
            return None
        self.child, self._owner = child, os.getpid()
        assert child.stdout is not None
        try:
            receive(child.stdout.fileno(), WALL_SECONDS)
        except (EOFError, TimeoutError):  # an interpreter that cannot start
            self._stop()
            return None
        return child

    def _stop(self) -> None:
        child, self.child = self.child, None
        if child is None or self._owner != os.getpid():
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        child.wait()

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """Leave the child to the parent of a process that was forked."""
        self._lock, self.child = threading.Lock(), None


GUARD = Guard()
atexit.register(GUARD.close)
os.register_at_fork(after_in_child=GUARD.forget)


def _exchange(
    child: subprocess.Popen[bytes], request: dict[str, Any], most: int
) -> tuple[dict[str, Any], Array | None]:
    """Send a request to the child; return the response, and its values if there are any."""
    assert child.stdin is not None
    assert child.stdout is not None
    seconds = WALL_SECONDS + most / BYTES_PER_SECOND
    send(child.stdin.fileno(), request)
    response = receive(child.stdout.fileno(), seconds)
    if "shape" not in response:
        return response, None
    dtype, shape = np.dtype(response["dtype"]), tuple(response["shape"])
    if dtype.kind not in "biufc" or bytes_of(shape, dtype.itemsize) > most:
        raise ValueError(f"values of type {dtype} in an array of shape {shape}")
    array = np.empty(shape, dtype)
    fill(child.stdout.fileno(), bytes_in(array), seconds)
    return response, array


def _here(request: dict[str, Any]) -> tuple[dict[str, Any], Array | None]:
    from hytas.data.readers.child import respond

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in the child
        return respond(request)


def _state(path: str) -> tuple[Any, ...]:
    try:
        state = Path(path).stat()
    except OSError:
        return (path,)
    return path, state.st_ino, state.st_size, state.st_mtime_ns


def _why(number: int) -> str:
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return _TOO_MUCH
    with suppress(ValueError):
        return f"the library that reads it crashes ({signal.Signals(number).name})"
    return "the library that reads it ends the process"


def _raise(response: dict[str, Any]) -> None:
    kind, text = response.get("error"), str(response.get("text"))
    if kind == "InputError":
        value = {} if response["value"] is None else {"value": response["value"]}
        rule, hint = response["rule"], response["hint"]
        raise InputError(response["argument"], rule=rule, hint=hint, **value)
    if kind == "OSError":
        raise OSError(response["errno"], text, response["file"])
    if kind is not None:
        raise ValueError(text)
