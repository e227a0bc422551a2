"""Several processes train a supernet together: as one process would, and all end if one does."""

import multiprocessing
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_supernet import RECIPE, feasible, trained

from hytas.supernet import SupernetSettings
from hytas.tensors import read_tensors, write_tensors
from hytas.train import ALONE, Epoch, Processes, Weights, open_processes

# The last batch of an epoch has one pixel: one of two processes has none of its own.
SHARED = replace(
    RECIPE, epochs=3, batch_size=23, dropout=0.1, drop_path=0.2, class_weights=0.5, patience=1.0
)
SANDWICH = SupernetSettings("sandwich")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def started(folder: Path, *settings: Any) -> list[Any]:
    """Two processes as `torchrun` starts them, which train and write what they have."""
    context, port = multiprocessing.get_context("forkserver"), str(free_port())
    multiprocessing.set_forkserver_preload(["small_supernet", "torch.distributed"])
    found = []
    for rank in range(2):
        names = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": port}
        environment = {"MASTER_ADDR": "127.0.0.1", **names}
        work = (folder, environment, *settings)
        found.append(context.Process(target=_work, args=work))
        found[-1].start()
    return found


def _work(folder: Path, environment: dict[str, str], settings: SupernetSettings, kill: int) -> None:
    os.environ.update(environment)
    torch.set_num_threads(1)

    def watch(epoch: Epoch) -> None:
        if epoch.epoch == kill and processes.leads:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_processes("cpu") as processes:
        checkpoint = folder / "checkpoint.safetensors" if processes.leads else None
        try:
            supernet, result = trained(
                feasible(), settings, SHARED, checkpoint, watch, processes=processes
            )
        except ConnectionError as error:
            (folder / f"{processes.rank}.txt").write_text(str(error))
            raise SystemExit(2) from None
    facts = {"history": result.to_dict()["history"]}
    write_tensors(folder / f"{processes.rank}.safetensors", supernet.weights, facts)


def ended(processes: list[Any]) -> list[int]:
    for each in processes:
        each.join(60)
    return [each.exitcode for each in processes]


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    assert ended(started(tmp_path, SANDWICH, 0)) == [0, 0]
    (facts, weights), (_, other) = (read_tensors(tmp_path / f"{n}.safetensors") for n in (0, 1))
    supernet, result = trained(feasible(), SANDWICH, SHARED)
    assert weights.keys() == other.keys() == supernet.weights.keys()
    assert all(torch.equal(weights[name], other[name]) for name in weights)
    assert_near(weights, supernet.weights)
    for found, expected in zip(facts["history"], result.to_dict()["history"], strict=True):
        assert found == pytest.approx(expected, abs=1e-5)


def assert_near(found: Weights, expected: Weights) -> None:
    """Rounding may show more where a gradient is almost 0, as AdamW divides it by its size."""
    gaps = torch.cat([(found[name] - value).abs().flatten() for name, value in expected.items()])
    assert float((gaps < 1e-5).double().mean()) > 0.9999
    assert float(gaps.max()) < 1e-4


def test_rows_are_shared_out() -> None:
    for samples in range(9):
        parts = [Processes(rank, 3) for rank in range(3)]
        rows = [row for each in parts for row in range(samples)[each.rows(samples)]]
        assert rows == list(range(samples))
        if samples:
            assert sum(each.part(samples)[1] for each in parts) == pytest.approx(1.0)
    assert ALONE.part(7) == (slice(0, 7), 1.0)
