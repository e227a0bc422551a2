"""Files are whole or absent, and what keeps them from being written is said."""

import errno
import re
from pathlib import Path

import pytest

from hytas.files import atomic_write, read_csv, write_text


def stop_halfway(file: Path) -> None:
    with atomic_write(file) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "before")
    with pytest.raises(ZeroDivisionError):
        stop_halfway(file)
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    def write(error: OSError) -> None:
        with atomic_write(tmp_path / "a.txt") as temporary:
            error.filename = error.filename and str(temporary)
            raise error

    for error in (OSError(errno.ENOSPC, "full"), OSError(errno.EROFS, "read-only", "temporary")):
        with pytest.raises(OSError, match=re.escape(str(error.strerror))) as raised:
            write(error)
        assert raised.value.filename == str(tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())


def test_a_blank_line_below_columns_of_one_name() -> None:
    _, rows = read_csv(Path("a.csv"), "a,a\n1,2\n \n")
    assert [line for line, _ in rows] == [2]
