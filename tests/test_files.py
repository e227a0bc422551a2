"""Files are whole or absent, and what keeps them from being written is said."""

import errno
import re
from pathlib import Path

import pytest

from hytas.errors import InputError
from hytas.files import atomic_write, check_folder, read_csv, write_text


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


def test_a_missing_folder_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere/a\.txt: the folder .*nowhere does not"):
        write_text(tmp_path / "nowhere" / "a.txt", "text")
    with pytest.raises(IsADirectoryError, match="is a folder; the name of a file is needed"):
        write_text(tmp_path, "text")
    with pytest.raises(InputError, match=r"out=.*: is a folder; the name of a file is needed"):
        check_folder(tmp_path, "out")
    check_folder(tmp_path / "a.txt", "out")


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


def test_a_csv_that_cannot_be_parsed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    assert read_csv(path, "a,b\n1,2\n\n3\n") == (
        ["a", "b"],
        [(2, {"a": "1", "b": "2"}), (4, {"a": "3", "b": None})],
    )
    for text in ('a,b\n1,"' + "x" * 200_000, '"' + "x" * 200_000):
        with pytest.raises(InputError, match=r"table\.csv, line \d: field larger than field limit"):
            read_csv(path, text)
