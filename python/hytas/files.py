"""Write files completely or not at all, even after a kill or on a full disk; read CSV and JSON."""

import bz2
import csv
import errno
import fcntl
import gzip
import io
import json
import lzma
import os
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hytas.errors import InputError


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; on success fsync it and rename it to `path`.

    The suffix is kept, because some writers choose the format by it. On any error the temporary
    file is removed, and `path` stays as it was.
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
        temporary.chmod(0o666 & ~_umask())  # some writers make files that only their owner can read
        move(temporary, path)
    except OSError as error:
        # The error of a full disk has no file name; other errors have the temporary one.
        if error.errno is None or str(error.filename or temporary) != str(temporary):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def move(file: Path, path: Path) -> None:
    """Rename a whole file to `path`, and fsync the folder, so that a crash keeps the new name."""
    file.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that syncs no folder
            raise
    finally:
        os.close(handle)


def _open_zip(path: Path, mode: str, **how: Any) -> IO[str]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        return io.TextIOWrapper(archive.open(names[0]), **how)


PACKED: dict[str, Any] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": _open_zip,
}
"""How a compressed file is opened, by its suffix, as pandas does."""


def open_text(path: Path, errors: str = "strict") -> IO[str]:
    """Open a text in UTF-8 without its byte order mark, compressed or not."""
    unpacked: IO[str] = PACKED.get(path.suffix.lower(), open)(
        path, "rt", encoding="utf-8-sig", errors=errors
    )
    return unpacked


def read_utf8(path: Path, argument: str) -> str:
    """Return the text of a CSV file, without a byte order mark; refuse other encodings."""
    try:
        with open_text(path) as file:
            return file.read()
    except UnicodeDecodeError:
        hint = "save it as CSV UTF-8"
        raise InputError(argument, path, "is no text in UTF-8", hint) from None


def read_csv(
    path: Path, text: str, most: int = 2**17, **dialect: Any
) -> tuple[list[str], list[tuple[int, dict[Any, Any]]]]:
    """Return the columns and rows of a CSV table; `text` is the content of `path`.

    Args:
        most: characters of a field.

    Returns:
        The names of the columns, and each row with the number of its line. Extra fields have the
        key None, and missing fields have the value None. Blank lines are left out.
    """
    body = text.lstrip()
    above = text[: len(text) - len(body)].count("\n")
    reader = csv.DictReader(io.StringIO(body, newline=""), **dialect)
    usual = csv.field_size_limit(most)
    try:
        columns = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = columns
        rows = [(above + reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}, line {above + reader.line_num}", rule=str(error)) from None
    finally:
        csv.field_size_limit(usual)
    return columns, [(line, row) for line, row in rows if not _is_blank(row)]


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as the text of a CSV table, a line each."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _is_blank(row: dict[Any, Any]) -> bool:
    first, *others = row.values()
    return not (first or "").strip() and all(other is None for other in others)


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, also where it does not exist yet."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def check_folder(path: Path, argument: str) -> None:
    """Refuse, before the work, a file that could not be written afterwards."""
    if path.is_dir():
        raise InputError(argument, path, "is a folder", "the name of a file is needed")
    if not path.parent.is_dir():
        raise InputError(argument, path, f"the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise InputError(argument, path, f"the folder {path.parent} cannot be written")


def lock(file: IO[Any]) -> bool:
    """Lock an open file until it is closed; return whether this process has the lock.

    On a file system without locks it returns True.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def file_lock(folder: Path) -> Iterator[None]:
    """Wait for an exclusive lock on a folder whose files several processes change.

    On a file system without locks it does not wait.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


MOST_DEPTH = 100
"""Levels of nested objects and lists in JSON; files of hytas have six."""


def parse_json(text: str | bytes, source: str | Path) -> Any:
    """Return the value of a JSON text; `source` is its name in messages."""
    try:
        values = json.loads(text)
    except RecursionError:
        raise InputError(source, rule=f"nested more than {MOST_DEPTH} deep") from None
    except ValueError as error:  # UnicodeDecodeError or JSONDecodeError
        raise InputError(source, rule=f"not JSON ({error})") from None
    level = [values]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return values
    raise InputError(source, rule=f"nested more than {MOST_DEPTH} deep")


def _inside(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in inside if isinstance(item, dict | list)]


def _umask() -> int:
    """Return the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8 to `path`, completely or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


# The program on board does the same: deploy/onboard/metadata.cpp.
_INSTEAD = {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": "\N{REPLACEMENT CHARACTER}"}


def legible(name: str) -> str:
    """Return a name on one line that any file can hold.

    Control characters and ends of lines become spaces. Lone surrogates become the replacement
    character.
    """
    return "".join(_INSTEAD.get(unicodedata.category(sign), sign) for sign in name)
