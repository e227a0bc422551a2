"""A store whose columns hold something else than was written: one line, whatever it is."""

import sqlite3
from pathlib import Path

import pytest

from hytas.errors import InputError
from hytas.search import Evaluation, EvaluationStore, MethodVote, Training


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "evaluations.sqlite"
    with EvaluationStore(path) as store:
        store.add([Evaluation(0, 1, {"space": "s"}, {"params": 7}, {"dss": 1.5}, {}, 0.5)])
        store.add_training(Training(0, "plain", 100, 0, 50, {"oa": 0.5}, 2.0))
        store.replace_votes([MethodVote("svm", 0, 9, 7, b"\1\0")])
        store.save_state(b"state")
    return path


def read(path: Path) -> None:
    with EvaluationStore(path, read_only=True) as store:
        store.evaluations()
        store.trainings()
        store.votes()
        store.load_state()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("evaluations.generation", "soon"),
        ("evaluations.architecture", "[]"),
        ("evaluations.architecture", "[" * 100_000),
        ("evaluations.architecture", b"\xff"),
        ("evaluations.costs", '{"params": "many"}'),
        ("evaluations.costs", '{"params": 1.5}'),
        ("evaluations.costs", "7"),
        ("evaluations.scores", '{"dss": "high"}'),
        ("evaluations.scores", '{"dss": [1]}'),
        ("evaluations.reasons", '"none"'),
        ("evaluations.seconds", "long"),
        ("trainings.steps", "few"),
        ("trainings.figures", '{"oa": "good"}'),
        ("trainings.figures", "null"),
        ("trainings.seconds", b"1"),
        ("trainings.reason", b"\xff"),
        ("trainings.classes", "many"),
        ("ballots.method", b"svm"),
        ("ballots.right", "all"),
        ("ballots.classes", "many"),
    ],
)
def test_text_where_numbers_were(path: Path, column: str, value: str | bytes | int) -> None:
    read(path)
    table, name = column.split(".")
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE {table} SET {name} = ?", (value,))
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match=f"damaged, in {table}: ") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_store_that_is_only_read_keeps_its_bytes(path: Path) -> None:
    before = path.read_bytes()
    EvaluationStore(path).close()
    read(path)
    assert path.read_bytes() == before
