"""Functions that workers import."""

import time

from hytas.errors import InputError
from hytas.workers import Shared


def slow_first(number: int) -> int:
    time.sleep(0.3 if number == 0 else 0)
    return number


def length_of(shared: Shared[list[int]], more: int) -> int:
    return len(shared.get()) + more


def fails(number: int) -> int:
    raise InputError(f"number {number}: this one cannot")


def speaks(number: int) -> int:
    print(f"number {number} is told", flush=True)
    time.sleep(0.5)  # Ray reads what was printed a few times a second
    return number
