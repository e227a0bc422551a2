"""Processes that train one set of weights together, each on its part of every batch."""

import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, distributed

from hytas.errors import InputError

_Value = TypeVar("_Value")


class LostProcessError(ConnectionError):
    """Another process of the same training has ended."""


@dataclass(frozen=True)
class Processes:
    """This process among those that train together.

    All have the same weights and take the same steps. The first one leads: it alone reads and
    writes files of the run.

    Attributes:
        rank: number of this process, from 0.
        size: number of all.
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Return whether this is the first process."""
        return self.rank == 0

    def rows(self, samples: int) -> slice:
        """Return the rows of a batch that this process works on; none, if samples are few."""
        return slice(samples * self.rank // self.size, samples * (self.rank + 1) // self.size)

    def part(self, samples: int) -> tuple[slice, float]:
        """Return the rows of this process, and their share of the batch.

        Without rows of its own it gets one, with the share 0: it has to take every step.
        """
        rows = self.rows(samples)
        if rows.start == rows.stop:
            return slice(0, 1), 0.0
        return rows, (rows.stop - rows.start) / samples

    @torch.no_grad()
    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of one type by their sums over all processes, in place."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])  # one message is quicker
        with _reporting_lost_processes(self):
            distributed.all_reduce(flat)
        totals = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, total in zip(tensors, totals, strict=True):
            tensor.copy_(total.view_as(tensor))

    def broadcast(self, value: _Value) -> _Value:
        """Return the value that the first process has."""
        if self.size == 1:
            return value
        values = [value]
        with _reporting_lost_processes(self):
            distributed.broadcast_object_list(values)
        return values[0]

    @contextmanager
    def copy_of(self, path: Path | None) -> Iterator[Path | None]:
        """Yield the file of the first process, or a copy of it; None if there is no such file."""
        existing = path if path is not None and path.exists() else None
        content = self.broadcast(
            None if existing is None or self.size == 1 else existing.read_bytes()
        )
        if self.leads or content is None:
            yield existing
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.safetensors"
            copy.write_bytes(content)
            yield copy


ALONE = Processes()


def leads() -> bool:
    """Return whether this process speaks for those that `torchrun` started with it."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def open_processes(device: str) -> Iterator[Processes]:
    """Join the processes that `torchrun` started; yield `ALONE` in a process without others.

    They talk by gloo on CPUs and by NCCL on GPUs. Each takes the GPU of its number on its machine.

    Args:
        device: cpu, cuda or auto.

    Raises:
        InputError: the environment does not say which process this is.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield ALONE
        return
    on_gpu = device != "cpu" and torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    try:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
    except ValueError as error:
        raise InputError(
            f"WORLD_SIZE {os.environ['WORLD_SIZE']}", rule=f"torchrun sets it, and more ({error})"
        ) from None
    try:
        with _stopped_by_torchrun():
            yield Processes(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()


@contextmanager
def _stopped_by_torchrun() -> Iterator[None]:
    """Take torchrun's signal, which it sends when a process ends, as Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _reporting_lost_processes(processes: Processes) -> Iterator[None]:
    """Say in one line that another process has ended."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcessError(
            f"process {processes.rank + 1} of {processes.size}: another one has ended; run the "
            "same command again to go on"
        ) from error
