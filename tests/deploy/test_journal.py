"""The file in which a map grows: a run that was stopped goes on with all rows but the last."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from hytas.deploy.journal import Journal, open_journal

SHAPE = (12, 5)
MAP = np.arange(60, dtype=np.int32).reshape(SHAPE)
ROW = 5 * 8
HEADER = 64


def fill(journal: Journal, until: int) -> None:
    """Append rows of `MAP`, three at a time."""
    for top in range(journal.done, until, 3):
        part = MAP[top : min(top + 3, until)]
        journal.append(top, part, part.astype(np.float32))


def stopped(out: Path, rows: int, model: int = 1) -> Path:
    """The journal of a run that was stopped after so many rows."""
    with suppress(KeyboardInterrupt), open_journal(out, {"model": model}, SHAPE) as journal:
        fill(journal, rows)
        raise KeyboardInterrupt
    return out.with_name(f".{out.name}.partial")


def finished(out: Path) -> int:
    """Go on to the end, compare the map, and return the rows that were kept."""
    with open_journal(out, {"model": 1}, SHAPE) as journal:
        done = journal.done
        fill(journal, len(MAP))
        assert np.array_equal(journal.class_map().labels[:], MAP)
        assert np.array_equal(journal.class_map().confidence[:], MAP)
    return done


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (lambda content: content, 8),
        (lambda content: b"", 0),
        (lambda content: content[: HEADER - 1], 0),
        (lambda content: content[: HEADER + ROW], 0),
        (lambda content: content[: HEADER + 4 * ROW + 7], 3),
        (lambda content: content[: HEADER + 4 * ROW] + bytes(ROW), 4),
        (lambda content: content[: HEADER + 8 * ROW] + bytes(ROW) + b"half a row", 8),
        (lambda content: b"0" * HEADER + content[HEADER:], 0),
    ],
)
def test_the_last_row_is_written_again(tmp_path: Path, change: object, rows: int) -> None:
    journal = stopped(tmp_path / "map.npy", 9)
    assert len(journal.read_bytes()) == HEADER + 9 * ROW
    assert callable(change)
    journal.write_bytes(change(journal.read_bytes()))
    assert finished(tmp_path / "map.npy") == rows
