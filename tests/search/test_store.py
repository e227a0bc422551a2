"""The store keeps what it was given, and refuses what is not a store."""

import math
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from hytas.search import Evaluation, EvaluationStore, Training


def evaluation(number: int, score: float = 1.5) -> Evaluation:
    return Evaluation(
        number, 0, {"space": "hytas", "depth": 4}, {"params": 7}, {"dss": score}, {}, 0.25
    )


def test_gives_back_what_it_got(tmp_path: Path) -> None:
    items = [evaluation(1), evaluation(0, -2.0)]
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        store.add(items)
        store.save_state(b"\x00state")
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        assert store.evaluations() == [items[1], items[0]]
        # The genes' order too: a resumed run writes the same bytes as one that never stopped.
        assert list(store.evaluations()[0].architecture) == ["space", "depth"]
        assert store.load_state() == b"\x00state"


@pytest.mark.parametrize("failed", [math.nan, math.inf, -math.inf])
def test_failed_score_comes_back_as_nan(failed: float, tmp_path: Path) -> None:
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        store.add([evaluation(0, failed)])
        assert math.isnan(store.evaluations()[0].scores["dss"])


def test_merits_come_back(tmp_path: Path) -> None:
    training = Training(0, "plain", 100, 0, 9, {"accuracy": 0.5}, 1.0, right=b"\1\0")
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        store.add_training(training)
        store.add_training(replace(training, fold=1, right=b""))
        assert store.trainings() == [training, replace(training, fold=1, right=b"")]


def _write_until_killed(path: Path, written: "multiprocessing.Queue[int]") -> None:
    with EvaluationStore(path) as store:
        for number in range(10**9):
            store.add([evaluation(number)])
            written.put(number)


def test_kill_loses_nothing_that_was_added(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    context = multiprocessing.get_context("spawn")
    written: multiprocessing.Queue[int] = context.Queue()
    writer = context.Process(target=_write_until_killed, args=(path, written))
    writer.start()
    for number in range(50):
        assert written.get(timeout=1800) == number
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    with EvaluationStore(path) as store:
        kept = store.evaluations()
    assert len(kept) >= 50
    assert [item.id for item in kept] == list(range(len(kept)))
