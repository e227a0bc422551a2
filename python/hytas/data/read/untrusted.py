"""Read files of unknown origin in a child process with limits of memory and time.

Such a file may crash a library, or make it compute for ever or take all memory.
"""

import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.record import Contents, Key
from hytas.errors import InputError
from hytas.types import Array

VARIABLE = "HYTAS_UNTRUSTED"
"""Variable of the environment, which workers inherit: whether files are untrusted."""
MOST_BYTES = 2**31
"""Memory of the child."""
CPU_SECONDS = 10
"""Processor time of a call."""
WALL_SECONDS = 60
# No driver that opens further files, and a proxy where nothing listens.
_ENVIRONMENT = {
    "GDAL_HTTP_PROXY": "http://127.0.0.1:9",
    "GDAL_HTTPS_PROXY": "http://127.0.0.1:9",
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}",
    "OGR_SKIP": "OGR_VRT,HTTP",
    "OGR_SQLITE_PRAGMA": "trusted_schema=OFF",
    "PROJ_NETWORK": "OFF",
}


@contextmanager
def untrusted() -> Iterator[None]:
    """Read files in a child process in this context, also in workers that start in it.

    A script needs `if __name__ == "__main__":`, as for other processes of Python.
    """
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function, which the child calls if files are untrusted.

    Raises:
        ValueError: the file is broken; or the child crashed, or took too much time or memory.
    """
    if VARIABLE not in os.environ:
        return _checked(function, *arguments)
    try:
        return _pool().submit(_limited, CPU_SECONDS, function, *arguments).result()
    except BrokenProcessPool:
        _pool.cache_clear()
        rule = "the library that reads it crashes, or takes too much time or memory"
        raise ValueError(rule) from None


def contents_of(reader: str, paths: tuple[Path, ...]) -> Contents:
    """Return the record of a file, or of files that belong together.

    Args:
        reader: "module:function" in this package, and texts that the function takes behind the
            paths.
    """
    is_trusted = VARIABLE not in os.environ
    contents: Contents = call(_read if is_trusted else _described, reader, paths)
    if is_trusted:
        return contents
    parts = [partial(call, _part, reader, paths, n) for n in range(len(contents.variables))]
    return contents.read_by(parts)


def _read(reader: str, paths: tuple[Path, ...]) -> Contents:
    module, name, *further = reader.split(":")
    function = getattr(import_module(f".{module}", __package__), name)
    contents: Contents = function(*paths, *further)
    return contents


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), _begin)


os.register_at_fork(after_in_child=_pool.cache_clear)


def _begin() -> None:
    """Limit the memory of the child, and what its libraries may do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    del os.environ[VARIABLE]
    os.environ.update(_ENVIRONMENT)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_DATA, MOST_BYTES)
    with suppress(ImportError):  # this codec of Zarr runs code
        registry = import_module("numcodecs.registry")
        registry.codec_registry.pop("pickle", None)
        registry.entries.pop("pickle", None)


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _limited(seconds: int, function: Callable[..., Any], *arguments: Any) -> Any:
    _limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + seconds)
    signal.alarm(WALL_SECONDS)
    try:
        return _checked(function, *arguments)
    finally:
        signal.alarm(0)


def _checked(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*arguments)
    except (InputError, ImportError, MemoryError):
        raise
    except Exception as error:  # a process cannot send each exception of a library
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, error.filename) from None
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _described(reader: str, paths: tuple[Path, ...]) -> Contents:
    contents = _opened(reader, paths, _states(paths))
    return contents.read_by([_nothing] * len(contents.variables))


def _part(reader: str, paths: tuple[Path, ...], number: int, key: Key) -> Array:
    return np.ascontiguousarray(_opened(reader, paths, _states(paths)).variables[number].read(key))


def _nothing(key: Key) -> Array:
    raise NotImplementedError


def _states(paths: tuple[Path, ...]) -> tuple[tuple[int, int], ...]:
    return tuple((state.st_size, state.st_mtime_ns) for state in (path.stat() for path in paths))


@lru_cache(maxsize=8)
def _opened(reader: str, paths: tuple[Path, ...], states: tuple[tuple[int, int], ...]) -> Contents:
    return _read(reader, paths)
