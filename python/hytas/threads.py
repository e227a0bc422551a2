"""How many threads torch uses inside an operation."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside torch's operations; the setting is restored.

    Sums are then taken in one order, so what is computed does not depend on the machine's cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
