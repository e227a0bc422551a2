"""LocalProcesses of this machine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch

from hytas.errors import InputError, SlowerWarning, warn_of_slower_work
from hytas.workers import (
    OneByOne,
    Shared,
    check_workers,
    open_workers,
    shared_workers,
    spare_processes,
    worker_count,
)
from hytas.workers.local import LocalProcesses
from refusals import refuses

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


LARGE_PAGES = """
import os
from pathlib import Path
from hytas.workers import open_workers
before = dict(os.environ)
with open_workers(2) as workers:
    (begun,) = workers.run(Path.read_bytes, [(Path("/proc/self/environ"),)], 1)
assert os.environ == before
assert b"GLIBC_TUNABLES=glibc.malloc.hugetlb=1" in begun, begun
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux says what a process got")
def test_processes_keep_their_memory_in_large_pages() -> None:
    """In a process of its own: the server of this one may have begun before, for something else."""
    plain = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    subprocess.run([sys.executable, "-c", LARGE_PAGES], env=plain, check=True)


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


def test_what_makes_a_call_slower_reaches_the_driver() -> None:
    with LocalProcesses(1) as workers:
        with pytest.warns(SlowerWarning, match="no graph here") as warned:
            assert list(workers.run(slower, [(1,)], 1)) == [1]
        assert len(warned) == 1


def slower(number: int) -> int:
    for _ in range(2):
        warn_of_slower_work("no graph here")
    return number


def begin_often(workers: LocalProcesses) -> None:
    """Begin calls until the pool knows that its process was killed."""
    for _ in range(1000):
        workers.begin(abs, [(1,)])
        time.sleep(0.01)


def test_the_processes_of_a_gpu_serve_all_stages_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("hytas.workers.backends.worker_count", lambda *of: asked.append(of) or 2)
    monkeypatch.setattr("hytas.workers.local.start_device", abs)  # fails, and no one is told
    gpu = torch.device("cuda:0")
    with shared_workers(None, gpu) as workers:
        assert isinstance(workers, LocalProcesses)
        assert asked == [(False, 0, gpu)]
        workers.start()
        for _ in range(2):
            with open_workers(workers, on_cpu=False) as opened:
                assert opened is workers
                assert list(opened.run(abs, [(-1,), (2,)], 2)) == [1, 2]
        with open_workers(workers, sent_bytes=2**30 + 1) as opened:
            assert isinstance(opened, OneByOne)
    for named, device in ((None, "cpu"), ("1", "cuda:0"), ("ray", "cuda:0"), (workers, "cuda:0")):
        with shared_workers(named, torch.device(device)) as none:
            assert none is None


def test_calls_that_no_one_waits_for_end_at_once(tmp_path: Path) -> None:
    with LocalProcesses(2) as workers:
        calls = workers.run(writes_late, [(str(tmp_path / name),) for name in "abc"], 3)
        assert next(calls) is None
        begun = time.monotonic()
        calls.close()  # as a race does whose time is over
        assert list(workers.run(abs, [(-1,), (2,)], 2)) == [1, 2]
        assert time.monotonic() - begun < 200
    assert {path.name for path in tmp_path.iterdir()} == {"a"}


def writes_late(path: str) -> None:
    if not path.endswith("a"):
        time.sleep(600)
    Path(path).touch()


@pytest.mark.parametrize(
    ("named", "count"), [("1", None), ("2", 1), (6, 3), ("64", 4), ("ray", None)]
)
def test_some_processes_are_spare(named: str | int, count: int | None) -> None:
    spare = spare_processes(named, 0)
    assert (None if spare is None else spare.count) == count
    assert spare_processes(named, 2**30 + 1) is None


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


def test_how_many_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)  # of a container on a large machine
    assert worker_count(True, 1000) == 3
    assert worker_count(True, 2**30 + 1) == 1  # patches that are too large to be sent
    assert worker_count(False, 1000) == worker_count(False, 1000, torch.device("cpu")) == 1
    gpu = torch.device("cuda:1")
    for free, count in ((3, 1), (20, 2), (140, 3)):  # GiB of a GPU
        memory = {gpu: (free * 2**30, 2**40)}
        monkeypatch.setattr(torch.cuda, "mem_get_info", memory.__getitem__)
        assert worker_count(False, 1000, gpu) == count
        assert worker_count(False, 1000) == 1
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # OMP_NUM_THREADS=1
    assert worker_count(True, 1000) == 1


@pytest.mark.parametrize("text", ["many", "0", "-1", "1025", "dask", "ray-head:10001"])
def test_workers_that_are_not_there_are_named(text: str) -> None:
    with refuses("workers", text, "must be local, a number"):
        check_workers(text)
    named = int(text) if text.strip("-").isdecimal() else text
    with refuses("workers", text, "must be local, a number"), open_workers(named):
        pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "ray://",
            "workers='ray': 'ray://': must be ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT",
        ),
        ("ray:", "workers='ray:': an address or settings needed after the colon"),
        ("slurm:", "workers='slurm:': an address or settings needed after the colon"),
        ("ray:head", "workers='ray': 'head': must be "),
        ("ray:head:99999", "workers='ray': 'head:99999': must be "),
        ("ray://head:0", "workers='ray': 'ray://head:0': must be "),
        ("ray://user@head:10001", "workers='ray': 'ray://user@head:10001': must be "),
        ("slurm:jobs=0", "workers='slurm': 'jobs=0': must be above 0"),
        ("slurm:time=-5", "workers='slurm': 'time=-5': must be above 0"),
        ("slurm:memory=nan", "workers='slurm': 'memory=nan': must be above 0"),
        ("slurm:folder=", "workers='slurm': 'folder=': must be NAME=VALUE"),
    ],
)
def test_addresses_and_settings_are_checked_before_anything_starts(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_workers(text)


@pytest.mark.parametrize("text", ["ray", "ray:auto", "ray:[::1]:6379", "ray://head:10001"])
def test_addresses_of_ray(text: str) -> None:
    check_workers(text)


def test_one_is_this_process_and_more_are_others() -> None:
    with open_workers("1") as alone:
        assert not alone.elsewhere
        assert list(alone.run(abs, [(-1,), (2,)], 2)) == [1, 2]
    with open_workers("3") as several:
        assert (several.elsewhere, several.count) == (True, 3)
