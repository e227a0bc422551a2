"""Write rows of a map to disk as they are done, so that a killed run can go on."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.deploy.scene import ClassMap
from hytas.errors import InputError
from hytas.files import lock

_HEADER_BYTES = 64
"""Of a SHA-256 in hexadecimal digits."""


class Journal:
    """The finished rows of one map: a header that identifies the map, then row after row.

    A row has the fields of its type: of a class map `labels` (W int32) and `confidence` (W
    float32), of a map of values `values` (W x C float32). The length of the file counts the
    rows. The next run writes the last one again, because a stop may have left it incomplete.

    Attributes:
        done: the number of finished rows.
    """

    def __init__(self, file: FileIO, shape: tuple[int, int], row: np.dtype[Any], done: int) -> None:
        self._file, self._shape, self._row = file, shape, row
        self.done = done

    def append(self, top: int, *fields: npt.NDArray[Any]) -> None:
        """Write the next rows; from now on they survive a kill.

        Args:
            top: number of the first row.
            fields: values (h, ...) of each field of a row.

        Raises:
            ValueError: the rows do not follow the rows done.
        """
        if top != self.done:
            raise ValueError(f"strip: starts at row {top}, {self.done} rows are done")
        rows = np.empty(len(fields[0]), self._row)
        for name, values in zip(self._row.names or (), fields, strict=True):
            rows[name] = values
        write_all(self._file, rows.tobytes())
        self.done += len(rows)

    def class_map(self) -> ClassMap:
        """Return the whole map, which stays on disk. All rows must be done."""
        return ClassMap(self.stored("labels"), self.stored("confidence"))

    def stored(self, field: str) -> "StoredRows":
        """Return all rows of a field, which stay on disk. All rows must be done."""
        if self.done != self._shape[0]:
            raise ValueError(f"{self.done} of {self._shape[0]} rows are done")
        return StoredRows(Path(self._file.name), field, self._row, self._shape)


@dataclass(frozen=True)
class StoredRows:
    """One field of a journal's rows, (H, W) or (H, W, C), which is read on demand.

    It uses plain reads, because pages of a memory map count as memory of the process.
    """

    path: Path
    field: str
    row: np.dtype[Any]
    shape: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.row[self.field].base

    def __getitem__(self, rows: slice, /) -> npt.NDArray[Any]:
        """Return rows (h, W) or (h, W, C)."""
        wanted = range(self.shape[0])[rows]
        if wanted.step == 1:
            return self._read(wanted.start, len(wanted))
        parts = [self._read(number, 1) for number in wanted]
        return np.concatenate(parts) if parts else self._read(0, 0)

    def _read(self, first: int, count: int) -> npt.NDArray[Any]:
        offset = _HEADER_BYTES + first * self.row.itemsize
        rows = np.fromfile(self.path, self.row, count, offset=offset)
        return np.ascontiguousarray(rows[self.field])


@contextmanager
def open_journal(
    out: str | Path, identity: Mapping[str, Any], shape: tuple[int, int], values: int = 0
) -> Iterator[Journal]:
    """Open the journal of the map `out`, and keep its rows if it has the same identity.

    It is removed on success, and if the input is refused: the next run would refuse it as well.
    One process at a time holds it.

    Args:
        out: the final file; the journal is `.<name>.partial` next to it.
        identity: all that the map depends on, as JSON.
        values: C of a map of values; 0 for a class map.
    """
    path = Path(out).with_name(f".{Path(out).name}.partial")
    text = json.dumps({**identity, "shape": [*shape, *([values] * bool(values))]}, sort_keys=True)
    header = hashlib.sha256(text.encode()).hexdigest().encode()
    width = shape[1]
    fields: list[Any] = [("labels", "<i4", (width,)), ("confidence", "<f4", (width,))]
    row = np.dtype([("values", "<f4", (width, values))] if values else fields)
    with _open_alone(path, out) as file:
        complete = (path.stat().st_size - _HEADER_BYTES) // row.itemsize
        done = max(0, min(complete, shape[0]) - 1)
        with path.open("rb") as earlier:
            done = done if earlier.read(_HEADER_BYTES) == header else 0
        file.truncate(_HEADER_BYTES + done * row.itemsize if done else 0)
        if not done:
            write_all(file, header)
        try:
            yield Journal(file, shape, row, done)
        except InputError:
            path.unlink(missing_ok=True)
            raise
        path.unlink()


def _open_alone(path: Path, out: str | Path) -> FileIO:
    """Open a journal for appending, and lock it until it is closed.

    It has no buffer, so that closing it cannot fail.
    """
    while True:
        file = path.open("ab", buffering=0)
        if not lock(file):
            file.close()
            rule = "another hytas is at work on it"
            raise InputError("out", out, rule, "wait for it, or name another file")
        # Another process may have removed it between opening and locking.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            return file
        file.close()


def write_all(file: FileIO, content: bytes) -> None:
    """Write to an unbuffered file."""
    rest = memoryview(content)
    while rest:
        try:
            rest = rest[file.write(rest) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(file.name)) from None


def file_identity(path: str | Path) -> dict[str, Any]:
    """Return path, size and time of change, which identify a file without reading it."""
    path = Path(path)
    if not path.exists():  # the embedded scene
        return {"path": str(path)}
    state = path.stat()
    return {"path": str(path.resolve()), "bytes": state.st_size, "changed": state.st_mtime_ns}
