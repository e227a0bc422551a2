"""Write rows of a class map to disk as they are done, so that a killed run can go on."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.deploy.scene import Strip
from hytas.errors import InputError
from hytas.files import lock

_HEADER_BYTES = 4096
_CHECK_BYTES = 16
_VERIFIED_BYTES = 2**22
"""Bytes of a journal to read at a time, when it is opened."""


class Journal:
    """The finished rows of one class map: a header that identifies the map, then row after row.

    A row is `labels` (W int32), `confidence` (W float32) and the first 16 bytes of a SHA-256 of the
    header, the row's number and these values. A kill can leave half a row at the end, and a disk
    can damage other rows. The next run keeps the rows before the first bad row and makes the rest
    again.

    Attributes:
        damaged: whether rows of an earlier run were damaged.
    """

    def __init__(
        self, file: FileIO, header: bytes, shape: tuple[int, int], rows: "_RowsDone"
    ) -> None:
        self._file, self._header, self._shape = file, header, shape
        self.done, self.damaged = rows

    @property
    def _row(self) -> np.dtype[Any]:
        return _row_type(self._shape)

    def append(self, strip: Strip) -> None:
        """Write the next rows; from now on they survive a kill.

        Raises:
            ValueError: the strip does not follow the rows done.
        """
        if strip.top != self.done:
            raise ValueError(f"strip: starts at row {strip.top}, {self.done} rows are done")
        rows = np.empty(len(strip.labels), self._row)
        rows["labels"], rows["confidence"] = strip.labels, strip.confidence
        rows["check"] = _checks(self._header, strip.top, rows)
        write_all(self._file, rows.tobytes())
        self.done += len(rows)

    def class_map(self) -> "StoredMap":
        """Return the whole map, which stays on disk. All rows must be done."""
        if self.done != self._shape[0]:
            raise ValueError(f"{self.done} of {self._shape[0]} rows are done")
        path = Path(self._file.name)
        return StoredMap(
            *(StoredRows(path, name, self._row, self._shape) for name in ("labels", "confidence"))
        )


@dataclass(frozen=True)
class StoredRows:
    """One field of a journal's rows, (H, W), which is read on demand.

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
        """Return rows (h, W)."""
        wanted = range(self.shape[0])[rows]
        if wanted.step == 1:
            return self._read(wanted.start, len(wanted))
        parts = [self._read(number, 1) for number in wanted]
        return np.concatenate(parts) if parts else self._read(0, 0)

    def _read(self, first: int, count: int) -> npt.NDArray[Any]:
        offset = _HEADER_BYTES + first * self.row.itemsize
        rows = np.fromfile(self.path, self.row, count, offset=offset)
        return np.ascontiguousarray(rows[self.field])


class StoredMap(NamedTuple):
    """A class map in its journal."""

    labels: StoredRows
    confidence: StoredRows


@contextmanager
def open_journal(
    out: str | Path, identity: Mapping[str, Any], shape: tuple[int, int]
) -> Iterator[Journal]:
    """Open the journal of the map `out`, and keep its rows if it has the same identity.

    It is removed on success, and if the input is refused: the next run would refuse it as well.
    One process at a time holds it.

    Args:
        out: the final file; the journal is `.<name>.partial` next to it.
        identity: all that the map depends on, as JSON.
    """
    path = Path(out).with_name(f".{Path(out).name}.partial")
    header = _header(identity, shape)
    with _open_alone(path, out) as file:
        rows = _rows_done(path, header, shape)
        file.truncate(_HEADER_BYTES + rows.done * _row_type(shape).itemsize if rows.done else 0)
        if not rows.done:
            write_all(file, header)
        try:
            yield Journal(file, header, shape, rows)
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
            raise InputError(
                "out", out, "another hytas is at work on it", "wait for it, or name another file"
            )
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


class _RowsDone(NamedTuple):
    """Rows that an earlier run left, and whether the next one is damaged."""

    done: int
    damaged: bool = False


def _row_type(shape: tuple[int, int]) -> np.dtype[Any]:
    width = (shape[1],)
    check = ("check", np.uint8, (_CHECK_BYTES,))
    return np.dtype([("labels", "<i4", width), ("confidence", "<f4", width), check])


def _checks(header: bytes, first: int, rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the checks (n, 16) of rows; the first row has the number `first`."""
    start = hashlib.sha256(header)
    checks = np.empty((len(rows), _CHECK_BYTES), np.uint8)
    for index in range(len(rows)):
        digest = start.copy()
        digest.update((first + index).to_bytes(8, "little"))
        digest.update(rows["labels"][index].tobytes())
        digest.update(rows["confidence"][index].tobytes())
        checks[index] = np.frombuffer(digest.digest()[:_CHECK_BYTES], np.uint8)
    return checks


def _header(identity: Mapping[str, Any], shape: tuple[int, int]) -> bytes:
    text = json.dumps({**identity, "shape": list(shape)}, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"hytas class map in progress, checked rows\n{digest}\n".encode().ljust(
        _HEADER_BYTES, b"\0"
    )


def _rows_done(path: Path, header: bytes, shape: tuple[int, int]) -> _RowsDone:
    if not path.is_file():
        return _RowsDone(0)
    row = _row_type(shape)
    step = max(1, _VERIFIED_BYTES // row.itemsize)
    done = 0
    with path.open("rb") as file:
        if file.read(_HEADER_BYTES) != header:
            return _RowsDone(0)
        while done < shape[0]:
            wanted = min(step, shape[0] - done)
            content = file.read(wanted * row.itemsize)
            rows = np.frombuffer(content[: len(content) // row.itemsize * row.itemsize], row)
            whole = (rows["check"] == _checks(header, done, rows)).all(axis=1)
            if not whole.all():
                return _RowsDone(done + int(whole.argmin()), damaged=True)
            done += len(rows)
            if len(rows) < wanted:
                break
    return _RowsDone(done)
