"""The child process of the guard: it reads files under limits of memory and time."""

import os
import resource
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.readers.messages import bytes_in, plain, receive, send
from hytas.data.record import Contents
from hytas.errors import InputError
from hytas.types import Array

CPU_SECONDS = 3
"""Time of one response, and a second more for every BYTES_PER_SECOND of values."""
BYTES_PER_SECOND = 10e6
MOST_BYTES = 768 * 2**20
"""Memory of one response, in addition to twice the bytes of its values."""
IDLE_SECONDS = 120.0
Response = tuple[dict[str, Any], Array | None]


def serve() -> None:
    """Respond to requests on standard input until it ends, or until none comes for long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    warnings.simplefilter("ignore")
    responses = os.dup(1)
    os.dup2(2, 1)  # output of libraries is not a response
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    send(responses, {"ready": True})
    with suppress(EOFError, TimeoutError, BrokenPipeError):
        while True:
            request = receive(0, IDLE_SECONDS)
            _limit(int(request["bytes"]))
            response, array = respond(request)
            send(responses, response, None if array is None else bytes_in(array))
            del array
    os._exit(0)  # skip cleaning up, as memory may be damaged


def respond(request: dict[str, Any]) -> Response:
    """Return the response to a request of the guard, and the requested values."""
    try:
        return _respond(request)
    except InputError as error:
        value = None if error.value is None else str(error.value)
        fields = {"argument": error.argument, "rule": error.rule, "hint": error.hint}
        return {"error": "InputError", "value": value, **fields}, None
    except MemoryError:
        text = f"its values are damaged, or take over {MOST_BYTES >> 20} MB to read"
        return {"error": "ValueError", "text": text}, None
    except OSError as error:
        if error.errno is None or error.filename is None:
            return {"error": "ValueError", "text": str(error)}, None
        said = {"text": error.strerror, "file": str(error.filename)}
        return {"error": "OSError", "errno": error.errno, **said}, None
    except Exception as error:
        return {"error": "ValueError", "text": f"{type(error).__name__}: {error}"}, None


def _respond(request: dict[str, Any]) -> Response:
    if "arguments" in request:
        facts, data = _function(request["reader"])(**request["arguments"])
        array = np.frombuffer(data, np.uint8)
        return {"facts": facts, "dtype": "u1", "shape": array.shape}, array
    states = [Path(path).stat() for path in request["paths"]]
    file_states = tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in states)
    if "number" not in request:
        _contents.cache_clear()  # sidecar files may have changed
    contents = _contents(request["reader"], tuple(request["paths"]), file_states)
    if "number" not in request:
        return {"contents": plain(contents)}, None
    variable = contents.variables[request["number"]]
    array = np.asarray(variable.read(tuple(slice(*ends) for ends in request["key"])))
    if array.dtype.kind == "U":
        return {"texts": array.tolist()}, None
    if array.dtype.kind not in "biufc":
        return {"dtype": str(array.dtype)}, None
    array = np.ascontiguousarray(array)
    return {"dtype": array.dtype.str, "shape": array.shape}, array


def _function(reader: str) -> Callable[..., Any]:
    module, name, *further = reader.split(":")
    function = getattr(import_module(f".{module}", __package__), name)
    return lambda *paths, **how: function(*paths, *further, **how)


@lru_cache(maxsize=8)
def _contents(reader: str, paths: tuple[str, ...], states: tuple[tuple[int, ...], ...]) -> Contents:
    contents: Contents = _function(reader)(*map(Path, paths))
    return contents


def _limit(size: int) -> None:
    """Limit memory and time of the next response."""
    pages = 0
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES + 2 * size
    seconds = int(time.process_time()) + 1 + CPU_SECONDS + int(size / BYTES_PER_SECOND)
    # If the memory in use is unknown, no limit can be computed.
    for what, limit in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, most if pages else 0)):
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(what)[1]
            own = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            if own:
                resource.setrlimit(what, (own, hard))
