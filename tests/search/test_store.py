"""The store keeps what it was given, and refuses what is not a store."""

import math
import multiprocessing
import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hytas.errors import InputError
from hytas.search import Evaluation, EvaluationStore, MethodVote, Training


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


def test_predicted_classes_come_back(tmp_path: Path) -> None:
    training = Training(0, "plain", 100, 0, 9, {"accuracy": 0.5}, 1.0, predictions=b"\1\0\2\0")
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        store.add_training(training)
        store.add_training(replace(training, fold=1, predictions=b""))
        assert store.trainings() == [training, replace(training, fold=1, predictions=b"")]


def test_ballots_come_back_and_others_take_their_place(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    EvaluationStore(path).close()
    before = path.read_bytes()
    with EvaluationStore(path) as store:
        assert store.votes() == []
    assert path.read_bytes() == before
    first = MethodVote("svm", 0, 9, 7, b"\1\0\2\0")
    with EvaluationStore(path) as store:
        store.replace_votes([first, replace(first, method="rf"), replace(first, fold=1)])
        assert store.votes() == [replace(first, method="rf"), first, replace(first, fold=1)]
        store.replace_votes([replace(first, right=3)])
        assert store.votes() == [replace(first, right=3)]
        store.replace_votes([])
        assert store.votes() == []


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


def test_damage_is_told_wherever_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with EvaluationStore(path) as store:
        store.add(evaluation(number) for number in range(200))
        store.add_training(Training(3, "plain", 100, 0, 9, {"accuracy": 0.5}, 1.0))
        store.save_state(b"state")
    whole = path.read_bytes()
    assert len(whole) > 3 * 4096
    told = 0
    for page in range(1, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 : page * 4096 + 2000] = bytes(range(250)) * 8
        path.write_bytes(damaged)
        with EvaluationStore(path, read_only=True) as store:
            for read in (store.evaluations, store.trainings, store.load_state):
                try:
                    read()
                except InputError as error:
                    told += str(error).startswith(f"{path}: damaged")
    assert told >= 3
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE evaluations SET scores = '[1' WHERE id = 7")
    with (
        EvaluationStore(path) as store,
        pytest.raises(InputError, match="damaged, in evaluations: a column: not JSON"),
    ):
        store.evaluations()
