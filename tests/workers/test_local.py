"""LocalProcesses of this machine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hytas.workers import (
    Shared,
    open_workers,
)
from hytas.workers.local import LocalProcesses

SCRIPT = """
import os, time
from hytas.workers import open_workers

def idle(message):
    print(os.getpid(), flush=True)
    time.sleep(120)

# Messages longer than a pipe holds: half of one waits in it when the parent goes.
with open_workers(2) as workers:
    list(workers.run(idle, ((bytes(10**6),) for _ in range(8)), 8))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent_however_it_ends(how) -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert len({parent.stdout.readline() for _ in range(2)}) == 2
        parent.send_signal(how)
        # The output ends when the last process that holds it has.
        parent.communicate(timeout=1800)
        assert parent.returncode == -how


def test_processes_share_the_arrays_of_a_file() -> None:
    value = {"array": np.arange(10.0), "tensor": torch.ones(2), "empty": np.zeros(0)}
    with open_workers(2) as workers:
        shared = workers.share(value)
        found = list(workers.run(facts_of, [(shared,), (shared,)], 2))
        path = Path(shared.key)  # type: ignore[attr-defined]
        assert path.exists()
    assert found == [(45.0, 2.0, 0, False, 1)] * 2
    assert not path.exists()


def test_calls_that_were_begun_give_their_results_when_these_are_read() -> None:
    with LocalProcesses(2) as workers:
        first, second, third = workers.begin(abs, [(-1,), ("text",), (-3,)])
        assert list(workers.run(abs, [(-4,), (5,)], 2)) == [4, 5]
        assert (third(), first()) == (3, 1)
        with pytest.raises(TypeError, match="bad operand"):
            second()
    with LocalProcesses(1) as workers:
        (call,) = workers.begin(end, [(1,)])
        with pytest.raises(OSError, match="worker processes was killed"):
            call()
    with LocalProcesses(1) as workers:
        workers.begin(time.sleep, [(600,)])  # that no one waits for
    with LocalProcesses(1) as workers:
        (process,) = (workers.begin(os.getpid, [()])[0](),)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(OSError, match="worker processes was killed"):
            begin_often(workers)


def begin_often(workers: LocalProcesses) -> None:
    """Begin calls until the pool knows that its process was killed."""
    for _ in range(1000):
        workers.begin(abs, [(1,)])
        time.sleep(0.01)


def facts_of(shared: Shared[dict[str, Any]]) -> tuple[float, float, int, bool, int]:
    value = shared.get()
    array, threads = value["array"], torch.get_num_threads()
    tensor = float(value["tensor"].sum())
    return float(array.sum()), tensor, len(value["empty"]), array.flags.writeable, threads


def test_a_worker_that_is_killed_is_told_and_the_next_workers_work() -> None:
    with open_workers(2) as workers, pytest.raises(OSError, match="worker processes was killed"):
        list(workers.run(end, [(1,), (2,)], 2))
    with open_workers(2) as workers:
        assert list(workers.run(abs, [(-1,), (2,)], 2)) == [1, 2]


def end(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_one_is_this_process_and_more_are_others() -> None:
    with open_workers("1") as alone:
        assert not alone.elsewhere
        assert list(alone.run(abs, [(-1,), (2,)], 2)) == [1, 2]
    with open_workers("3") as several:
        assert (several.elsewhere, several.count) == (True, 3)
