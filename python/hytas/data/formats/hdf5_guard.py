"""Check an HDF5 file in a child process, where a crash of the library does no harm.

The HDF5 library may end its process on a damaged file. So a child process first reads the same
values, unless these take long. The parent opens the file only if the child succeeds.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from hytas.data.formats.hdf5_walk import touch
from hytas.errors import InputError

# Limits of the child, without the start of Python. A listing takes milliseconds, and reading
# TOUCHED_BYTES takes less than a second.
CPU_SECONDS = 3
WALL_SECONDS = 60.0
MOST_BYTES = 768 * 2**20
TOUCHED_BYTES = 64 * 2**20

_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hytas.data.formats.hdf5_guard import look; look(sys.argv[2], sys.argv[3])"
)
_seen: set[tuple[str, int, int, int, int]] = set()


Reader = Callable[[Path], Any]


def check_first(path: Path, read: Reader) -> None:
    """Let a child process read the file, once for each process and state of the file.

    Args:
        path: the file.
        read: what the child calls: a function of a module, without a check of its own.

    Raises:
        InputError: the child refused the file.
        OSError: the child got an error of the system.
        ValueError: the child crashed, took too much time or memory, or found the file broken.
    """
    state, reader = path.stat(), f"{read.__module__}:{read.__name__}"
    key = (reader, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
    if key in _seen:
        return
    _ask_child(path, reader)
    _seen.add(key)


def _ask_child(path: Path, reader: str) -> None:
    # One thread is enough; a pool of threads is slow to start.
    few = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path), str(path), reader]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **few},
            timeout=WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"reading it takes more than {WALL_SECONDS:g} s") from None
    except OSError:
        return  # no process can be started here, so the file is read without the check
    if done.returncode < 0:
        raise ValueError(_why(-done.returncode))
    with suppress(json.JSONDecodeError):  # an interpreter that cannot start prints nothing
        _raise(json.loads(done.stdout))


def _why(signal: int) -> str:
    import signal as names

    if signal in (names.SIGXCPU, names.SIGKILL):
        return f"reading it takes more than {CPU_SECONDS} s or {MOST_BYTES >> 20} MB"
    return f"the HDF5 library crashes on it ({names.Signals(signal).name})"


def _raise(answer: dict[str, Any]) -> None:
    kind, text = answer.get("kind"), str(answer.get("text"))
    if kind == "InputError":
        raise InputError(text)
    if kind == "OSError":
        raise OSError(answer["errno"], text, answer["file"])
    if kind is not None:
        raise ValueError(text)


def look(path: str, reader: str) -> None:
    """Read a file under limits of time and memory, and print the result. The child runs this."""
    answer: dict[str, Any] = {}
    try:
        read = _reader(reader)
        _limit()
        read(Path(path))
        touch(Path(path), TOUCHED_BYTES)
    except InputError as error:
        answer = {"kind": "InputError", "text": str(error)}
    except OSError as error:
        plain = {"errno": error.errno, "text": error.strerror, "file": error.filename}
        answer = {"kind": "ValueError", "text": str(error)}
        if error.errno is not None and error.filename is not None:
            answer = {"kind": "OSError", **plain}
    except MemoryError:
        text = f"its values are damaged, or take over {MOST_BYTES >> 20} MB to read"
        answer = {"kind": "ValueError", "text": text}
    except Exception as error:
        answer = {"kind": "ValueError", "text": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
    os._exit(0)  # skip cleaning up, as memory may be damaged


def _reader(text: str) -> Reader:
    """Return the function that `module:name` stands for."""
    import_module("h5py")  # before the limits, because its own memory does not count
    module, _, name = text.partition(":")
    read: Reader = getattr(import_module(module), name)
    return read


def _limit() -> None:
    import resource

    pages = 0
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES
    seconds = int(time.process_time()) + 1 + CPU_SECONDS
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, seconds)]
    # If the memory in use is unknown, no limit can be computed.
    limits += [(resource.RLIMIT_AS, most)] if pages else []
    for what, limit in limits:
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(what)[1]
            own = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(what, (own, hard))
