"""Keep every candidate of a run in one SQLite file, which survives a kill at any moment."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, TypeVar

from hytas.errors import InputError
from hytas.files import legible
from hytas.search.records import (
    Ballot,
    Evaluation,
    FinalTraining,
    Training,
    finite_or_null,
    key_of_training,
    read_answers,
    read_ballot,
    read_evaluation,
    read_final_training,
    read_training,
)

Row = TypeVar("Row")

# SQLite's messages quote damaged bytes, which Python cannot always read as text.
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
SCHEMA_VERSION = 7
_SUMMED = ("evaluations", "trainings", "answers", "ballots")
"""Tables whose rows choose the winner: `state` holds a checksum of each, by its name."""
_SUM_BYTES = 32
_SUMS = 1 << (8 * _SUM_BYTES)
_OF_TRAINING = ("id", "recipe", "steps", "fold")
SCHEMA = """
CREATE TABLE IF NOT EXISTS evaluations (
    id INTEGER PRIMARY KEY,        -- the engine's number of the architecture, in asking order
    generation INTEGER NOT NULL,
    architecture TEXT NOT NULL,    -- JSON
    costs TEXT NOT NULL,           -- JSON: cost name -> whole number
    scores TEXT NOT NULL,          -- JSON: proxy -> score, null where it failed
    reasons TEXT NOT NULL,         -- JSON: proxy -> why it failed
    seconds REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS trainings (
    id INTEGER NOT NULL,           -- of the evaluation
    recipe TEXT NOT NULL,          -- name of the recipe
    steps INTEGER NOT NULL,        -- optimiser steps
    fold INTEGER NOT NULL,         -- of the validation pixels, from 0
    pixels INTEGER NOT NULL,       -- validation pixels of the fold
    figures TEXT NOT NULL,         -- JSON: name -> what it reached; none where it failed
    seconds REAL NOT NULL,
    reason TEXT NOT NULL,          -- why it failed; empty where it did not
    PRIMARY KEY (id, recipe, steps, fold)
);
CREATE TABLE IF NOT EXISTS final_trainings (
    architecture TEXT NOT NULL,    -- JSON
    seed INTEGER NOT NULL,
    epochs INTEGER NOT NULL,
    pixels INTEGER NOT NULL,       -- training pixels
    test_oa REAL NOT NULL,         -- of the exported model, read by nothing that chooses
    test_aa REAL NOT NULL,
    test_kappa REAL NOT NULL,
    PRIMARY KEY (architecture, seed)
);
CREATE TABLE IF NOT EXISTS state (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
);
"""

# Made with the first row: a store is not changed by opening it, and older ones have none.
ANSWERS = """
CREATE TABLE IF NOT EXISTS answers (  -- of trainings, on pixels whose label nobody reads
    id INTEGER NOT NULL,
    recipe TEXT NOT NULL,
    steps INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    classes BLOB NOT NULL,         -- class indices, unsigned, two bytes each, the lower one first
    PRIMARY KEY (id, recipe, steps, fold)
);
"""
BALLOTS = """
CREATE TABLE IF NOT EXISTS ballots (  -- of methods that do not race, on the same pixels
    method TEXT NOT NULL,
    fold INTEGER NOT NULL,         -- of the validation pixels, from 0
    pixels INTEGER NOT NULL,       -- validation pixels of the fold
    right INTEGER NOT NULL,        -- of them, that the method classifies right
    classes BLOB NOT NULL,         -- as in answers
    PRIMARY KEY (method, fold)
);
"""


class EvaluationStore:
    """The candidates and trainings of one run, and the engine's state.

    Args:
        path: the file; it is created if it is missing.
        read_only: do not change the file, which must exist.

    Raises:
        InputError: the file is not a store, or has another version.
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        try:
            self._connection = _connect(self.path, read_only)
        except _UNREADABLE as error:
            raise _translate(error, self.path) from None
        try:
            self._open(read_only)
        except BaseException:
            self._connection.close()
            raise

    def _open(self, read_only: bool) -> None:
        try:
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version == 0 and (tables or read_only):
                raise InputError(f"{self.path}: not an evaluation store")
            if version not in (0, SCHEMA_VERSION):
                raise InputError(
                    f"{self.path}: evaluation store of version {version}; this hytas reads "
                    f"version {SCHEMA_VERSION}; choose another folder"
                )
            if not read_only:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                if version == 0:  # a store that is only read keeps its bytes
                    self._connection.executescript(
                        f"BEGIN; {SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT"
                    )
        except _UNREADABLE as error:
            raise _translate(error, self.path) from None

    def __enter__(self) -> "EvaluationStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, _UNREADABLE):
                raise _translate(error, self.path) from None
            raise

    def _holds(self, table: str) -> bool:
        named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        try:
            return self._connection.execute(named, (table,)).fetchone() is not None
        except _UNREADABLE as error:
            raise _translate(error, self.path) from None

    def _read(self, table: str, order: str, make: Callable[[tuple[Any, ...]], Row]) -> list[Row]:
        """Return `make` of each row of a table; a damaged file and a failing disk differ."""
        try:
            self._connection.execute("BEGIN")  # another process may write between the two
            rows = self._connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
            total = _sum_of(self._connection, table) if table in _SUMMED else None
        except _UNREADABLE as error:
            raise _translate(error, self.path) from None
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        try:
            made = [make(row) for row in rows]
            if total is not None and total != _digest(rows):
                raise ValueError("its rows are not those that were written")
        except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
            raise InputError(f"{self.path}: damaged, in {table}: {error}") from None
        return made

    def _put(self, table: str, key: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table, all or none; `key` names its first columns, which tell a row.

        The sum of the digests of all rows is kept beside them, so that a changed digit is noticed.
        """
        found = f"SELECT * FROM {table} WHERE " + " AND ".join(f"{name} = ?" for name in key)
        with self._transaction() as connection:
            total = _sum_of(connection, table)
            for row in rows:
                before = connection.execute(found, row[: len(key)]).fetchall()
                marks = ",".join("?" * len(row))
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)
                # As SQLite gives it back: it makes whole numbers real where a column says so.
                after = connection.execute(found, row[: len(key)]).fetchall()
                if total is not None:
                    total = (total + _digest(after) - _digest(before)) % _SUMS
            if total is not None:
                value = (table, total.to_bytes(_SUM_BYTES, "big"))
                connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", value)

    def add(self, evaluations: Iterable[Evaluation]) -> None:
        """Add candidates, all or none; those with a known id are replaced.

        Genes keep their order, so that a resumed run writes the same bytes as one that never
        stopped.
        """
        rows = [
            (
                item.id,
                item.generation,
                json.dumps(item.architecture),
                json.dumps(item.costs),
                json.dumps(finite_or_null(item.scores)),
                json.dumps(item.reasons),
                item.seconds,
            )
            for item in evaluations
        ]
        self._put("evaluations", ("id",), rows)

    def evaluations(self) -> list[Evaluation]:
        """Return all candidates, in the order in which the engine proposed them."""
        return self._read("evaluations", "id", read_evaluation)

    def add_training(self, training: Training) -> None:
        """Add a training; one of the same architecture, recipe, length and fold is replaced."""
        row = (
            training.id,
            training.recipe,
            training.steps,
            training.fold,
            training.pixels,
            json.dumps(finite_or_null(training.figures)),
            training.seconds,
            training.reason,
        )
        if training.answers:  # first: a training without them is done again
            with self._transaction() as connection:
                connection.execute(ANSWERS)
            self._put("answers", _OF_TRAINING, [(*key_of_training(training), training.answers)])
        self._put("trainings", _OF_TRAINING, [row])

    def trainings(self) -> list[Training]:
        """All trainings, the shortest first."""
        answers: dict[tuple[Any, ...], bytes] = {}
        if self._holds("answers"):
            answers = dict(self._read("answers", "id", read_answers))
        found = self._read("trainings", "steps, id, recipe, fold", read_training)
        return [replace(one, answers=answers.get(key_of_training(one), b"")) for one in found]

    def keep_ballots(self, ballots: Iterable[Ballot]) -> None:
        """Keep these ballots, in place of those that there are."""
        with self._transaction() as connection:
            connection.execute(BALLOTS)
            connection.execute("DELETE FROM ballots")
            connection.execute("DELETE FROM state WHERE name = 'ballots'")  # their sum
        self._put("ballots", ("method", "fold"), [astuple(ballot) for ballot in ballots])

    def ballots(self) -> list[Ballot]:
        """All ballots, by method and fold."""
        return self._read("ballots", "method, fold", read_ballot) if self._holds("ballots") else []

    def add_final_training(self, training: FinalTraining) -> None:
        """Add a final training; it replaces one with the same architecture and seed."""
        architecture = json.dumps(training.architecture, sort_keys=True)
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO final_trainings VALUES (?,?,?,?,?,?,?)",
                (architecture, *astuple(training)[1:]),
            )

    def final_trainings(self) -> list[FinalTraining]:
        """Return all final trainings, by seed."""
        return self._read("final_trainings", "seed, architecture", read_final_training)

    def save_state(self, state: bytes) -> None:
        """Keep the engine's state."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO state VALUES ('engine', ?)", (state,))

    def load_state(self) -> bytes | None:
        """Return the engine's state that was stored last, or None."""
        states = dict(self._read("state", "name", lambda row: (row[0], bytes(row[1]))))
        return states.get("engine")


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    if not read_only:
        return sqlite3.connect(path, isolation_level=None)
    # Without a log no process writes, and the file can be read even in a read-only folder.
    written = path.with_name(path.name + "-wal").exists()
    mode = "mode=ro" if written else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)


def _sum_of(connection: sqlite3.Connection, table: str) -> int | None:
    """The sum kept of a table's digests; None if an older version began the table without one."""
    kept = connection.execute("SELECT value FROM state WHERE name = ?", (table,)).fetchone()
    if kept is None:
        return None if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() else 0
    value = kept[0]
    if not isinstance(value, bytes):
        raise sqlite3.DatabaseError(f"the checksum of {table} is none")
    return int.from_bytes(value, "big")


def _digest(rows: Iterable[tuple[Any, ...]]) -> int:
    """The sum of the SHA-256 of rows, in any order."""
    texts = (repr(row).encode(errors="surrogatepass") for row in rows)
    digests = (int.from_bytes(hashlib.sha256(text).digest(), "big") for text in texts)
    return sum(digests) % _SUMS


def _translate(error: Exception, path: Path) -> Exception:
    """Translate an error of SQLite: OSError for a failing disk, InputError for a wrong file."""
    text = legible(str(error))
    if isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError):
        return OSError(f"{path}: {text}")
    return InputError(f"{path}: damaged, or not an evaluation store ({text})")
