"""Targets that misbehave in each way that the judge must notice."""

import os
import time
from pathlib import Path

from fuzz_targets import Target

from hytas.errors import InputError


def _abort(path: Path) -> None:
    os.abort()


def _spin(path: Path) -> None:
    start = time.process_time()
    while time.process_time() - start < 1.0:
        pass


def _allocate(path: Path) -> None:
    memory = bytearray(64 * 2**20)
    memory[:: 2**12] = b"x" * len(memory[:: 2**12])


def _raise(path: Path) -> None:
    raise KeyError("a bug")


def _refuse(path: Path) -> None:
    raise InputError("data: is no scene")


TARGETS = {
    look.__name__: Target(list, look) for look in (_abort, _spin, _allocate, _raise, _refuse)
}
