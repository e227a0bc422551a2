"""Keep every candidate of a run in one SQLite file, which survives a kill at any moment."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hytas.errors import InputError
from hytas.files import legible
from hytas.search.records import Evaluation, MethodFold, Training, read_row, row_of

_Row = TypeVar("_Row")

# SQLite's messages quote damaged bytes, which Python cannot always read as text.
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
SCHEMA_VERSION = 10
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
    figures TEXT NOT NULL,         -- JSON: name -> figure; empty where it failed
    seconds REAL NOT NULL,
    reason TEXT NOT NULL,          -- why it failed; empty where it did not
    right BLOB NOT NULL,           -- a bit for each validation pixel: whether its class is right
    PRIMARY KEY (id, recipe, steps, fold)
);
CREATE TABLE IF NOT EXISTS methods (  -- reference methods on the same pixels
    method TEXT NOT NULL,
    fold INTEGER NOT NULL,         -- of the validation pixels, from 0
    pixels INTEGER NOT NULL,       -- validation pixels of the fold
    right INTEGER NOT NULL,        -- of them, that the method classifies right
    -- class indices of the validation pixels, then of those of a smoothed map: unsigned, two bytes
    -- each, the lower first
    held_out BLOB NOT NULL,
    PRIMARY KEY (method, fold)
);
CREATE TABLE IF NOT EXISTS state (
    engine BLOB NOT NULL           -- the engine's state, one row
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
                raise InputError(self.path, rule="not an evaluation store")
            if version not in (0, SCHEMA_VERSION):
                rule = f"evaluation store of version {version}"
                hint = f"this hytas reads version {SCHEMA_VERSION}; choose another folder"
                raise InputError(self.path, rule=rule, hint=hint)
            if not read_only:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                if version == 0:  # do not modify a store that was opened for reading
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

    def fault(self) -> str | None:
        """Return what SQLite finds wrong in its file; None if it is sound."""
        try:
            (line,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        except _UNREADABLE as error:
            return f"damaged ({legible(str(error))})"
        return None if line == "ok" else f"damaged ({legible(' '.join(line.split()))})"

    def _read(self, table: str, order: str, make: Callable[[tuple[Any, ...]], _Row]) -> list[_Row]:
        """Return `make` of each row of a table; a damaged file and a failing disk differ."""
        try:
            rows = self._connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
        except _UNREADABLE as error:
            raise _translate(error, self.path) from None
        try:
            return [make(row) for row in rows]
        except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
            raise InputError(self.path, rule=f"damaged, in {table}: {error}") from None

    def _put(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table, all or none; those with a known key are replaced."""
        with self._transaction() as connection:
            for row in rows:
                marks = ",".join("?" * len(row))
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)

    def add(self, evaluations: Iterable[Evaluation]) -> None:
        """Add candidates, all or none; those with a known id are replaced.

        Genes keep their order, so that a resumed run writes the same bytes as one that never
        stopped.
        """
        self._put("evaluations", map(row_of, evaluations))

    def evaluations(self) -> list[Evaluation]:
        """Return all candidates, in the order in which the engine proposed them."""
        return self._read("evaluations", "id", partial(read_row, Evaluation))

    def add_training(self, training: Training) -> None:
        """Add a training; one of the same architecture, recipe, length and fold is replaced."""
        self._put("trainings", [row_of(training)])

    def trainings(self) -> list[Training]:
        """Return all trainings, the shortest first."""
        return self._read("trainings", "steps, id, recipe, fold", partial(read_row, Training))

    def replace_methods(self, fits: Iterable[MethodFold]) -> None:
        """Replace all fits of reference methods."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM methods")
            for fit in fits:
                connection.execute("INSERT INTO methods VALUES (?,?,?,?,?)", row_of(fit))

    def methods(self) -> list[MethodFold]:
        """Return the fits of reference methods, by method and fold."""
        return self._read("methods", "method, fold", partial(read_row, MethodFold))

    def save_state(self, state: bytes) -> None:
        """Keep the engine's state."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM state")
            connection.execute("INSERT INTO state VALUES (?)", (state,))

    def load_state(self) -> bytes | None:
        """Return the engine's state that was stored last, or None."""
        return next(iter(self._read("state", "rowid", lambda row: bytes(row[0]))), None)


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    if not read_only:
        return sqlite3.connect(path, isolation_level=None)
    # Without a log no process writes, and the file can be read even in a read-only folder.
    written = path.with_name(path.name + "-wal").exists()
    mode = "mode=ro" if written else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)


def _translate(error: Exception, path: Path) -> Exception:
    """Translate an error of SQLite: OSError for a failing disk, InputError for a wrong file."""
    text = legible(str(error))
    if isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError):
        return OSError(f"{path}: {text}")
    return InputError(path, rule=f"damaged, or not an evaluation store ({text})")
