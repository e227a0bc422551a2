"""Files of columns, by pandas: CSV, TSV and Parquet."""

import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from hytas.data.findings import refusal
from hytas.data.record import reading
from hytas.errors import library
from hytas.files import PACKED, open_text

TEXT_SUFFIXES = tuple(kind + packed for packed in ("", *PACKED) for kind in (".csv", ".tsv"))
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".pq")
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?\n')
"""First line of tables that are written for Excel."""
ROW_NAMES = "row names"
"""Column of the names of rows, which R and pandas write before the first column that has a name."""
MOST_LINE = 2**20
"""Characters of the first line that are read."""


def read_frame(path: Path, argument: str = "data") -> Any:
    """Read a file of columns with pandas."""
    import pandas

    is_text = path.name.lower().endswith(TEXT_SUFFIXES)
    if not is_text:
        library("pyarrow", argument, "Parquet", "'hytas[parquet]'")
    with reading(argument, path, "table"):
        frame = _read_text(path, argument) if is_text else pandas.read_parquet(path)
        frame = frame if frame.index.names == [None] else frame.reset_index()
    if not len(frame):
        raise refusal("empty", argument, path, "rows")
    frame = frame.set_axis([str(name).strip() for name in frame], axis=1)
    name, count = Counter(frame.columns).most_common(1)[0]
    if count > 1:
        raise refusal("unreadable", argument, path, "columns-of-one-name", count=count, name=name)
    return frame


def _read_text(path: Path, argument: str) -> Any:
    """Read a file of columns as text, with decimal commas if these make more numbers."""
    import pandas

    if not path.stat().st_size:
        raise refusal("empty", argument, path, "bytes")
    with open_text(path, "replace") as file:
        first_line = file.readline(MOST_LINE)
    declared = _SEPARATOR.match(first_line)
    separator = declared[1] if declared else _separator(first_line)

    def read(index: bool | None) -> Any:
        frames = []
        for decimal in ".,":
            with warnings.catch_warnings():
                # Without an index, pandas takes a delimiter at the end of a row, and warns of more.
                warnings.simplefilter("error", pandas.errors.ParserWarning)
                frame = pandas.read_csv(
                    path,
                    sep=separator,
                    decimal=decimal,
                    skiprows=1 if declared else 0,
                    index_col=index,
                    encoding="utf-8-sig",
                    low_memory=False,
                )
            frames.append(frame)
            if not any(map(_has_commas, (column for _, column in frame.items()))):
                return frame
        return max(frames, key=lambda own: sum(kind.kind in "iufb" for kind in own.dtypes))

    try:
        try:
            frame = read(False)
        except pandas.errors.ParserWarning:
            frame = read(None)
            if not _are_row_names(path, frame.index):
                raise
            frame = frame.reset_index(names="Unnamed: 0")
    except pandas.errors.EmptyDataError:
        raise refusal("empty", argument, path, "columns") from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning):
        raise refusal("unreadable", argument, path, "row-too-long") from None
    except UnicodeDecodeError:
        raise refusal("unreadable", argument, path, "not-utf-8") from None
    first = frame.columns[0]
    if not str(first).startswith("Unnamed: "):  # by pandas
        return frame
    return frame.rename(columns={first: ROW_NAMES}).astype({ROW_NAMES: str})


def _separator(line: str) -> str:
    """Return the separator of names; those such as 450,5 have one decimal comma at most."""
    counts = {sign: re.sub('"[^"]*"', "", line).count(sign) for sign in ";\t, "}
    if counts[";"] >= max(1, counts[","], counts["\t"]):
        return ";"
    return max("\t,", key=counts.__getitem__) if counts["\t"] or counts[","] else " "


def _has_commas(column: Any) -> bool:
    texts = column.dropna().astype(str)
    return column.dtype.kind == "O" and bool(texts.str.contains(r"\d,\d").any())


def _are_row_names(path: Path, index: Any) -> bool:
    """Return whether the values before the first named column are names of rows.

    R writes them in quotes, and never twice. Without quotes, a value at the end of the rows may be
    the one too many.
    """
    with open_text(path) as file:
        next(file)
        return index.nlevels == 1 and bool(index.is_unique) and next(file).startswith('"')
