"""The child process of the guard: it reads files under limits of memory and time."""

import os
import resource
import signal
import sys
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.readers.pipe import bytes_in, receive, send
from hytas.data.readers.transport import plain_contents
from hytas.data.record import Array, Contents, ReaderError
from hytas.errors import InputError

CPU_SECONDS = 3
"""Time of one answer, and a second more for every BYTES_PER_SECOND of values."""
BYTES_PER_SECOND = 10e6
MOST_BYTES = 768 * 2**20
"""Memory of one answer, beside twice the bytes of its values."""
IDLE_SECONDS = 120.0


def serve() -> None:
    """Answer requests of standard input until it ends, or until nothing is asked for long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    warnings.simplefilter("ignore")
    answers = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    send(answers, {"ready": True})
    with suppress(EOFError, TimeoutError, BrokenPipeError):
        while True:
            request = receive(0, IDLE_SECONDS)
            _limit(int(request["bytes"]))
            answer, array = answered(request)
            values = None if array is None else bytes_in(array)
            send(answers, answer, values)
            del array, values
    os._exit(0)  # skip cleaning up, as memory may be damaged


def answered(request: dict[str, Any]) -> tuple[dict[str, Any], Array | None]:
    """Return the answer to a request, and the values that it asks for."""
    try:
        paths = tuple(request["paths"])
        states = [Path(path).stat() for path in paths]
        known = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in states]
        if "number" not in request:
            _contents.cache_clear()  # files beside the named ones may have changed
        contents = _contents(request["reader"], paths, tuple(known))
        if "number" not in request:
            return {"contents": plain_contents(contents)}, None
        variable = contents.variables[request["number"]]
        array = np.asarray(variable.read(tuple(slice(*ends) for ends in request["key"])))
        if array.dtype.kind not in "biufc":
            return {"dtype": str(array.dtype)}, None
        array = np.ascontiguousarray(array)
        return {"dtype": array.dtype.str, "shape": array.shape}, array
    except InputError as error:
        fields = {"argument": error.argument, "rule": error.rule, "hint": error.hint}
        return {"error": "InputError", **fields}, None
    except ReaderError as error:
        return {"error": "ReaderError", "rule": error.rule, "hint": error.hint}, None
    except MemoryError:
        text = f"its values are damaged, or take over {MOST_BYTES >> 20} MB to read"
        return {"error": "ValueError", "text": text}, None
    except OSError as error:
        if error.errno is None or error.filename is None:
            return {"error": "ValueError", "text": str(error)}, None
        told = {"text": error.strerror, "file": str(error.filename)}
        return {"error": "OSError", "errno": error.errno, **told}, None
    except Exception as error:
        return {"error": "ValueError", "text": f"{type(error).__name__}: {error}"}, None


@lru_cache(maxsize=8)
def _contents(reader: str, paths: tuple[str, ...], states: tuple[tuple[int, ...], ...]) -> Contents:
    module, name, *further = reader.split(":")
    read = getattr(import_module(f"{__package__}.{module}"), name)
    found: Contents = read(*map(Path, paths), *further)
    return found


def _limit(size: int) -> None:
    """Limit memory and time of the next answer."""
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


if __name__ == "__main__":
    sys.exit("this module is started by hytas.data.readers.guard")
