"""Processes that train side by side."""

import os
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from small_race import Small, race_task, ranked, without_time
from torch import Tensor

from hytas.race import race, worker_count, workers
from hytas.search import EvaluationStore

SCRIPT = """
import os, time
from hytas.race import Workers

def idle(message):
    print(os.getpid(), flush=True)
    time.sleep(120)

# Messages longer than a pipe holds: half of one waits in it when the parent goes.
with Workers(2) as pool:
    list(pool.run(idle, ((bytes(10**6),) for _ in range(8)), 8))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent_however_it_ends(how) -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert len({parent.stdout.readline() for _ in range(2)}) == 2
        parent.send_signal(how)
        # The output ends when the last process that holds it has.
        parent.communicate(timeout=30)
        assert parent.returncode == -how


def test_finalists_side_by_side_train_as_one_alone_does_and_leave_no_process(
    tmp_path, store: EvaluationStore
) -> None:
    alone = race(race_task(folds=2), ranked(5), store, finalists=5, steps=3, workers=1)
    with EvaluationStore(tmp_path / "beside.sqlite") as other:
        beside = race(race_task(folds=2), ranked(5), other, finalists=5, steps=3, workers=2)
        assert alone == beside
        assert without_time(store) == without_time(other)
    if shutil.which("ps"):  # to list processes with
        children = ["ps", "-o", "args=", "--ppid", str(os.getpid())]
        left = subprocess.run(children, capture_output=True, text=True, check=True).stdout
        assert "loky.backend.popen_loky" not in left


class Killed(Small):
    """Ends the process that trains it, as the system does where memory runs out."""

    def forward(self, patches: Tensor) -> Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still here")


def test_a_training_process_that_is_killed_is_told_in_one_line(store: EvaluationStore) -> None:
    task = race_task(build=lambda *_: Killed(4))
    with pytest.raises(OSError, match="one of 2 training processes was killed"):
        race(task, ranked(5), store, finalists=5, steps=3, workers=2)


def test_how_many_train_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(workers, "cpu_count", lambda: 3)  # of a container on a large machine
    assert worker_count(cpu, 1000) == 3
    assert worker_count(torch.device("cuda"), 1000) == 1
    assert worker_count(cpu, 2**30 + 1) == 1  # patches that are too large to be sent
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # OMP_NUM_THREADS=1
    assert worker_count(cpu, 1000) == 1


def test_what_is_sent_are_the_patches_of_all_pixels() -> None:
    labelled = race_task().labelled
    assert labelled.patch_bytes == 90 * 3 * 3 * 4 * 4
