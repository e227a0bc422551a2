"""Files that are either whole or absent, whatever kills the process or fills the disk."""

import csv
import fcntl
import io
import json
import os
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hytas.errors import InputError


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`.

    The suffix is kept, because some writers choose the format by it. On any error the temporary
    file is removed and `path` is left as it was.

    Raises:
        OSError: the folder is missing or read-only, or the disk is full.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; the name of a file is needed")
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())  # some writers make files for their owner alone
        temporary.replace(path)
    except OSError as error:
        # A full disk names no file, others the temporary one, which means nothing to the user.
        if error.errno is None or str(error.filename or temporary) != str(temporary):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_csv(
    path: Path, text: str, **dialect: Any
) -> tuple[list[str], list[tuple[int, dict[Any, Any]]]]:
    """The columns and the rows of the table in `path`, whose `text` was read.

    Returns:
        The names of the columns, and each row with its line's number; fields beyond the columns
        have the key None, those that are missing the value None. Blank lines are left out.

    Raises:
        InputError: a line that is no CSV.
    """
    body = text.lstrip()
    above = text[: len(text) - len(body)].count("\n")
    reader = csv.DictReader(io.StringIO(body, newline=""), **dialect)
    try:
        columns = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = columns
        rows = [(above + reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}, line {above + reader.line_num}: {error}") from None
    return columns, [(line, row) for line, row in rows if not _is_blank(row)]


def _is_blank(row: dict[Any, Any]) -> bool:
    first, *others = row.values()
    return not first.strip() and all(other is None for other in others)


def check_folder(path: Path, argument: str) -> None:
    """Refuse, before the work, a file that could not be written after it.

    Raises:
        InputError: its folder does not exist, or cannot be written.
    """
    if not path.parent.is_dir():
        raise InputError(f"{argument}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{argument}: the folder {path.parent} cannot be written")


def lock(file: IO[Any]) -> bool:
    """Whether this process has an open file for itself, until it closes it.

    Where the file system has no locks, nobody can tell, and it has.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Wait for this process's turn to change files that others change too.

    Where the file system has no locks, there are no turns.

    Raises:
        OSError: no such folder.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


MOST_DEPTH = 100
"""Of objects and lists of JSON inside each other; what hytas writes has six."""


def parse_json(text: str | bytes, source: str | Path) -> Any:
    """What a JSON text says; `source` is what messages call it.

    Raises:
        InputError: it is not JSON, or nested too deeply.
    """
    try:
        values = json.loads(text)
    except RecursionError:
        raise InputError(f"{source}: nested more than {MOST_DEPTH} deep") from None
    except ValueError as error:  # of UnicodeDecodeError and JSONDecodeError both
        raise InputError(f"{source}: not JSON ({error})") from None
    level = [values]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return values
    raise InputError(f"{source}: nested more than {MOST_DEPTH} deep")


def _inside(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in inside if isinstance(item, dict | list)]


def _umask() -> int:
    """The process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8 to `path`, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


# The program on board does the same: deploy/onboard/metadata.cpp.
_INSTEAD = {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": "\N{REPLACEMENT CHARACTER}"}


def legible(name: str) -> str:
    """Return a name as one line that any file can hold.

    Controls and ends of lines become spaces, and half characters the replacement character.
    """
    return "".join(_INSTEAD.get(unicodedata.category(sign), sign) for sign in name)
